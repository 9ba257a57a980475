//! Calls without events, named by where in the kernel a thread sleeps.
//!
//! A recording of chosen calls does not trace the others: above all reads and receives, the most
//! frequent calls of most programs. Most of these return at once, and few sleep. So a recorder may
//! have the switch event say where in the kernel the thread leaves its CPU: the outermost function
//! of that chain is the one in which the call began ([`What::Leaves`]).
//!
//! Such a call has no beginning and no end, and is not counted. It only says what a sleep was for.
//!
//! The innermost function outside the scheduler says what an uninterruptible sleep is for: a disk
//! ([`IO`]), a lock, or something else with a name, such as an RCU grace period. It counts if the
//! call alone does not tell, as if `sched_blocked_reason` had said it.
//!
//! [`What::Leaves`]: holdup_trace::What::Leaves

use super::Engine;
use crate::judge::{BlockedFor, Outside};
use crate::locks::is_locking;
use crate::slot::Slot;
use crate::unsettled::Reason;
use crate::waits::{Caller, Class};
use holdup_syscalls::{Arch, WaitKind};
use holdup_trace::{Cpu, Nanos, SymbolTable};
use rustc_hash::FxHashMap;

/// Names of the kernel function in which the call NAME begins: the entry in the table of calls, or
/// the function that this entry calls if it leaves no frame of its own.
const ENTRIES: [&str; 6] =
    ["__x64_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_", "ksys_", "__sys_"];

/// This many outermost functions may precede it: the entry from user mode.
const BEFORE: usize = 4;

/// Prefixes of functions that other functions call to sleep.
const SCHEDULER: [&str; 6] =
    ["__schedule", "schedule", "preempt_schedule", "wait_for_completion", "__wait_for_common", IO];

/// Prefix of functions that sleep until a device answers.
const IO: &str = "io_schedule";

/// What a kernel function means for a thread that sleeps in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sleeps {
    InScheduler,
    ForDevice,
    ForLock,
}

impl Sleeps {
    fn of(name: &str) -> Option<Sleeps> {
        if name.starts_with(IO) {
            Some(Sleeps::ForDevice)
        } else if SCHEDULER.iter().any(|begins| name.starts_with(begins)) {
            Some(Sleeps::InScheduler)
        } else {
            is_locking(name).then_some(Sleeps::ForLock)
        }
    }
}

/// What a kernel function means in a chain.
#[derive(Clone, Copy, Debug, Default)]
struct Function {
    /// What a thread sleeps for in it.
    sleeps: Option<Sleeps>,
    /// The number of the call that begins in it.
    call: Option<u32>,
}

/// What the chains of switches say about calls that are not recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct UntracedCalls {
    arch: Arch,
    /// The kernel's functions; none if there are no such calls.
    symbols: SymbolTable,
    /// The functions of the addresses that chains had so far.
    functions: FxHashMap<u64, Function>,
    /// About the next switch: CPU, number of the call, first argument.
    said: Option<(Cpu, u32, u64)>,
    /// What the thread then sleeps for, if the sleep is uninterruptible.
    reason: Option<(Cpu, Reason)>,
}

impl UntracedCalls {
    /// Of a kernel with these functions.
    pub(super) fn new(outside: Outside, arch: Arch, symbols: &SymbolTable) -> UntracedCalls {
        let symbols = match outside {
            Outside::UntracedCall => symbols.clone(),
            _ => SymbolTable::default(),
        };
        UntracedCalls { arch, symbols, ..UntracedCalls::default() }
    }

    /// What the function at this address of a chain means.
    fn function(&mut self, address: u64) -> Function {
        let (arch, symbols) = (self.arch, &self.symbols);
        *self.functions.entry(address).or_insert_with(|| {
            // A return address may equal the end of its function.
            let names = [address, address.saturating_sub(1)];
            let names = || names.into_iter().filter_map(|at| Some(symbols.lookup(at)?.0));
            let call = |name: &str| {
                let call = ENTRIES.iter().find_map(|entry| name.strip_prefix(entry))?;
                holdup_syscalls::entry_number(arch, call)
            };
            Function { sleeps: names().find_map(Sleeps::of), call: names().find_map(call) }
        })
    }

    /// The call to which the outermost functions of a chain belong.
    fn of(&mut self, chain: &[u64]) -> Option<u32> {
        chain.iter().rev().take(BEFORE).find_map(|&address| self.function(address).call)
    }

    /// What the innermost functions of a chain sleep for.
    fn reason(&mut self, chain: &[u64]) -> Option<Reason> {
        let mut io_wait = false;
        for &address in chain {
            let lock = match self.function(address).sleeps {
                Some(Sleeps::ForDevice) => {
                    io_wait = true;
                    continue;
                }
                Some(Sleeps::InScheduler) => continue,
                Some(Sleeps::ForLock) => true,
                None => false,
            };
            return Some(Reason { io_wait, caller: Caller::Address(address), lock });
        }
        None
    }
}

impl Engine {
    /// The next thread that leaves `cpu` does so at this place.
    pub(super) fn leaves_from(&mut self, cpu: Cpu, chain: &[u64], argument: u64) {
        self.untraced.said = self.untraced.of(chain).map(|nr| (cpu, nr, argument));
        self.untraced.reason = self.untraced.reason(chain).map(|reason| (cpu, reason));
    }

    /// A thread goes into an uninterruptible sleep in a call of this kind. If the call does not
    /// tell the reason, the chain just recorded does. Returns whether it is a device.
    pub(super) fn sleeps_for(&mut self, cpu: Cpu, slot: Slot, kind: Option<WaitKind>) -> bool {
        use WaitKind::{Accept, Memory, Other, Socket};
        let unsettled = matches!(kind, None | Some(Other | Socket | Accept | Memory));
        let Some((on, reason)) = self.untraced.reason.take().filter(|_| unsettled) else {
            return false;
        };
        if on != cpu || self.threads[slot].contending > 0 {
            return false;
        }
        self.threads[slot].living.reason = Some(reason);
        self.blocked_for(slot) == Some(BlockedFor::Io)
    }

    /// A thread outside recorded calls goes to sleep: in the call of the chain just recorded.
    pub(super) fn sleeps_untraced(&mut self, now: Nanos, cpu: Cpu, slot: Slot) {
        let Some((on, nr, argument)) = self.untraced.said.take() else { return };
        let t = &mut self.threads[slot];
        if on != cpu || t.living.call.is_some() {
            return;
        }
        t.living.untraced = Some((nr, now));
        let pid = t.pid;
        let class = self.traits.get(nr as usize).map_or(Class::None, |traits| traits.class);
        // For the other classes the first argument is not enough.
        if matches!(class, Class::Read | Class::Receive | Class::Send | Class::Write) {
            self.waits.call_begins(now, slot, pid, class, &[argument, 0, 0, 0, 0, 0]);
        }
    }

    /// The thread runs again: no event tells whether it is still in the call.
    pub(super) fn untraced_call_is_over(&mut self, slot: Slot) {
        if self.threads[slot].living.untraced.is_some() {
            self.threads[slot].living.untraced = None;
            self.waits.call_is_over(slot);
        }
    }

    /// What was said about one switch does not apply to the next.
    pub(super) fn untraced_is_said(&mut self) {
        (self.untraced.said, self.untraced.reason) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &[u8] = b"ffffffff81000000 T do_syscall_64\n\
        ffffffff81001000 T ksys_read\n\
        ffffffff81002000 T vfs_read\n\
        ffffffff81003000 T __x64_sys_recvfrom\n\
        ffffffff81004000 T __sys_recvfrom\n\
        ffffffff81005000 T schedule\n";

    #[test]
    fn the_outermost_function_names_the_call() {
        let symbols = SymbolTable::from_kallsyms(KERNEL);
        let mut calls = UntracedCalls::new(Outside::UntracedCall, Arch::X86_64, &symbols);
        let at = |offset: u64| 0xffff_ffff_8100_0010 + offset;
        // sleep, read, entry
        assert_eq!(calls.of(&[at(0x5000), at(0x2000), at(0x1000), at(0)]), Some(0));
        let receive = [at(0x5000), at(0x4000), at(0x3000), at(0)];
        assert_eq!(calls.of(&receive), holdup_syscalls::number(Arch::X86_64, "recvfrom"));
        // A page fault, a thread of the kernel, a chain without frames.
        assert_eq!(calls.of(&[at(0x5000), at(0x2000)]), None);
        assert_eq!(calls.of(&[]), None);
        // In a recording of all calls each call has an event of its own.
        let mut all = UntracedCalls::new(Outside::NoCall, Arch::X86_64, &symbols);
        assert_eq!(all.of(&receive), None);
    }

    #[test]
    fn the_innermost_function_that_is_not_the_schedulers_is_slept_in() {
        let symbols = SymbolTable::from_kallsyms(
            b"ffffffff81000000 T io_schedule\n\
            ffffffff81001000 T folio_wait_bit\n\
            ffffffff81002000 T synchronize_rcu\n\
            ffffffff81003000 T rwsem_down_write_slowpath\n\
            ffffffff81005000 T schedule\n\
            ffffffff81006000 T __schedule\n\
            ffffffff81007000 T schedule_timeout\n\
            ffffffff81008000 T _etext\n",
        );
        let mut calls = UntracedCalls::new(Outside::UntracedCall, Arch::X86_64, &symbols);
        let mut reason = |offsets: &[u64]| {
            let chain: Vec<u64> = offsets.iter().map(|o| 0xffff_ffff_8100_0010 + o).collect();
            calls.reason(&chain).map(|r| (r.io_wait, r.lock, r.caller))
        };
        let caller = |offset: u64| Caller::Address(0xffff_ffff_8100_0010 + offset);
        assert_eq!(reason(&[0x6000, 0x5000, 0, 0x1000]), Some((true, false, caller(0x1000))));
        assert_eq!(reason(&[0x6000, 0x5000, 0x7000, 0x2000]), Some((false, false, caller(0x2000))));
        assert_eq!(reason(&[0x6000, 0x5000, 0x3000]), Some((false, true, caller(0x3000))));
        assert_eq!(reason(&[0x6000, 0x5000]), None);
    }
}

//! Calls that no event tells of, named by where in the kernel a thread sleeps.
//!
//! A recording of chosen calls does not trace the others: reads and receives above all, since they
//! are the most of most programs' calls. Most return at once, and those that sleep are few. So a
//! recorder may have the switch itself say where in the kernel the thread leaves its CPU: the
//! outermost function of that chain is the one that the call began in ([`What::Leaves`]).
//!
//! Such a call has no beginning and no end, and is not counted. It only says what a sleep was for.
//!
//! The innermost function that is none of the scheduler's says what no signal may end: a disk
//! ([`IO`]), a lock, or something else that has a name, as a grace period of RCU. It counts where
//! the call alone does not tell, as if `sched_blocked_reason` had said so.
//!
//! [`What::Leaves`]: holdup_trace::What::Leaves

use super::Engine;
use crate::judge::{BlockedFor, Outside};
use crate::locks::is_locking;
use crate::slot::Slot;
use crate::untold::Reason;
use crate::waits::{Caller, Class};
use holdup_syscalls::{Arch, WaitKind};
use holdup_trace::{Cpu, Nanos, SymbolTable};

/// What the kernel calls the function in which the call NAME begins: as the entry that the table of
/// calls leads to, else as what that hands over to where it leaves no frame of its own.
const ENTRIES: [&str; 6] =
    ["__x64_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_", "ksys_", "__sys_"];

/// So many of the outermost functions may come before it: the entry from the program.
const BEFORE: usize = 4;

/// Beginnings of names of functions that others call to sleep.
const SCHEDULER: [&str; 6] =
    ["__schedule", "schedule", "preempt_schedule", "wait_for_completion", "__wait_for_common", IO];

/// And of those by which they say that a device has to answer.
const IO: &str = "io_schedule";

/// What a function is to who sleeps in it.
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

/// Where calls begin and where they sleep, and what was said last.
#[derive(Clone, Debug, Default)]
pub(super) struct UntracedCalls {
    /// Functions, ascending by address: start, end, number of the call.
    entries: Vec<(u64, u64, u32)>,
    /// The same of those that sleep.
    sleeps: Vec<(u64, u64, Sleeps)>,
    /// Of the switch that comes: CPU, number of the call, first argument.
    said: Option<(Cpu, u32, u64)>,
    /// What the thread sleeps for then, if no signal ends it.
    reason: Option<(Cpu, Reason)>,
}

impl UntracedCalls {
    /// Of a kernel with these functions.
    pub(super) fn new(outside: Outside, arch: Arch, symbols: &SymbolTable) -> UntracedCalls {
        let mut calls = UntracedCalls::default();
        if outside != Outside::UntracedCall {
            return calls;
        }
        let mut functions = symbols.functions().peekable();
        while let Some((start, name)) = functions.next() {
            let end = functions.peek().map_or(start, |(next, _)| *next);
            if let Some(sleeps) = Sleeps::of(name) {
                calls.sleeps.push((start, end, sleeps));
            }
            let call = ENTRIES.iter().find_map(|entry| name.strip_prefix(entry));
            if let Some(nr) = call.and_then(|call| holdup_syscalls::entry_number(arch, call)) {
                calls.entries.push((start, end, nr));
            }
        }
        calls
    }

    /// The call that the outermost functions of a chain are of.
    fn of(&self, chain: &[u64]) -> Option<u32> {
        chain.iter().rev().take(BEFORE).find_map(|&address| at(&self.entries, address))
    }

    /// What the innermost functions of a chain sleep for.
    fn reason(&self, chain: &[u64]) -> Option<Reason> {
        let mut io_wait = false;
        for &address in chain {
            let lock = match at(&self.sleeps, address) {
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

/// What is known of the function at `address`.
fn at<T: Copy>(functions: &[(u64, u64, T)], address: u64) -> Option<T> {
    let after = functions.partition_point(|&(start, ..)| start <= address);
    let &(_, end, known) = functions.get(after.checked_sub(1)?)?;
    // A return address may be the end of its function.
    (address <= end).then_some(known)
}

impl Engine {
    /// The thread that leaves `cpu` next does so there.
    pub(super) fn leaves_from(&mut self, cpu: Cpu, chain: &[u64], argument: u64) {
        self.untraced.said = self.untraced.of(chain).map(|nr| (cpu, nr, argument));
        self.untraced.reason = self.untraced.reason(chain).map(|reason| (cpu, reason));
    }

    /// A thread goes to sleep in a call of this kind, and no signal ends that: for what was said
    /// just now, where the call does not tell. Whether that is a device.
    pub(super) fn sleeps_for(&mut self, cpu: Cpu, slot: Slot, kind: Option<WaitKind>) -> bool {
        let untold =
            matches!(kind, None | Some(WaitKind::Other | WaitKind::Socket | WaitKind::Memory));
        let Some((on, reason)) = self.untraced.reason.take().filter(|_| untold) else {
            return false;
        };
        if on != cpu || self.threads[slot].contending > 0 {
            return false;
        }
        self.threads[slot].living.reason = Some(reason);
        self.blocked_for(slot) == Some(BlockedFor::Io)
    }

    /// A thread goes to sleep: in the call that was said just now, if it is in no recorded one.
    pub(super) fn sleeps_untraced(&mut self, now: Nanos, cpu: Cpu, slot: Slot) {
        let Some((on, nr, argument)) = self.untraced.said.take() else { return };
        let t = &mut self.threads[slot];
        if on != cpu || t.living.call.is_some() {
            return;
        }
        t.living.untraced = Some((nr, now));
        let pid = t.pid;
        let class = self.traits.get(nr as usize).map_or(Class::None, |traits| traits.class);
        // Of others more than the first argument would have to be known.
        if matches!(class, Class::Read | Class::Receive | Class::Send | Class::Write) {
            self.waits.call_begins(now, slot, pid, class, &[argument, 0, 0, 0, 0, 0]);
        }
    }

    /// It runs again: whatever it does now, no event tells whether it is still in the call.
    pub(super) fn untraced_call_is_over(&mut self, slot: Slot) {
        if self.threads[slot].living.untraced.is_some() {
            self.threads[slot].living.untraced = None;
            self.waits.call_is_over(slot);
        }
    }

    /// What was said of a switch that has come holds for no other.
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
        let calls = UntracedCalls::new(Outside::UntracedCall, Arch::X86_64, &symbols);
        let at = |offset: u64| 0xffff_ffff_8100_0010 + offset;
        // sleep, read, entry
        assert_eq!(calls.of(&[at(0x5000), at(0x2000), at(0x1000), at(0)]), Some(0));
        let receive = [at(0x5000), at(0x4000), at(0x3000), at(0)];
        assert_eq!(calls.of(&receive), holdup_syscalls::number(Arch::X86_64, "recvfrom"));
        // A page fault, a thread of the kernel, a chain without frames.
        assert_eq!(calls.of(&[at(0x5000), at(0x2000)]), None);
        assert_eq!(calls.of(&[]), None);
        // In a recording of all calls each says itself when it begins.
        let all = UntracedCalls::new(Outside::NoCall, Arch::X86_64, &symbols);
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
        let calls = UntracedCalls::new(Outside::UntracedCall, Arch::X86_64, &symbols);
        let reason = |offsets: &[u64]| {
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

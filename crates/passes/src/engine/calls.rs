//! System calls begin and end.

use super::Engine;
use super::current::spend;
use crate::cpus::{Counts, CpuState, Cpus};
use crate::facts::{Fact, Return, Split};
use crate::slot::Slot;
use crate::spaces::SpaceCall;
use crate::state::Mode;
use crate::stolen::SHORTEST;
use crate::syscalls::Call;
use crate::threads::{Thread, Threads};
use crate::user_intervals::quarter;
use crate::waits::Class;
use holdup_syscalls::{Arch, Direction, WaitKind};
use holdup_trace::{Cpu, Event, Nanos, Pid, QualityCode};

/// What holdup counts about a system call, by its number.
#[derive(Clone, Copy, Default)]
pub(super) struct CallTraits {
    pub(super) wait: WaitKind,
    direction: Option<Direction>,
    semaphore: bool,
    message: bool,
    /// It sends a signal.
    pub(super) signals: bool,
    /// It changes the address space.
    space: bool,
    pub(super) class: Class,
    /// It returns a second time, with 0, in the thread that it created.
    begets: bool,
}

impl CallTraits {
    /// It writes to a pipe, a socket or the like.
    pub(super) fn sends(&self) -> bool {
        matches!(self.class, Class::Write | Class::Send)
    }

    /// The traits of all calls, by number.
    pub(super) fn table(arch: Arch) -> Vec<CallTraits> {
        let of = |name: &str| CallTraits {
            wait: holdup_syscalls::wait_kind(name),
            direction: holdup_syscalls::io_direction(name),
            semaphore: holdup_syscalls::is_semaphore(name),
            message: holdup_syscalls::is_message(name),
            signals: holdup_syscalls::is_signal(name),
            space: holdup_syscalls::changes_address_space(name),
            class: Class::of(name),
            begets: holdup_syscalls::begets(name),
        };
        (0..holdup_syscalls::table_len(arch) as u32)
            .map(|nr| holdup_syscalls::name(arch, nr).map(of).unwrap_or_default())
            .collect()
    }
}

/// A thread on its CPU.
struct At<'a> {
    c: &'a mut CpuState,
    t: &'a mut Thread,
    slot: Slot,
}

impl<'a> At<'a> {
    /// The thread believed current on `cpu`; `None` for the idle task.
    #[inline(always)]
    fn new(cpus: &'a mut Cpus, threads: &'a mut Threads, cpu: Cpu) -> Option<At<'a>> {
        let c = cpus.known_mut(cpu)?;
        let (_, slot) = c.current.filter(|&(_, slot)| slot != Slot::IDLE)?;
        Some(At { c, t: &mut threads[slot], slot })
    }
}

impl Engine {
    /// The common case of an event that begins or ends a system call: the thread believed current
    /// is on its CPU, the stack is empty, and the thread's mode is `before`. Settles the time.
    /// `None`: see [`Engine::settle_boundary`].
    #[inline(always)]
    fn plain_boundary<'a>(
        cpus: &'a mut Cpus,
        threads: &'a mut Threads,
        now: Nanos,
        e: &Event,
        before: Mode,
    ) -> Option<At<'a>> {
        let At { c, t, slot } = At::new(cpus, threads, e.cpu)?;
        let plain = c.current.is_some_and(|(tid, _)| tid == e.tid)
            && c.stack.is_empty()
            && t.mode == before
            && t.contending == 0
            && now < c.border;
        if !plain {
            return None;
        }
        debug_assert!(t.undecided.is_empty() && !t.spins);
        // Same as in `charge`.
        let span = now.saturating_sub(c.charged_to);
        if span >= SHORTEST {
            return None;
        }
        let from = c.charged_to;
        c.charged_to += span;
        spend(c, t, before, span);
        t.ran(from, now, before.into());
        Some(At { c, t, slot })
    }

    /// The current thread enters or leaves the kernel: settles its time until now, which it spent
    /// in mode `before`. False if no thread can do so here.
    #[inline(never)]
    fn settle_boundary(&mut self, now: Nanos, e: &Event, before: Mode) -> bool {
        if !self.valid(e.cpu, e.tid) {
            return false;
        }
        self.heard(now, e);
        let slot = self.current(now, e.cpu, e.tid, e.pid);
        if slot == Slot::IDLE {
            return false;
        }
        self.charge(now, e.cpu);
        let t = &self.threads[slot];
        if t.mode == Mode::Unknown || !t.undecided.is_empty() {
            self.decide(slot, before);
        }
        if self.threads[slot].contending > 0 {
            self.abandon_waits(slot);
        }
        if before == Mode::User && self.threads[slot].living.call.is_some() {
            self.return_was_lost(slot);
        }
        true
    }

    /// `SETTLED`: the time up to now is accounted for.
    #[inline(always)]
    pub(super) fn sys_enter<const SETTLED: bool>(
        &mut self,
        now: Nanos,
        e: &Event,
        nr: u32,
        args: Option<&[u64; 6]>,
    ) {
        let at = match SETTLED {
            true => At::new(&mut self.cpus, &mut self.threads, e.cpu),
            false => Engine::plain_boundary(&mut self.cpus, &mut self.threads, now, e, Mode::User),
        };
        let Some(At { c, t, slot }) = at else {
            if !SETTLED {
                self.sys_enter_settled(now, e, nr, args);
            }
            return;
        };
        let running0 = t.running_at(now);
        let living = &mut *t.living;
        if !SETTLED && living.call.is_some() {
            return self.sys_enter_settled(now, e, nr, args);
        }
        t.mode = Mode::Kernel;
        t.syscall_events += 1;
        if let Some((user0, quarter)) = living.user_interval {
            living.user_interval = None;
            let ns = t.user_ns.saturating_sub(user0);
            self.costs.user_interval(nr, ns);
            self.user_intervals.add(slot, nr, ns, quarter);
        }
        living.call = Some(Call {
            nr,
            start: now,
            running0,
            irq0: t.irq_ns,
            runnable0: t.woken_ns + t.preempted_ns,
            blocked0: t.blocked_ns,
            alone: Some(self.costs.enter()),
            inside: true,
            woke: false,
            with_sibling: false,
            stolen: 0,
        });
        c.counts.scalls += 1;
        let Some(traits) = self.traits.get(nr as usize) else { return };
        if traits.class != Class::None {
            if let Some(args) = args {
                self.waits.call_begins(now, slot, t.pid, traits.class, args);
            }
        } else if traits.wait == WaitKind::Yield {
            let (events, running, user) = (t.syscall_events, t.running_at(now), t.user_ns);
            t.yields.get_or_insert_default().yields(events, running, user);
        }
        if traits.space {
            self.space_begins(e.cpu, slot);
        }
    }

    /// A call that changes the address space begins.
    #[inline(never)]
    fn space_begins(&mut self, cpu: Cpu, slot: Slot) {
        let with_sibling = self.has_sibling(cpu, slot);
        if let Some(call) = &mut self.threads[slot].living.call {
            call.with_sibling = with_sibling;
        }
    }

    /// A call that changes the address space ended, after `own` CPU time.
    #[inline(never)]
    fn space_ends(&mut self, now: Nanos, cpu: Cpu, mut call: SpaceCall) {
        call.siblings.1 = self.has_sibling(cpu, call.slot);
        self.spaces.call(now, &call);
    }

    /// Whether another CPU runs a thread of the same process.
    fn has_sibling(&self, cpu: Cpu, slot: Slot) -> bool {
        let pid = self.threads[slot].pid;
        pid != Pid::UNKNOWN
            && self.cpus.iter().any(|(other, c)| {
                other != cpu
                    && c.current.is_some_and(|(_, s)| s != Slot::IDLE && self.threads[s].pid == pid)
            })
    }

    #[inline(never)]
    fn sys_enter_settled(&mut self, now: Nanos, e: &Event, nr: u32, args: Option<&[u64; 6]>) {
        if self.settle_boundary(now, e, Mode::User) {
            self.sys_enter::<true>(now, e, nr, args);
        }
    }

    /// A thread that is in a call enters another: the return event was lost.
    #[cold]
    fn return_was_lost(&mut self, slot: Slot) {
        self.quality.add(QualityCode::OrphanSysEnter, 1);
        let t = &mut self.threads[slot];
        if let Some(call) = t.living.call.take()
            && call.inside
        {
            self.costs.leave();
        }
    }

    /// `SETTLED`: the time up to now is accounted for. `FACTS`: the caller asks for facts.
    #[inline(always)]
    pub(super) fn sys_exit<const SETTLED: bool, const FACTS: bool>(
        &mut self,
        now: Nanos,
        e: &Event,
        nr: u32,
        ret: i64,
    ) {
        let cpus = self.cpus.used();
        let at = match SETTLED {
            true => At::new(&mut self.cpus, &mut self.threads, e.cpu),
            false => {
                Engine::plain_boundary(&mut self.cpus, &mut self.threads, now, e, Mode::Kernel)
            }
        };
        let Some(At { c, t, slot }) = at else {
            if !SETTLED {
                self.sys_exit_settled::<FACTS>(now, e, nr, ret);
            }
            return;
        };
        t.mode = Mode::User;
        t.syscall_events += 1;
        // How many CPUs are busy when the application continues.
        let running = t.running_at(now);
        let living = &mut *t.living;
        living.user_interval =
            Some((t.user_ns, quarter(self.blame.others_running() as usize, cpus)));
        let Some(call) = &living.call else {
            return self.only_returned(now, e.cpu, slot, nr, ret);
        };
        if call.inside {
            self.costs.leave();
        }
        let elapsed = now - call.start;
        let (running, interrupted) = (running - call.running0, t.irq_ns - call.irq0);
        let (start, alone, woke) = (call.start, call.alone, call.woke);
        let with_sibling = call.with_sibling;
        let stolen = call.stolen;
        // If the exit does not give the number (LTTng up to 2.5), that of the entry is used.
        // rt_sigreturn returns as number -1, with the registers of the interrupted code: it has no
        // result.
        let (nr, ret) = match nr {
            u32::MAX if Some(call.nr) == self.sigreturn => (call.nr, 0),
            u32::MAX => (call.nr, ret),
            nr => (nr, ret),
        };
        let stats = living.calls.entry(nr);
        stats.returned(elapsed, ret);
        // Most calls keep their CPU from beginning to end.
        let (own, runnable, blocked) = if running == elapsed && interrupted == 0 {
            debug_assert_eq!(t.blocked_ns, call.blocked0);
            stats.running += elapsed;
            if woke {
                stats.sleeps_and_wakes += elapsed;
            }
            (elapsed, 0, 0)
        } else {
            let own = running.saturating_sub(interrupted);
            let runnable = t.woken_ns + t.preempted_ns - call.runnable0;
            // Time that no event explains was not on a CPU as far as known: not running either.
            let blocked = elapsed.saturating_sub(running + runnable);
            stats.running += own;
            stats.interrupted += interrupted;
            stats.runnable += runnable;
            stats.blocked += blocked;
            if woke || blocked > 0 {
                stats.sleeps_and_wakes += own;
            }
            (own, runnable, blocked)
        };
        if FACTS && let Some(facts) = &mut self.facts {
            let split = Some(Split { running: own, interrupted, runnable, blocked });
            let call = Return { start, end: now, slot, cpu: e.cpu, nr, ret, split };
            facts.rows.push(Fact::Call(call));
        }
        living.call = None;
        let cost = own.saturating_sub(stolen);
        self.costs.call(nr, now, slot, cost, alone, blocked > 0);
        let Some(traits) = self.traits.get(nr as usize) else { return };
        if traits.class.returns() {
            let mutex = self.waits.call_returns(now, slot, t.pid, traits.class, start, ret);
            if let Some(mutex) = mutex {
                if !woke && blocked == 0 {
                    t.living.calls.entry(nr).sleeps_and_wakes += own;
                }
                if let Some(steps) = &mut self.waits.steps {
                    steps.contended(slot, mutex, own);
                }
            }
        }
        count_call(&mut c.counts, traits, ret);
        if traits.space {
            let (pid, slept) = (t.pid, blocked > 0);
            let call = SpaceCall { nr, slot, pid, own, siblings: (with_sibling, false), slept };
            self.space_ends(now, e.cpu, call);
        }
    }

    #[inline(never)]
    fn sys_exit_settled<const FACTS: bool>(&mut self, now: Nanos, e: &Event, nr: u32, ret: i64) {
        if self.settle_boundary(now, e, Mode::Kernel) {
            self.sys_exit::<true, FACTS>(now, e, nr, ret);
        }
    }

    /// A call whose beginning was not seen returns.
    #[inline(never)]
    fn only_returned(&mut self, now: Nanos, cpu: Cpu, slot: Slot, nr: u32, ret: i64) {
        if ret == 0 && self.traits.get(nr as usize).is_some_and(|traits| traits.begets) {
            // A new thread returns from the call that created it, which is its parent's call.
            return;
        }
        let t = &mut self.threads[slot];
        if t.syscall_events > 1 {
            self.quality.add(QualityCode::OrphanSysExit, 1);
        }
        // See `sys_exit`.
        let ret = if nr == u32::MAX { 0 } else { ret };
        t.living.calls.entry(nr).only_returned(ret);
        if let Some(facts) = &mut self.facts {
            let call = Return { start: now, end: now, slot, cpu, nr, ret, split: None };
            facts.rows.push(Fact::Call(call));
        }
        if let Some(traits) = self.traits.get(nr as usize) {
            count_call(&mut self.cpus.get_mut(cpu).counts, traits, ret);
        }
    }
}

/// What sar counts of calls that return.
#[inline(always)]
fn count_call(counts: &mut Counts, traits: &CallTraits, ret: i64) {
    match traits.direction {
        Some(Direction::Read) => {
            counts.sreads += 1;
            counts.rchars += ret.max(0) as u64;
        }
        Some(Direction::Write) => {
            counts.swrites += 1;
            counts.wchars += ret.max(0) as u64;
        }
        None => {
            counts.semas += traits.semaphore as u64;
            counts.msgs += traits.message as u64;
        }
    }
}

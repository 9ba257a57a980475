//! System calls begin and end.

use super::Engine;
use super::current::spend;
use crate::cpus::{CpuState, Cpus, Sort};
use crate::facts::{Fact, Return, Split};
use crate::slot::Slot;
use crate::spaces::SpaceCall;
use crate::state::{Mode, State};
use crate::stolen::SHORTEST;
use crate::syscalls::Call;
use crate::threads::{Thread, Threads};
use crate::user_intervals::UserInterval;
use crate::waits::Class;
use holdup_syscalls::{Arch, Direction, WaitKind};
use holdup_trace::{ArgsRef, Batch, Cpu, Event, Nanos, Pid, QualityCode};

/// What a call changes when it begins, in addition to the sums that all calls have.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Entry {
    #[default]
    Nothing,
    /// Only its first argument is kept.
    FirstArgument,
    /// See [`Engine::enters_specially`].
    Special,
}

/// What holdup counts about a system call, by its number.
#[derive(Clone, Copy, Default)]
pub(super) struct CallTraits {
    pub(super) wait: WaitKind,
    pub(super) sort: Sort,
    /// It sends a signal.
    pub(super) signals: bool,
    /// It changes the address space.
    space: bool,
    pub(super) class: Class,
    /// It returns a second time, with 0, in the thread that it created.
    begets: bool,
    entry: Entry,
    /// Its return changes something: see [`Engine::returns_specially`].
    returns: bool,
}

/// A call that returns, for what few calls need.
struct Returns {
    nr: u32,
    ret: i64,
    start: Nanos,
    /// Its CPU time.
    own: Nanos,
    slept: bool,
    woke: bool,
    with_sibling: bool,
}

impl CallTraits {
    /// It writes to a pipe, a socket or the like.
    pub(super) fn sends(&self) -> bool {
        matches!(self.class, Class::Write | Class::Send)
    }

    /// If it does not sleep, it changes only the sums that all calls have.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.entry != Entry::Special && !self.returns
    }

    fn of(name: &str) -> CallTraits {
        let class = Class::of(name);
        let wait = holdup_syscalls::wait_kind(name);
        let space = holdup_syscalls::changes_address_space(name);
        CallTraits {
            wait,
            sort: match holdup_syscalls::io_direction(name) {
                Some(Direction::Read) => Sort::Read,
                Some(Direction::Write) => Sort::Write,
                None if holdup_syscalls::is_semaphore(name) => Sort::Semaphore,
                None if holdup_syscalls::is_message(name) => Sort::Message,
                None => Sort::Other,
            },
            signals: holdup_syscalls::is_signal(name),
            space,
            class,
            begets: holdup_syscalls::begets(name),
            entry: match class {
                _ if space || class.needs_all_arguments() => Entry::Special,
                Class::None if wait == WaitKind::Yield => Entry::Special,
                Class::None => Entry::Nothing,
                _ => Entry::FirstArgument,
            },
            returns: space || class.returns(),
        }
    }

    /// The traits of all calls, by number.
    pub(super) fn table(arch: Arch) -> Vec<CallTraits> {
        (0..holdup_syscalls::table_len(arch) as u32)
            .map(|nr| holdup_syscalls::name(arch, nr).map(CallTraits::of).unwrap_or_default())
            .collect()
    }
}

/// A thread on its CPU.
pub(super) struct At<'a> {
    pub(super) c: &'a mut CpuState,
    pub(super) t: &'a mut Thread,
    pub(super) slot: Slot,
}

impl<'a> At<'a> {
    /// The thread believed current on `cpu`; `None` for the idle task.
    fn new(cpus: &'a mut Cpus, threads: &'a mut Threads, cpu: Cpu) -> Option<At<'a>> {
        let c = cpus.known_mut(cpu)?;
        let (_, slot) = c.current().filter(|&(_, slot)| slot != Slot::IDLE)?;
        Some(At { c, t: &mut threads[slot], slot })
    }

    /// The common case of an event that begins or ends a system call: the thread believed current
    /// is on its CPU, nothing interrupts it, its mode is `before`, and it is in a call if it should
    /// be. Settles the time. `None`: see [`Engine::settle_boundary`].
    #[inline(always)]
    pub(super) fn plain(
        cpus: &'a mut Cpus,
        threads: &'a mut Threads,
        now: Nanos,
        e: &Event,
        before: Mode,
    ) -> Option<At<'a>> {
        let c = cpus.known_mut(e.cpu)?;
        let (tid, slot) = c.plain();
        let t = &mut threads[slot];
        let from = c.charged_to;
        let span = now.wrapping_sub(from);
        let plain = tid == e.tid
            && t.mode == before
            && t.contending == 0
            && matches!(t.state, State::Running(_))
            && now < c.border
            && span < SHORTEST
            && t.living.begun().is_some_and(|m| m.call.is_some() == (before == Mode::Kernel));
        if !plain {
            return None;
        }
        debug_assert!(slot != Slot::IDLE && t.undecided.is_empty() && !t.spins && t.since <= now);
        // Same as in `charge`.
        c.charged_to = now;
        spend(c, t, before, span);
        t.ran(from, now, before.into());
        Some(At { c, t, slot })
    }
}

impl Engine {
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

    /// `SETTLED`: the time up to now is accounted for. False if nothing was done, because this is
    /// not the common case.
    #[inline(always)]
    pub(super) fn sys_enter<const SETTLED: bool>(
        &mut self,
        now: Nanos,
        e: &Event,
        nr: u32,
        args: ArgsRef,
        batch: &Batch,
    ) -> bool {
        let at = match SETTLED {
            true => At::new(&mut self.cpus, &mut self.threads, e.cpu),
            false => At::plain(&mut self.cpus, &mut self.threads, now, e, Mode::User),
        };
        let Some(At { c, t, slot }) = at else { return false };
        let beyond0 = beyond::<SETTLED>(t, now);
        let living = &mut *t.living;
        t.mode = Mode::Kernel;
        t.syscall_events += 1;
        if let Some(interval) = living.user_interval.take() {
            let ns = t.user_ns.saturating_sub(interval.since);
            self.costs.user_interval(nr, ns);
            self.user_intervals.add(slot, nr, ns, interval);
        }
        living.call = Some(Call {
            nr,
            start: now,
            beyond0,
            irq0: t.irq_ns,
            runnable0: t.woken_ns + t.preempted_ns,
            #[cfg(debug_assertions)]
            blocked0: t.blocked_ns,
            alone: Some(self.costs.enter()),
            inside: true,
            woke: false,
            with_sibling: false,
            stolen: 0,
        });
        c.counts.scalls += 1;
        let Some(traits) = self.traits.get(nr as usize) else { return true };
        match traits.entry {
            Entry::Nothing => {}
            Entry::FirstArgument => {
                if let Some(first) = args.first() {
                    self.waits.plain_call_begins(now, slot, traits.class, first);
                }
            }
            Entry::Special => self.enters_specially(now, e.cpu, slot, *traits, batch.args(args)),
        }
        true
    }

    /// What few calls change when they begin.
    #[inline(never)]
    fn enters_specially(
        &mut self,
        now: Nanos,
        cpu: Cpu,
        slot: Slot,
        traits: CallTraits,
        args: Option<&[u64; 6]>,
    ) {
        let t = &mut self.threads[slot];
        if traits.class != Class::None {
            if let Some(args) = args {
                self.waits.call_begins(now, slot, t.pid, traits.class, args);
            }
        } else if traits.wait == WaitKind::Yield {
            let (events, running, user) = (t.syscall_events, t.running_at(now), t.user_ns);
            t.yields.get_or_insert_default().yields(events, running, user);
        }
        if traits.space {
            self.space_begins(cpu, slot);
        }
        self.tell_holders(now);
    }

    /// A call that changes the address space begins.
    fn space_begins(&mut self, cpu: Cpu, slot: Slot) {
        let with_sibling = self.has_sibling(cpu, slot);
        if let Some(call) = &mut self.threads[slot].living.call {
            call.with_sibling = with_sibling;
        }
    }

    /// Whether another CPU runs a thread of the same process.
    fn has_sibling(&self, cpu: Cpu, slot: Slot) -> bool {
        let pid = self.threads[slot].pid;
        pid != Pid::UNKNOWN
            && self.cpus.iter().any(|(other, c)| {
                other != cpu
                    && c.current()
                        .is_some_and(|(_, s)| s != Slot::IDLE && self.threads[s].pid == pid)
            })
    }

    /// Any case of a call that begins.
    #[inline(never)]
    pub(super) fn sys_enter_settled(
        &mut self,
        now: Nanos,
        e: &Event,
        nr: u32,
        args: ArgsRef,
        batch: &Batch,
    ) {
        if self.settle_boundary(now, e, Mode::User) {
            self.sys_enter::<true>(now, e, nr, args, batch);
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

    /// `SETTLED`: the time up to now is accounted for. `FACTS`: the caller asks for facts. False if
    /// nothing was done, because this is not the common case.
    #[inline(always)]
    pub(super) fn sys_exit<const SETTLED: bool, const FACTS: bool>(
        &mut self,
        now: Nanos,
        e: &Event,
        nr: u32,
        ret: i64,
    ) -> bool {
        let at = match SETTLED {
            true => At::new(&mut self.cpus, &mut self.threads, e.cpu),
            false => At::plain(&mut self.cpus, &mut self.threads, now, e, Mode::Kernel),
        };
        let Some(At { c, t, slot }) = at else { return false };
        t.mode = Mode::User;
        t.syscall_events += 1;
        let beyond = beyond::<SETTLED>(t, now);
        let living = &mut *t.living;
        // How many CPUs are busy when the application continues.
        living.user_interval =
            Some(UserInterval { since: t.user_ns, quarter: self.busy, faulted: false });
        let Some(call) = &living.call else {
            self.only_returned(now, e.cpu, slot, nr, ret);
            return true;
        };
        if call.inside {
            self.costs.leave();
        }
        let (start, alone, stolen) = (call.start, call.alone, call.stolen);
        let (woke, with_sibling) = (call.woke, call.with_sibling);
        let elapsed = now - start;
        let (nr, ret) = number_and_result(call.nr, self.sigreturn, nr, ret);
        let stats = living.calls.entry(nr);
        stats.returned(elapsed, ret);
        // Most calls keep their CPU from beginning to end.
        let split = if beyond == call.beyond0 && t.irq_ns == call.irq0 {
            #[cfg(debug_assertions)]
            assert_eq!(t.blocked_ns, call.blocked0);
            living.call = None;
            stats.running += elapsed;
            if woke {
                stats.sleeps_and_wakes += elapsed;
            }
            Split { running: elapsed, interrupted: 0, runnable: 0, blocked: 0 }
        } else {
            let running = elapsed.wrapping_add(beyond.wrapping_sub(call.beyond0));
            spent_in_parts(t, nr, elapsed, running)
        };
        if FACTS && let Some(facts) = &mut self.facts {
            let (cpu, split) = (e.cpu, Some(split));
            facts.rows.push(Fact::Call(Return { start, end: now, slot, cpu, nr, ret, split }));
        }
        let (own, slept) = (split.running, split.blocked > 0);
        self.costs.call(nr, now, slot, own.saturating_sub(stolen), alone, slept);
        let Some(traits) = self.traits.get(nr as usize) else { return true };
        c.counts.returned(traits.sort, ret);
        if traits.returns {
            let returns = Returns { nr, ret, start, own, slept, woke, with_sibling };
            self.returns_specially(now, e.cpu, slot, *traits, &returns);
        }
        true
    }

    /// What few calls change when they return.
    #[inline(never)]
    fn returns_specially(
        &mut self,
        now: Nanos,
        cpu: Cpu,
        slot: Slot,
        traits: CallTraits,
        of: &Returns,
    ) {
        let pid = self.threads[slot].pid;
        if traits.class.returns() {
            let mutex = self.waits.call_returns(now, slot, pid, traits.class, of.start, of.ret);
            if let Some(mutex) = mutex {
                if !of.woke && !of.slept {
                    self.threads[slot].living.calls.entry(of.nr).sleeps_and_wakes += of.own;
                }
                if let Some(steps) = &mut self.waits.steps {
                    steps.contended(slot, mutex, of.own);
                }
            }
        }
        if traits.space {
            let siblings = (of.with_sibling, self.has_sibling(cpu, slot));
            let (nr, own, slept) = (of.nr, of.own, of.slept);
            self.spaces.call(now, &SpaceCall { nr, slot, pid, own, siblings, slept });
        }
        self.tell_holders(now);
    }

    /// Any case of a call that returns.
    #[inline(never)]
    pub(super) fn sys_exit_settled<const FACTS: bool>(
        &mut self,
        now: Nanos,
        e: &Event,
        nr: u32,
        ret: i64,
    ) {
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
        // See `number_and_result`.
        let ret = if nr == u32::MAX { 0 } else { ret };
        t.living.calls.entry(nr).only_returned(ret);
        if let Some(facts) = &mut self.facts {
            let call = Return { start: now, end: now, slot, cpu, nr, ret, split: None };
            facts.rows.push(Fact::Call(call));
        }
        if let Some(traits) = self.traits.get(nr as usize) {
            self.cpus.get_mut(cpu).counts.returned(traits.sort, ret);
        }
    }
}

/// [`Thread::ran_beyond`], also if the thread turned out not to run.
#[inline(always)]
fn beyond<const SETTLED: bool>(t: &Thread, now: Nanos) -> Nanos {
    match SETTLED {
        true => t.running_at(now).wrapping_sub(now),
        false => t.ran_beyond(),
    }
}

/// If the exit does not give the number (LTTng up to 2.5), that of the entry is used. rt_sigreturn
/// returns as number -1, with the registers of the interrupted code: it has no result.
#[inline(always)]
fn number_and_result(entered: u32, sigreturn: Option<u32>, nr: u32, ret: i64) -> (u32, i64) {
    match nr {
        u32::MAX if Some(entered) == sigreturn => (entered, 0),
        u32::MAX => (entered, ret),
        nr => (nr, ret),
    }
}

/// The thread's call did not keep its CPU from beginning to end, or was interrupted.
#[inline(never)]
fn spent_in_parts(t: &mut Thread, nr: u32, elapsed: Nanos, running: Nanos) -> Split {
    let Some(call) = t.living.call.take() else {
        return Split { running, interrupted: 0, runnable: 0, blocked: 0 };
    };
    let interrupted = t.irq_ns - call.irq0;
    let own = running.saturating_sub(interrupted);
    let runnable = t.woken_ns + t.preempted_ns - call.runnable0;
    // Time that no event explains was not on a CPU as far as known: not running either.
    let blocked = elapsed.saturating_sub(running + runnable);
    let stats = t.living.calls.entry(nr);
    stats.running += own;
    stats.interrupted += interrupted;
    stats.runnable += runnable;
    stats.blocked += blocked;
    if call.woke || blocked > 0 {
        stats.sleeps_and_wakes += own;
    }
    Split { running: own, interrupted, runnable, blocked }
}

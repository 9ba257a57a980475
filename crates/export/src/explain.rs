//! Explains facts: ids of threads, objects and handlers become names, each looked up once.

use crate::facts::{
    Address, CallRow, Flag, Id, IrqRow, LockWaitRow, Ns, Number, RunRow, SwitchRow, Time, WaitRow,
    WakeupRow,
};
use crate::rows::{Pool, Word};
use holdup_attribution::Attribution;
use holdup_passes::{
    Analysis, Cause, Ended, FutexUse, Handled, Handler, LockSource, LockWait, LockWaiter, Object,
    Return, Run, RunEnd, Slept, Slot, Switch, WakeEvent, Wakeup,
};
use holdup_trace::{Cpu, Nanos, TaskState};
use rustc_hash::FxHashMap;

/// A thread, as it is shown in rows.
#[derive(Clone, Copy)]
pub(crate) struct Who {
    pub(crate) tid: u32,
    pub(crate) pid: Option<u32>,
    pub(crate) comm: Word,
    kthread: bool,
    /// Its undivided time was the application's.
    application: bool,
    /// Its rows were requested.
    pub(crate) wanted: bool,
}

/// An object, as it is shown in rows.
#[derive(Clone, Copy)]
pub(crate) struct What {
    id: u32,
    pub(crate) kind: Word,
    pub(crate) usage: Option<Word>,
    pub(crate) name: Word,
    harmful: bool,
    rule: Word,
}

/// Makes rows from facts.
pub(crate) struct Explain<'a> {
    analysis: &'a Analysis,
    judged: &'a Attribution<'a>,
    pub(crate) pool: Pool,
    threads: Vec<Option<Who>>,
    objects: FxHashMap<Object, What>,
    handlers: FxHashMap<Handler, (Word, u64, Word)>,
    calls: FxHashMap<u32, Word>,
    errors: FxHashMap<i64, Word>,
    states: FxHashMap<TaskState, Word>,
    locks: FxHashMap<(u64, bool), Option<Word>>,
    callers: FxHashMap<u64, Option<Word>>,
    start: Nanos,
    sees_switches: bool,
    sees_interrupts: bool,
}

/// The words for a cause.
pub(crate) fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::ThreadSync => "thread-sync",
        Cause::KernelService => "kernel-service",
        Cause::KernelLock => "kernel-lock",
        Cause::Io => "io",
        Cause::External => "external",
        Cause::Unknown => "unknown",
    }
}

impl<'a> Explain<'a> {
    pub(crate) fn new(judged: &'a Attribution<'a>) -> Explain<'a> {
        let analysis = judged.analysis;
        let caps = &analysis.capabilities;
        Explain {
            analysis,
            judged,
            pool: Pool::default(),
            threads: Vec::new(),
            objects: FxHashMap::default(),
            handlers: FxHashMap::default(),
            calls: FxHashMap::default(),
            errors: FxHashMap::default(),
            states: FxHashMap::default(),
            locks: FxHashMap::default(),
            callers: FxHashMap::default(),
            start: analysis.start,
            sees_switches: caps.switches,
            sees_interrupts: caps.irqs || caps.softirqs,
        }
    }

    /// Time since the trace's start.
    fn at(&self, time: Nanos) -> Ns {
        Ns(time.saturating_sub(self.start))
    }

    #[inline]
    pub(crate) fn who(&mut self, slot: Slot) -> Who {
        match self.threads.get(slot.0 as usize) {
            Some(Some(who)) => *who,
            _ => self.meet(slot),
        }
    }

    #[cold]
    fn meet(&mut self, slot: Slot) -> Who {
        let t = self.analysis.thread(slot);
        let idle = slot == Slot::IDLE;
        let who = Who {
            tid: t.tid.0,
            pid: if idle { Some(0) } else { self.analysis.pid(t) },
            comm: self.pool.word(&self.analysis.slot_comm(slot)),
            kthread: t.is_kthread(),
            application: !t.is_kthread() && t.was_application(),
            wanted: !idle && self.analysis.wanted(t),
        };
        let i = slot.0 as usize;
        if i >= self.threads.len() {
            self.threads.resize((i + 1).next_power_of_two(), None);
        }
        self.threads[i] = Some(who);
        who
    }

    pub(crate) fn what(&mut self, object: Object) -> What {
        let object = self.analysis.final_object(object);
        if let Some(&what) = self.objects.get(&object) {
            return what;
        }
        let name = self.pool.word(&self.analysis.object_name(object));
        let what = match self.judged.objects.get(&object) {
            Some(o) => What {
                id: object.0,
                kind: self.pool.word(self.analysis.kind_name(object, o.kind)),
                usage: o.stats.usage.map(|u: FutexUse| self.pool.word(u.name())),
                name,
                harmful: o.rule.is_harmful(),
                rule: self.pool.word(o.rule.id()),
            },
            None => {
                let other = self.pool.word("other");
                let rule = self.pool.word(holdup_attribution::WaitRule::default().id());
                What { id: object.0, kind: other, usage: None, name, harmful: false, rule }
            }
        };
        self.objects.insert(object, what);
        what
    }

    pub(crate) fn call(&mut self, nr: u32) -> Word {
        let (analysis, pool) = (self.analysis, &mut self.pool);
        *self.calls.entry(nr).or_insert_with(|| pool.word(&analysis.call_name(nr)))
    }

    fn errno(&mut self, ret: i64) -> Option<Word> {
        if !(-4095..0).contains(&ret) {
            return None;
        }
        let pool = &mut self.pool;
        Some(
            *self.errors.entry(ret).or_insert_with(|| {
                pool.word(&holdup_passes::errno_word(ret.unsigned_abs() as u32))
            }),
        )
    }

    pub(crate) fn handler(&mut self, handler: Handler) -> (Word, u64, Word) {
        if let Some(&known) = self.handlers.get(&handler) {
            return known;
        }
        let (kind, id, name) = self.analysis.handler(handler);
        let words = (self.pool.word(kind), id, self.pool.word(&name));
        self.handlers.insert(handler, words);
        words
    }

    fn state(&mut self, state: TaskState) -> Word {
        let pool = &mut self.pool;
        *self.states.entry(state).or_insert_with(|| pool.word(&state.to_string()))
    }

    pub(crate) fn lock(&mut self, wait: &LockWait) -> Option<Word> {
        let (analysis, pool) = (self.analysis, &mut self.pool);
        let dep = wait.source == LockSource::Lockdep;
        *self.locks.entry((wait.lock, dep)).or_insert_with(|| {
            analysis.lock_named(wait.lock, wait.source).map(|name| pool.word(&name))
        })
    }

    fn caller(&mut self, caller: u64) -> Option<Word> {
        let (analysis, pool) = (self.analysis, &mut self.pool);
        *self
            .callers
            .entry(caller)
            .or_insert_with(|| analysis.lock_caller(caller).map(|name| pool.word(&name)))
    }

    /// A waiter for a lock; `None` if its rows were not requested.
    pub(crate) fn waiter(&mut self, waiter: LockWaiter) -> Option<Option<Who>> {
        match waiter {
            LockWaiter::Thread(slot) => {
                Some(Some(self.who(slot))).filter(|w| w.is_some_and(|w| w.wanted))
            }
            LockWaiter::Idle => {
                let who = self.who(Slot::IDLE);
                (!self.analysis.has_filter()).then_some(Some(who))
            }
            LockWaiter::Unknown => (!self.analysis.has_filter()).then_some(None),
        }
    }

    pub(crate) fn switch(&mut self, s: &Switch) -> Option<SwitchRow> {
        let (prev, next) = (s.prev.map(|p| self.who(p)), s.next.map(|n| self.who(n)));
        let wanted = |who: Option<Who>| who.is_some_and(|w| w.wanted);
        if self.analysis.has_filter() && !wanted(prev) && !wanted(next) {
            return None;
        }
        Some(SwitchRow {
            at_ns: self.at(s.at),
            time_ns: Time(s.at),
            cpu: cpu(s.cpu),
            prev_tid: prev.map(|w| Id(w.tid)),
            prev_pid: prev.and_then(|w| w.pid).map(Id),
            prev_comm: prev.map(|w| w.comm),
            prev_state: prev.map(|_| self.state(s.state)),
            stay_ns: s.stay.map(Ns),
            next_tid: next.map(|w| Id(w.tid)),
            next_pid: next.and_then(|w| w.pid).map(Id),
            next_comm: next.map(|w| w.comm),
        })
    }

    pub(crate) fn run(&mut self, r: &Run) -> Option<RunRow> {
        let who = self.who(r.slot);
        if !who.wanted {
            return None;
        }
        let (user, kernel) = match who.application {
            true => (r.user + r.undecided, r.kernel),
            false => (r.user, r.kernel + r.undecided),
        };
        // As in the table of processes.
        let calls = &self.analysis.capabilities.syscalls;
        let blurred = calls.chosen().is_some() && !who.kthread;
        let split = calls.are_all() || who.kthread;
        let ended = self.pool.word(match r.how {
            RunEnd::Slept => "slept",
            RunEnd::Preempted => "preempted",
            RunEnd::Exited => "exited",
            RunEnd::Unseen => "unseen",
            RunEnd::Trace => "trace-end",
        });
        Some(RunRow {
            at_ns: self.at(r.start),
            start_ns: Time(r.start),
            end_ns: Time(r.end),
            duration_ns: Ns(r.end - r.start),
            cpu: cpu(r.cpu),
            tid: Id(who.tid),
            pid: who.pid.map(Id),
            comm: who.comm,
            kthread: Flag(who.kthread),
            combined_ns: Ns(user + kernel),
            app_ns: (!blurred).then_some(Ns(user)),
            kernel_ns: (!blurred && split).then_some(Ns(kernel)),
            interrupted_ns: self.sees_interrupts.then_some(Ns(r.interrupted)),
            delay_ns: r.delay.filter(|_| self.analysis.capabilities.wakeups).map(Ns),
            ended,
        })
    }

    pub(crate) fn returned(&mut self, c: &Return) -> Option<CallRow> {
        let who = self.who(c.slot);
        if !who.wanted {
            return None;
        }
        let split = c.split.filter(|_| self.sees_switches);
        Some(CallRow {
            at_ns: self.at(c.start),
            start_ns: Time(c.start),
            end_ns: Time(c.end),
            duration_ns: Ns(c.end - c.start),
            cpu: cpu(c.cpu),
            tid: Id(who.tid),
            pid: who.pid.map(Id),
            comm: who.comm,
            nr: Id(c.nr),
            name: self.call(c.nr),
            ret: Number(c.ret),
            errno: self.errno(c.ret),
            cpu_ns: split.map(|s| Ns(s.running)),
            interrupted_ns: split.map(|s| Ns(s.interrupted)),
            runnable_ns: split.map(|s| Ns(s.runnable)),
            blocked_ns: split.map(|s| Ns(s.blocked)),
            returned_only: Flag(c.split.is_none()),
        })
    }

    pub(crate) fn slept(&mut self, s: &Slept) -> Option<WaitRow> {
        let who = self.who(s.slot);
        if !who.wanted {
            return None;
        }
        let (what, waker) = (self.what(s.object), s.waker.map(|w| self.who(w)));
        let ended = self.pool.word(match s.ended {
            Ended::Woken => "woken",
            Ended::Unseen => "unseen",
            Ended::Trace => "trace-end",
        });
        Some(WaitRow {
            at_ns: self.at(s.start),
            start_ns: Time(s.start),
            end_ns: Time(s.end),
            duration_ns: Ns(s.end - s.start),
            tid: Id(who.tid),
            pid: who.pid.map(Id),
            comm: who.comm,
            kind: what.kind,
            usage: what.usage,
            object: what.name,
            object_id: Id(what.id),
            call: s.nr.map(|nr| self.call(nr)),
            cause: self.pool.word(cause(s.cause)),
            harmful: Flag(what.harmful),
            rule: what.rule,
            waker_tid: waker.map(|w| Id(w.tid)),
            waker_pid: waker.and_then(|w| w.pid).map(Id),
            waker_comm: waker.map(|w| w.comm),
            ended,
        })
    }

    pub(crate) fn lock_wait(&mut self, w: &LockWait) -> Option<LockWaitRow> {
        let who = self.waiter(w.waiter)?;
        let part = |ns| self.sees_switches.then_some(Ns(ns));
        let (spin_ns, runnable_ns) = (part(w.split.running), part(w.split.runnable));
        let block_ns = part(w.split.blocked);
        Some(LockWaitRow {
            at_ns: self.at(w.start),
            start_ns: Time(w.start),
            end_ns: Time(w.end),
            duration_ns: Ns(w.end - w.start),
            tid: who.map(|w| Id(w.tid)),
            pid: who.and_then(|w| w.pid).map(Id),
            comm: who.map(|w| w.comm),
            address: Address(w.lock),
            lock: self.lock(w),
            lock_type: w.kind.map(|kind| self.pool.word(kind.name())),
            caller: self.caller(w.caller),
            spin_ns,
            runnable_ns,
            block_ns,
            source: self.pool.word(match w.source {
                LockSource::Contention => "contention",
                LockSource::Lockdep => "lockdep",
            }),
        })
    }

    pub(crate) fn wakeup(&mut self, w: &Wakeup) -> Option<WakeupRow> {
        let who = self.who(w.slot);
        if !who.wanted {
            return None;
        }
        let waker = w.waker.map(|w| self.who(w));
        let event = self.pool.word(match w.event {
            WakeEvent::Waking => "waking",
            WakeEvent::Wakeup => "wakeup",
            WakeEvent::New => "wakeup-new",
        });
        Some(WakeupRow {
            at_ns: self.at(w.at),
            time_ns: Time(w.at),
            event,
            cpu: cpu(w.cpu),
            tid: Id(who.tid),
            pid: who.pid.map(Id),
            comm: who.comm,
            waker_tid: waker.map(|w| Id(w.tid)),
            waker_pid: waker.and_then(|w| w.pid).map(Id),
            waker_comm: waker.map(|w| w.comm),
            target_cpu: (w.target != Cpu::UNKNOWN).then(|| cpu(w.target)),
        })
    }

    pub(crate) fn irq(&mut self, i: &Handled) -> IrqRow {
        let (kind, id, name) = self.handler(i.handler);
        IrqRow {
            at_ns: self.at(i.start),
            start_ns: Time(i.start),
            end_ns: Time(i.end),
            duration_ns: Ns(i.end.saturating_sub(i.start)),
            cpu: cpu(i.cpu),
            kind,
            id: Address(id),
            name,
        }
    }
}

fn cpu(cpu: Cpu) -> Id {
    Id(cpu.0.into())
}

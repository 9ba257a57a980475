//! The text of an event.

use crate::Tracker;
use crate::names::{Spelled, Threads};
use crate::put::Out;
use crate::word::Word;
use holdup_syscalls::{Arch, arguments, errno_name};
use holdup_trace::{
    Batch, Cpu, Event, EventId, NameId, StatKind, Tid, TraceInfo, What, softirq_name,
};

/// Knows the trace's names.
pub(crate) struct Describe<'a> {
    info: &'a TraceInfo,
    names: Spelled,
    threads: Threads,
    calls: Vec<Option<Word>>,
    /// By event: the call of a `sys_enter_NAME` or `sys_exit_NAME`.
    named_calls: Vec<Option<Word>>,
}

impl<'a> Describe<'a> {
    pub(crate) fn new(info: &'a TraceInfo) -> Describe<'a> {
        let arch = Arch::from_uname(info.arch.as_deref().unwrap_or("x86_64"));
        let named = |name: &str| {
            let call = name.strip_prefix("sys_enter_").or_else(|| name.strip_prefix("sys_exit_"));
            // LTTng has one event for all calls that it does not know: their numbers tell.
            call.filter(|c| *c != "unknown").map(|c| Word::new(&holdup_render::escape(c)))
        };
        Describe {
            info,
            names: Spelled::new(info.names.clone(), |name| {
                holdup_render::escape(name).into_owned()
            }),
            threads: Threads::default(),
            calls: (0..holdup_syscalls::table_len(arch) as u32)
                .map(|nr| holdup_syscalls::name(arch, nr).map(Word::new))
                .collect(),
            named_calls: info.events.iter().map(|e| named(e.short_name())).collect(),
        }
    }

    /// The call of an event; `None` for an unknown number.
    #[inline]
    pub(crate) fn call(&self, e: &Event, nr: u32) -> Option<&Word> {
        match self.named_calls.get(e.id.0 as usize) {
            Some(Some(name)) => Some(name),
            _ => self.calls.get(nr as usize)?.as_ref(),
        }
    }

    /// The kernel function at or around `address`.
    pub(crate) fn symbol(&self, address: u64) -> Option<(&str, u64)> {
        self.info.symbols.lookup(address)
    }

    /// The file's name for an event.
    pub(crate) fn event_name(&self, id: EventId) -> &'a str {
        self.info.events.get(id.0 as usize).map_or("?", |e| &e.name)
    }

    fn name(&mut self, out: &mut Out, id: NameId) {
        out.word(self.names.get(id));
    }

    /// `COMM/TID`; returns how many more bytes than columns the text has.
    #[inline(always)]
    pub(crate) fn thread(&mut self, out: &mut Out, tid: Tid, comm: NameId) -> usize {
        self.threads.write(out, &mut self.names, tid, comm)
    }

    fn at(&self, out: &mut Out, address: u64) {
        match self.symbol(address) {
            Some((name, offset)) => {
                out.str(name);
                if offset > 0 {
                    out.push(b'+');
                    out.hex(offset);
                }
            }
            None => out.hex(address),
        }
    }

    fn call_name(&self, out: &mut Out, e: &Event, nr: u32) {
        match self.call(e, nr) {
            Some(name) => out.word(name),
            None => {
                out.str("syscall_");
                out.int(nr as i32);
            }
        }
    }

    fn woken(&mut self, out: &mut Out, tid: Tid, comm: NameId, target: Cpu) {
        self.thread(out, tid, comm);
        if target != Cpu::UNKNOWN {
            out.str(" on cpu ");
            out.int(target.0);
        }
    }

    fn work(&mut self, out: &mut Out, work: u64, function: u64, name: NameId) {
        if name != NameId::NONE {
            self.name(out, name);
        } else {
            self.at(out, function);
        }
        out.str(" work ");
        out.hex(work);
    }

    fn lock(&mut self, out: &mut Out, lock: u64, name: NameId) {
        if name != NameId::NONE {
            self.name(out, name);
            out.push(b' ');
        }
        out.str("lock ");
        out.hex(lock);
    }

    /// The description of `e`; nothing for events that holdup does not decode.
    pub(crate) fn text(&mut self, out: &mut Out, e: &Event, batch: &Batch, tracker: &Tracker) {
        match e.what {
            What::Other => {}
            What::Switch { prev, next, prev_state, prev_comm, next_comm, .. } => {
                self.thread(out, prev, prev_comm);
                out.str(" -> ");
                self.thread(out, next, next_comm);
                out.str(" (");
                prev_state.spell(|letter| out.push(letter));
                out.push(b')');
            }
            What::Waking { tid, comm, target, .. }
            | What::Wakeup { tid, comm, target, .. }
            | What::WakeupNew { tid, comm, target, .. } => {
                self.woken(out, tid, comm, target);
            }
            What::Migrate { tid, from, to } => {
                self.thread(out, tid, tracker.comm_of(tid));
                out.str(" cpu ");
                out.int(from.0);
                out.str(" -> ");
                out.int(to.0);
            }
            What::Fork { child, child_comm, .. } => {
                out.str("new ");
                self.thread(out, child, child_comm);
            }
            What::Exec { tid, old, filename } => {
                self.name(out, filename);
                if tid != old {
                    out.str(" tid ");
                    out.int(old.0 as i32);
                    out.str(" -> ");
                    out.int(tid.0 as i32);
                }
            }
            What::Exit { tid, comm } => {
                self.thread(out, tid, comm);
            }
            What::StatRuntime { tid, runtime } => {
                self.thread(out, tid, tracker.comm_of(tid));
                out.str(" ran ");
                out.decimal::<3>(runtime, 0);
                out.str(" us");
            }
            What::StatDelay { kind, tid, delay } => {
                self.thread(out, tid, tracker.comm_of(tid));
                out.push(b' ');
                out.str(stat_name(kind));
                out.push(b' ');
                out.decimal::<3>(delay, 0);
                out.str(" us");
            }
            What::BlockedReason { tid, io_wait, caller, name } => {
                self.thread(out, tid, tracker.comm_of(tid));
                out.str(if io_wait {
                    " slept for I/O in "
                } else {
                    " slept, but not for I/O, in "
                });
                match name {
                    NameId::NONE => self.at(out, caller),
                    name => self.name(out, name),
                }
            }
            What::TaskParks { task, on, why } => {
                out.str("parks task ");
                out.short_hex(task);
                out.str(" for ");
                out.str(why.name());
                if on != 0 {
                    out.str(" at ");
                    out.short_hex(on);
                }
            }
            What::Runtime { does, with } => {
                out.str(does.name());
                if with != 0 {
                    out.push(b' ');
                    out.short_hex(with);
                }
            }
            What::PiSetPrio { tid, old, new } => {
                self.thread(out, tid, tracker.comm_of(tid));
                out.str(" priority ");
                out.int(old);
                out.str(" -> ");
                out.int(new);
            }
            What::SysEnter { nr, args } => {
                self.call_name(out, e, nr);
                out.push(b'(');
                let takes = self.call(e, nr).map_or(usize::MAX, |name| arguments(name.as_str()));
                for (i, &arg) in batch.args(args).into_iter().flatten().take(takes).enumerate() {
                    if i > 0 {
                        out.str(", ");
                    }
                    out.short_hex(arg);
                }
                out.push(b')');
            }
            What::SysExit { nr, ret } => {
                self.call_name(out, e, nr);
                out.str(" = ");
                match errno(ret) {
                    Some(name) => {
                        out.int(ret);
                        out.push(b' ');
                        out.str(name);
                    }
                    // An address reads better in hexadecimal.
                    None if ret > u32::MAX.into() => out.hex(ret as u64),
                    None => out.int(ret),
                }
            }
            What::IrqEntry { irq, name } => {
                out.int(irq);
                out.push(b' ');
                self.name(out, name);
            }
            What::IrqExit { irq } => out.int(irq),
            What::VectorEntry { vector, name } => {
                out.int(vector);
                out.push(b' ');
                self.name(out, name);
            }
            What::VectorExit { vector } => out.int(vector),
            What::SoftirqRaise { vec } | What::SoftirqEntry { vec } | What::SoftirqExit { vec } => {
                match softirq_name(vec) {
                    Some(name) => out.str(name),
                    None => out.int(vec),
                }
            }
            What::WorkQueue { work, function, name } | What::WorkStart { work, function, name } => {
                self.work(out, work, function, name)
            }
            What::WorkEnd { work } => {
                out.str("work ");
                out.hex(work);
            }
            What::PageFault { address, ip, .. } => {
                out.str("address ");
                out.hex(address);
                out.str(" ip ");
                self.at(out, ip);
            }
            What::ContentionBegin { lock, flags, stack } => {
                self.lock(out, lock, NameId::NONE);
                out.str(" (");
                lock_flags(out, flags);
                out.push(b')');
                if let Some(&caller) = batch.stack(stack).first() {
                    out.str(" at ");
                    self.at(out, caller);
                }
            }
            What::ContentionEnd { lock, ret } => {
                self.lock(out, lock, NameId::NONE);
                out.str(" ret ");
                out.int(ret);
            }
            What::ContendedRelease { lock } => self.lock(out, lock, NameId::NONE),
            What::LockAcquire { lock, name, flags } => {
                self.lock(out, lock, name);
                for (bit, word) in [(1, " try"), (2, " read")] {
                    if flags & bit != 0 {
                        out.str(word);
                    }
                }
            }
            What::LockContended { lock, name }
            | What::LockAcquired { lock, name }
            | What::LockRelease { lock, name } => {
                self.lock(out, lock, name);
            }
            What::CpuIdle { state, cpu } => {
                out.str("cpu ");
                out.int(cpu.0);
                if state == u32::MAX {
                    out.str(" leaves idle");
                } else {
                    out.str(" enters state ");
                    out.int(state);
                }
            }
            What::Sample { period, stack } => {
                out.str("period ");
                out.int(period);
                if let Some(&ip) = batch.stack(stack).first() {
                    out.str(" ip ");
                    self.at(out, ip);
                }
            }
            What::Readings { of, .. } => {
                for (i, r) in batch.readings(of).iter().enumerate() {
                    out.str(if i == 0 { "" } else { ", " });
                    out.str(&holdup_render::escape(self.event_name(r.event)));
                    out.str(" at ");
                    out.int(r.value);
                }
            }
            What::Stack { of } | What::Leaves { of, .. } => {
                for (i, &frame) in batch.stack(of).iter().enumerate() {
                    out.str(if i == 0 { "" } else { " < " });
                    self.at(out, frame);
                }
            }
            What::Mapped { pid, mapping } => {
                let Some(m) = batch.mapping(mapping) else { return };
                out.str(&holdup_render::escape(&self.info.names.get(m.file)));
                out.str(" at ");
                out.hex(m.start);
                out.str(" to ");
                out.hex(m.start.saturating_add(m.len));
                if !m.kernel {
                    out.str(" of pid ");
                    out.int(pid.0 as i32);
                }
            }
            What::InGroup { tid, group } => {
                out.str("tid ");
                out.int(tid.0 as i32);
                out.str(" in ");
                out.str(&holdup_render::escape(&self.info.names.get(group)));
            }
            What::AttachTask { tid, path, .. } => {
                self.thread(out, tid, tracker.comm_of(tid));
                out.str(" to ");
                out.str(&holdup_render::escape(&self.info.names.get(path)));
            }
            What::Comm { tid, comm, exec, .. } => {
                self.thread(out, tid, comm);
                if exec {
                    out.str(" (exec)");
                }
            }
            What::TaskNew { tid, parent_tid, .. } => {
                out.str("new tid ");
                out.int(tid.0 as i32);
                out.str(" of ");
                self.thread(out, parent_tid, tracker.comm_of(parent_tid));
            }
            What::TaskEnd { tid, .. } => {
                self.thread(out, tid, tracker.comm_of(tid));
            }
            What::ContextSwitch { out: leaves, preempt, .. } => {
                out.str(match (leaves, preempt) {
                    (true, true) => "out, preempted",
                    (true, false) => "out",
                    _ => "in",
                });
            }
            What::Lost { count } => {
                out.int(count);
                out.str(" events");
            }
        }
    }
}

/// The name of an error that a call returned.
pub(crate) fn errno(ret: i64) -> Option<&'static str> {
    if (-4095..0).contains(&ret) { errno_name(-ret as u32) } else { None }
}

/// The name of what a statistic measures.
pub(crate) fn stat_name(kind: StatKind) -> &'static str {
    match kind {
        StatKind::Wait => "waited",
        StatKind::Sleep => "slept",
        StatKind::IoWait => "iowait",
        StatKind::Blocked => "blocked",
    }
}

/// `LCB_F_*` in perf's spelling.
pub(crate) fn lock_flags(out: &mut Out, flags: u32) {
    let start = out.len();
    for (i, name) in ["SPIN", "READ", "WRITE", "RT", "PERCPU", "MUTEX"].iter().enumerate() {
        if flags & 1 << i != 0 {
            if out.len() > start {
                out.push(b'|');
            }
            out.str(name);
        }
    }
    if flags >> 6 != 0 || flags == 0 {
        if out.len() > start {
            out.push(b'|');
        }
        out.short_hex((flags >> 6 << 6).into());
    }
}

//! The fields of the events holdup interprets, one family a file.
//!
//! Each function reads the text after the event's name and returns the same [`What`] as the binary
//! readers. `None` means that a field is missing without which the event is useless.

mod irq;
mod lock;
mod record;
pub(crate) mod sched;
mod syscall;

use crate::events::Entry;
use crate::kind::Kind;
use crate::line::Line;
use crate::scan::{Keys, blank, hex, int, trim_start};
use holdup_trace::{Batch, Cpu, EventKind, LocalNames, NameId, StackRef, StatKind, Tid, What};

/// What the field readers need besides the text.
pub(crate) struct Context<'a> {
    pub(crate) names: &'a mut LocalNames,
    pub(crate) batch: &'a mut Batch,
    /// The sched_switch letters come from an old trace-cmd; see [`sched`].
    pub(crate) old_states: bool,
    /// Positions of the names that were read, if the caller asks for them.
    pub(crate) found: Option<&'a mut Vec<(usize, usize)>>,
}

impl Context<'_> {
    #[inline]
    fn name(&mut self, hint: u32, name: &[u8]) -> NameId {
        self.unread(Some(name));
        self.names.name(hint, name)
    }

    /// Record the position of a name that is not used.
    #[inline]
    fn unread(&mut self, name: Option<&[u8]>) {
        if let (Some(found), Some(name)) = (&mut self.found, name) {
            found.push((name.as_ptr() as usize, name.len()));
        }
    }
}

/// Read the fields of `line`, whose event is `entry`.
#[inline]
pub(crate) fn what(entry: &Entry, line: &Line<'_>, cx: &mut Context<'_>) -> Option<What> {
    let body = line.body;
    match entry.kind {
        Kind::Other => Some(What::Other),
        Kind::Event(event) => fields(event, entry, (body, line.in_irq), cx),
        // The caller handles the address on the same line, if there is one.
        Kind::Sample => {
            Some(What::Sample { period: line.period.unwrap_or(1), stack: StackRef::NONE })
        }
        Kind::RecordComm => record::comm(body, cx),
        Kind::RecordFork => record::fork(body),
        Kind::RecordExit => record::exit(body),
        Kind::RecordSwitch => record::switch(body),
        Kind::RecordLost => record::lost(body),
        Kind::RecordOther => None,
    }
}

/// Read the fields of an event, from the text after its name, and its flags.
#[inline]
fn fields(
    event: EventKind,
    entry: &Entry,
    (body, in_irq): (&[u8], bool),
    cx: &mut Context<'_>,
) -> Option<What> {
    match event {
        EventKind::Switch => sched::switch(body, cx),
        EventKind::Waking => sched::wake(body, cx).map(|w| What::Waking {
            tid: w.tid,
            comm: w.comm,
            prio: w.prio,
            target: w.target,
            in_irq,
        }),
        EventKind::Wakeup => sched::wake(body, cx).map(|w| What::Wakeup {
            tid: w.tid,
            comm: w.comm,
            prio: w.prio,
            target: w.target,
        }),
        EventKind::WakeupNew => sched::wake(body, cx).map(|w| What::WakeupNew {
            tid: w.tid,
            comm: w.comm,
            prio: w.prio,
            target: w.target,
        }),
        EventKind::Migrate => sched::migrate(body, cx),
        EventKind::Fork => sched::fork(body, cx),
        EventKind::Exec => sched::exec(body, cx),
        EventKind::Exit => sched::exit(body, cx),
        EventKind::StatRuntime => sched::stat(body, b"runtime=", cx)
            .map(|(tid, runtime)| What::StatRuntime { tid, runtime }),
        EventKind::StatWait => sched::delay(body, StatKind::Wait, cx),
        EventKind::StatSleep => sched::delay(body, StatKind::Sleep, cx),
        EventKind::StatIoWait => sched::delay(body, StatKind::IoWait, cx),
        EventKind::StatBlocked => sched::delay(body, StatKind::Blocked, cx),
        EventKind::BlockedReason => sched::blocked_reason(body, cx),
        EventKind::AttachTask => sched::attach_task(body, cx),
        EventKind::PiSetPrio => sched::pi_setprio(body, cx),
        EventKind::SysEnter => syscall::enter(body, cx),
        EventKind::SysExit => syscall::exit(body),
        EventKind::SysEnterNamed => syscall::enter_named(body, entry.nr, cx),
        EventKind::SysExitNamed => syscall::exit_named(body, entry.nr),
        EventKind::IrqEntry => irq::entry(body, cx),
        EventKind::IrqExit => Some(What::IrqExit { irq: u32_of(body, b"irq=")? }),
        EventKind::VectorEntry => {
            let vector = u32_of(body, b"vector=")?;
            Some(What::VectorEntry { vector, name: cx.name(vector, entry.detail.as_bytes()) })
        }
        EventKind::VectorExit => Some(What::VectorExit { vector: u32_of(body, b"vector=")? }),
        EventKind::SoftirqRaise => Some(What::SoftirqRaise { vec: u32_of(body, b"vec=")? }),
        EventKind::SoftirqEntry => Some(What::SoftirqEntry { vec: u32_of(body, b"vec=")? }),
        EventKind::SoftirqExit => Some(What::SoftirqExit { vec: u32_of(body, b"vec=")? }),
        EventKind::WorkQueue => irq::work(body, cx).map(|w| What::WorkQueue {
            work: w.work,
            function: w.function,
            name: w.name,
        }),
        EventKind::WorkStart => irq::work(body, cx).map(|w| What::WorkStart {
            work: w.work,
            function: w.function,
            name: w.name,
        }),
        EventKind::WorkEnd => irq::work_address(body).map(|work| What::WorkEnd { work }),
        EventKind::PageFaultUser => irq::page_fault(body, true),
        EventKind::PageFaultKernel => irq::page_fault(body, false),
        EventKind::ContentionBegin => lock::contention_begin(body),
        EventKind::ContentionEnd => lock::contention_end(body),
        EventKind::ContendedRelease => lock::contended_release(body),
        EventKind::LockAcquire => lock::lockdep(body, true, cx).map(|l| What::LockAcquire {
            lock: l.lock,
            name: l.name,
            flags: l.flags,
        }),
        EventKind::LockContended => lock::lockdep(body, false, cx)
            .map(|l| What::LockContended { lock: l.lock, name: l.name }),
        EventKind::LockAcquired => lock::lockdep(body, false, cx)
            .map(|l| What::LockAcquired { lock: l.lock, name: l.name }),
        EventKind::LockRelease => {
            lock::lockdep(body, false, cx).map(|l| What::LockRelease { lock: l.lock, name: l.name })
        }
        EventKind::CpuIdle => {
            let mut k = Keys::new(body);
            let state = k.int(b"state=")? as u32;
            Some(What::CpuIdle { state, cpu: cpu(k.int(b"cpu_id=")?) })
        }
    }
}

fn u32_of(body: &[u8], key: &[u8]) -> Option<u32> {
    Keys::new(body).int(key).map(|n| n as u32)
}

fn tid(n: u64) -> Tid {
    Tid(n as u32)
}

fn cpu(n: u64) -> Cpu {
    Cpu(u16::try_from(n as u32).unwrap_or(u16::MAX))
}

/// `[120]`: the number in the last brackets of `s`, and the text before them.
fn bracketed(s: &[u8]) -> Option<(u64, &[u8])> {
    let open = s.iter().rposition(|&b| b == b'[')?;
    Some((int(&s[open + 1..])?, &s[..open]))
}

/// `perf script -F +ip,sym` adds the instruction's address and symbol after the fields.
#[inline]
fn without_address(name: &[u8]) -> &[u8] {
    let Some(space) = name.iter().position(|&b| blank(b)) else { return name };
    let rest = trim_start(&name[space..]);
    match hex(rest) {
        Some((_, n)) if n >= 8 && rest.get(n).is_none_or(|&b| blank(b)) => &name[..space],
        _ => name,
    }
}

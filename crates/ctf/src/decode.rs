//! Turns CTF events into holdup's events.

use crate::kind::{Meaning, reg};
use crate::lane::{Here, LaneCursor, LaneInfo, Next, Store};
use crate::packet::text;
use crate::schema::CallNumber;
use holdup_trace::{
    ArgsRef, Batch, Cpu, Event, EventId, EventKind, LocalNames, NameId, Nanos, Pid, Quality,
    QualityCode, Result, RunDecoder, StackRef, StatKind, Tid, What,
};

/// The thread that a CPU runs, from its switches.
///
/// At the beginning, and after a loss, the thread is the one that the next switch switches out.
/// Opening the trace has looked ahead for this; `hints` has these threads in order.
pub(crate) struct Current<'a> {
    tid: Tid,
    hints: std::slice::Iter<'a, Tid>,
}

impl<'a> Current<'a> {
    pub(crate) fn new(hints: &'a [Tid]) -> Current<'a> {
        let mut hints = hints.iter();
        Current { tid: hints.next().copied().unwrap_or(Tid::UNKNOWN), hints }
    }

    fn lost(&mut self) {
        self.tid = self.hints.next().copied().unwrap_or(Tid::UNKNOWN);
    }
}

/// Decodes one lane.
pub(crate) struct Decoder<'a> {
    cursor: LaneCursor<'a, false>,
    lane: &'a LaneInfo,
    current: Current<'a>,
    names: LocalNames,
    /// What went wrong before the first batch, to be reported with it.
    early: Quality,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(store: &'a Store, lane: &'a LaneInfo, names: LocalNames) -> Decoder<'a> {
        let mut early = Quality::default();
        let cursor = LaneCursor::new(store, &lane.lane, &mut early);
        Decoder { cursor, lane, current: Current::new(&lane.hints), names, early }
    }
}

impl RunDecoder for Decoder<'_> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        let mut quality = std::mem::take(&mut self.early);
        let cpu = self.lane.lane.cpu;
        let more = loop {
            if batch.is_full() {
                break true;
            }
            match self.cursor.next(&mut quality) {
                None => break false,
                Some(Next::Gap(gap)) => {
                    if gap.switches {
                        self.current.lost();
                    }
                    batch.events.push(Event {
                        ts: gap.ts,
                        tid: Tid::UNKNOWN,
                        pid: Pid::UNKNOWN,
                        comm: NameId::NONE,
                        cpu,
                        id: EventId::SIDEBAND,
                        what: What::Lost { count: gap.lost },
                    });
                }
                Some(Next::Event(here)) => {
                    let out = Place { cpu, current: &mut self.current.tid, batch };
                    decode(&here, &mut self.names, out, &mut quality);
                }
            }
        };
        batch.quality.absorb(&quality);
        Ok(more)
    }
}

/// Where an event goes, and what is known of it in advance.
struct Place<'a> {
    cpu: Cpu,
    /// The thread the CPU runs.
    current: &'a mut Tid,
    batch: &'a mut Batch,
}

impl Place<'_> {
    /// Add an event. Each kind of `what` has its own call, so that its fields are written in place:
    /// a common call would copy a value of any kind twice, as bytes.
    #[inline(always)]
    fn put(&mut self, here: &Here<'_>, names: &mut LocalNames, what: What) {
        let (stream, regs) = (here.stream, here.regs);
        let [own_cpu, own_tid, own_pid, own_comm] = here.class.own;
        let register = |r: u8| regs.int[usize::from(r)] as u32;
        let cpu = match own_cpu {
            true => Cpu(u16::try_from(register(reg::CPU)).unwrap_or(u16::MAX)),
            false => self.cpu,
        };
        let tid = match what {
            _ if stream.has_tid || own_tid => Tid(register(reg::TID)),
            What::Switch { prev, .. } => prev,
            // Events of an unknown CPU say nothing about any CPU's thread.
            _ if self.cpu == Cpu::UNKNOWN => Tid::UNKNOWN,
            _ => *self.current,
        };
        let comm = match stream.has_comm || own_comm {
            true => name(text(here.data, regs.text[usize::from(reg::COMM)]), tid, names),
            false => NameId::NONE,
        };
        self.batch.events.push(Event {
            ts: here.ts,
            tid,
            pid: if stream.has_pid || own_pid { Pid(register(reg::PID)) } else { Pid::UNKNOWN },
            comm,
            cpu,
            id: here.class.event,
            what,
        });
    }
}

#[inline(always)]
fn name(bytes: &[u8], hint: Tid, names: &mut LocalNames) -> NameId {
    match bytes.first_chunk::<16>() {
        Some(comm) if bytes.len() == 16 => names.comm(hint.0, *comm),
        _ if bytes.is_empty() => NameId::NONE,
        _ => names.name(hint.0, bytes),
    }
}

/// The fields of one event.
struct Values<'a, 'b> {
    here: &'b Here<'a>,
    names: &'b mut LocalNames,
}

impl Values<'_, '_> {
    #[inline(always)]
    fn int(&self, n: u8) -> u64 {
        self.here.regs.int[usize::from(reg::OWN + n)]
    }

    #[inline(always)]
    fn u32(&self, n: u8) -> u32 {
        self.int(n) as u32
    }

    #[inline(always)]
    fn call(&self) -> u32 {
        match self.here.class.nr {
            CallNumber::Known(nr) => nr,
            CallNumber::Field => self.u32(6),
        }
    }

    #[inline(always)]
    fn tid(&self, n: u8) -> Tid {
        Tid(self.u32(n))
    }

    fn cpu(&self, n: u8) -> Cpu {
        Cpu(u16::try_from(self.int(n)).unwrap_or(u16::MAX))
    }

    fn prio(&self, n: u8) -> i16 {
        (self.int(n) as i16).wrapping_add(self.here.stream.prio)
    }

    #[inline(always)]
    fn name(&mut self, slot: u8, hint: Tid) -> NameId {
        name(text(self.here.data, self.here.regs.text[usize::from(slot)]), hint, self.names)
    }
}

#[inline(always)]
fn decode(here: &Here<'_>, names: &mut LocalNames, mut out: Place<'_>, quality: &mut Quality) {
    let class = here.class;
    let kind = match class.meaning {
        Meaning::Other => return out.put(here, names, What::Other),
        _ if class.incomplete => {
            quality.add(QualityCode::MissingField, 1);
            return out.put(here, names, What::Other);
        }
        Meaning::Kernel(kind) => kind,
        Meaning::Process => {
            let what = process(&mut Values { here, names });
            return out.put(here, names, what);
        }
    };
    let mut v = Values { here, names };
    match kind {
        EventKind::Switch => {
            let (prev, next) = (v.tid(0), v.tid(1));
            let what = What::Switch {
                prev,
                next,
                prev_state: here.stream.states.state(v.int(2)),
                prev_comm: v.name(reg::TEXT, prev),
                next_comm: v.name(reg::TEXT2, next),
                prev_prio: v.prio(3),
                next_prio: v.prio(4),
            };
            out.put(here, names, what);
            *out.current = next;
        }
        EventKind::SysEnterNamed => {
            let args = match class.has_args {
                true => {
                    let args = std::array::from_fn(|n| v.int(n as u8));
                    out.batch.push_args(args)
                }
                false => ArgsRef::NONE,
            };
            let nr = v.call();
            out.put(here, names, What::SysEnter { nr, args });
        }
        EventKind::SysExitNamed => {
            let (nr, ret) = (v.call(), v.int(1) as i64);
            out.put(here, names, What::SysExit { nr, ret });
        }
        EventKind::Waking => {
            let (tid, prio, target) = (v.tid(0), v.prio(1), v.cpu(2));
            let comm = v.name(reg::TEXT, tid);
            out.put(here, names, What::Waking { tid, comm, prio, target, in_irq: false });
        }
        EventKind::Wakeup => {
            let (tid, prio, target) = (v.tid(0), v.prio(1), v.cpu(2));
            let comm = v.name(reg::TEXT, tid);
            out.put(here, names, What::Wakeup { tid, comm, prio, target });
        }
        other => {
            let what = rare(other, &mut v);
            out.put(here, names, what);
        }
    }
}

#[inline(never)]
fn rare(kind: EventKind, v: &mut Values<'_, '_>) -> What {
    match kind {
        EventKind::SysEnter => What::SysEnter { nr: v.u32(0), args: ArgsRef::NONE },
        EventKind::SysExit => What::SysExit { nr: v.u32(0), ret: v.int(1) as i64 },
        EventKind::WakeupNew => {
            let (tid, prio, target) = (v.tid(0), v.prio(1), v.cpu(2));
            What::WakeupNew { tid, comm: v.name(reg::TEXT, tid), prio, target }
        }
        EventKind::Migrate => What::Migrate { tid: v.tid(0), from: v.cpu(1), to: v.cpu(2) },
        EventKind::Fork => {
            let child = v.tid(1);
            What::Fork { parent: v.tid(0), child, child_comm: v.name(reg::TEXT, child) }
        }
        EventKind::Exec => {
            let tid = v.tid(0);
            What::Exec { tid, old: v.tid(1), filename: v.name(reg::TEXT, tid) }
        }
        EventKind::Exit => {
            let tid = v.tid(0);
            What::Exit { tid, comm: v.name(reg::TEXT, tid) }
        }
        EventKind::StatRuntime => What::StatRuntime { tid: v.tid(0), runtime: v.int(1) },
        EventKind::StatWait => delay(v, StatKind::Wait),
        EventKind::StatSleep => delay(v, StatKind::Sleep),
        EventKind::StatIoWait => delay(v, StatKind::IoWait),
        EventKind::StatBlocked => delay(v, StatKind::Blocked),
        EventKind::BlockedReason => What::BlockedReason {
            tid: v.tid(0),
            io_wait: v.int(1) != 0,
            caller: v.int(2),
            name: NameId::NONE,
        },
        EventKind::AttachTask => {
            let tid = v.tid(0);
            What::AttachTask { tid, root: v.u32(1), path: v.name(reg::TEXT, tid) }
        }
        EventKind::PiSetPrio => What::PiSetPrio { tid: v.tid(0), old: v.prio(1), new: v.prio(2) },
        EventKind::IrqEntry => {
            let irq = v.u32(0);
            What::IrqEntry { irq, name: v.name(reg::TEXT, Tid(irq)) }
        }
        EventKind::IrqExit => What::IrqExit { irq: v.u32(0) },
        EventKind::VectorEntry => What::VectorEntry { vector: v.u32(0), name: v.here.class.vector },
        EventKind::VectorExit => What::VectorExit { vector: v.u32(0) },
        EventKind::SoftirqRaise => What::SoftirqRaise { vec: v.u32(0) },
        EventKind::SoftirqEntry => What::SoftirqEntry { vec: v.u32(0) },
        EventKind::SoftirqExit => What::SoftirqExit { vec: v.u32(0) },
        EventKind::WorkQueue => {
            What::WorkQueue { work: v.int(0), function: v.int(1), name: NameId::NONE }
        }
        EventKind::WorkStart => {
            What::WorkStart { work: v.int(0), function: v.int(1), name: NameId::NONE }
        }
        EventKind::WorkEnd => What::WorkEnd { work: v.int(0) },
        EventKind::PageFaultUser => What::PageFault { user: true, address: v.int(0), ip: v.int(1) },
        EventKind::PageFaultKernel => {
            What::PageFault { user: false, address: v.int(0), ip: v.int(1) }
        }
        EventKind::ContentionBegin => {
            What::ContentionBegin { lock: v.int(0), flags: v.u32(1), stack: StackRef::NONE }
        }
        EventKind::ContentionEnd => What::ContentionEnd { lock: v.int(0), ret: v.int(1) as i32 },
        EventKind::ContendedRelease => What::ContendedRelease { lock: v.int(0) },
        EventKind::LockAcquire => {
            What::LockAcquire { lock: v.int(0), name: lock_name(v), flags: v.u32(1) }
        }
        EventKind::LockContended => What::LockContended { lock: v.int(0), name: lock_name(v) },
        EventKind::LockAcquired => What::LockAcquired { lock: v.int(0), name: lock_name(v) },
        EventKind::LockRelease => What::LockRelease { lock: v.int(0), name: lock_name(v) },
        EventKind::CpuIdle => What::CpuIdle { state: v.u32(0), cpu: v.cpu(1) },
        // The caller handles switches.
        EventKind::Switch
        | EventKind::Waking
        | EventKind::Wakeup
        | EventKind::SysEnterNamed
        | EventKind::SysExitNamed => What::Other,
    }
}

fn delay(v: &Values<'_, '_>, kind: StatKind) -> What {
    let delay: Nanos = v.int(1);
    What::StatDelay { kind, tid: v.tid(0), delay }
}

fn lock_name(v: &mut Values<'_, '_>) -> NameId {
    let hint = Tid((v.int(0) >> 4) as u32);
    v.name(reg::TEXT, hint)
}

/// A thread of the state dump.
fn process(v: &mut Values<'_, '_>) -> What {
    let tid = v.tid(0);
    What::Comm { tid, pid: Pid(v.u32(1)), comm: v.name(reg::TEXT, tid), exec: false }
}

//! From records to events.

use crate::format::context;
use crate::lately::Lately;
use crate::layout::Variable;
use crate::schema::{Class, Decodable, Schema, When};
use crate::{mapped, record};
use holdup_trace::{
    Batch, Cpu, Event, EventId, Frame, LocalNames, NameId, Pid, QualityCode, Reading, Tid, What,
};
use holdup_tracepoint::{Endian, Plan};
use rustc_hash::FxHashMap;

/// Memory of a decoder that the next one can use.
pub(crate) type Memory = (LocalNames, Lately);

/// Turns single records into events; independent of runs.
pub(crate) struct Decoder<'a> {
    schema: &'a Schema,
    names: LocalNames,
    /// Which control group an id stands for, and which group each thread was recently reported in.
    groups: &'a FxHashMap<u64, NameId>,
    lately: Lately,
    /// Time of the latest event, which records without a time share.
    pub(crate) last: u64,
    /// Emit only switches; skip the samples of all other events.
    only_switches: bool,
}

fn cpu(n: u32) -> Cpu {
    Cpu(u16::try_from(n).unwrap_or(u16::MAX))
}

/// The frames of a chain, innermost first. Marks in the chain tell whether the addresses after them
/// are the kernel's or the program's; without a mark the half of the address space tells. Skipped
/// are a guest's frames, whose code is in no file here, and the number by which a later record
/// (CALLCHAIN_DEFERRED) delivers the rest.
fn frames<E: Endian>(chain: &[u8]) -> impl Iterator<Item = Frame> + '_ {
    /// To whom the addresses that follow belong.
    enum Whose {
        Unsaid,
        Kernel,
        User,
        Nobody,
    }
    let mut whose = Whose::Unsaid;
    chain.chunks_exact(8).map(|f| E::u64(f, 0)).filter_map(move |address| {
        if address >= context::FIRST {
            whose = match address {
                context::KERNEL => Whose::Kernel,
                context::USER => Whose::User,
                _ => Whose::Nobody,
            };
            return None;
        }
        match whose {
            Whose::Unsaid => Some(Frame::by_half(address)),
            Whose::Kernel => Some(Frame { address, kernel: true }),
            Whose::User => Some(Frame { address, kernel: false }),
            Whose::Nobody => None,
        }
    })
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(
        schema: &'a Schema,
        groups: &'a FxHashMap<u64, NameId>,
        (names, mut lately): Memory,
        only_switches: bool,
    ) -> Decoder<'a> {
        lately.forget();
        Decoder { schema, names, groups, lately, last: 0, only_switches }
    }

    /// The memory that the next decoder can reuse.
    pub(crate) fn into_memory(self) -> Memory {
        (self.names, self.lately)
    }

    /// Append the events of the system calls at the start of `bytes`, if they are wanted; returns
    /// the bytes used.
    #[inline(always)]
    pub(crate) fn calls<E: Endian>(&mut self, bytes: &[u8], batch: &mut Batch) -> usize {
        if self.only_switches {
            return 0;
        }
        let (used, last) = self.schema.calls.decode::<E, false>(bytes, batch);
        self.last = last.unwrap_or(self.last);
        used
    }

    /// Append the event of the record at the start of `bytes` if it is a system call that is
    /// wanted; returns whether it is.
    #[inline(always)]
    pub(crate) fn call<E: Endian>(&mut self, bytes: &[u8], batch: &mut Batch) -> bool {
        !self.only_switches && self.schema.calls.decode::<E, true>(bytes, batch).0 > 0
    }

    /// Append the event of one record, if it is one, to `batch`.
    #[inline]
    pub(crate) fn record<E: Endian>(&mut self, kind: u32, rec: &[u8], batch: &mut Batch) {
        if kind == record::SAMPLE {
            self.sample::<E>(rec, batch);
        } else {
            self.other::<E>(kind, rec, batch);
        }
    }

    #[inline(always)]
    fn sample<E: Endian>(&mut self, rec: &[u8], batch: &mut Batch) {
        let schema = self.schema;
        let Some(d) = schema.of_sample::<E>(rec) else {
            batch.quality.add(QualityCode::BadRecords, 1);
            return;
        };
        if self.only_switches && !matches!(d.class, Class::Tracepoint(Plan::Switch { .. })) {
            return;
        }
        let l = &d.layout;
        if l.cgroup != 0 {
            self.group::<E>(d, rec, batch);
        }
        self.any_sample::<E>(d, rec, batch);
    }

    /// Report the control group of a sample's thread, unless it was reported recently.
    #[inline]
    fn group<E: Endian>(&mut self, d: &Decodable, rec: &[u8], batch: &mut Batch) {
        let l = &d.layout;
        // A record that is too short is counted where its event is looked up.
        let Some(id) = l.cgroup::<E>(rec).filter(|_| rec.len() >= l.min as usize) else { return };
        let at = |field: u16| if field == 0 { u64::MAX } else { E::u64(rec, field.into()) };
        let (tid, ts) = (E::u32(rec, usize::from(l.tid) + 4), at(l.time));
        if l.tid == 0 || ts == u64::MAX || !self.lately.is_news(tid, id, ts) {
            return;
        }
        self.says_group::<E>(d, rec, (Tid(tid), id, ts), batch);
    }

    #[cold]
    fn says_group<E: Endian>(
        &mut self,
        d: &Decodable,
        rec: &[u8],
        (tid, id, ts): (Tid, u64, u64),
        batch: &mut Batch,
    ) {
        if tid == Tid::IDLE || tid == Tid::UNKNOWN {
            return;
        }
        let group = match self.groups.get(&id) {
            Some(&group) => group,
            // Its record was lost, or another tool recorded, and the group existed before the
            // recording began.
            None => self.names.name(id as u32, format!("group {id}").as_bytes()),
        };
        let what = What::InGroup { tid, group };
        batch.events.push(event::<E>(d, rec, ts, EventId::SIDEBAND, what));
        // If the next event has no time, it must not come out earlier.
        self.last = ts;
    }

    /// The general path, for any event and any layout.
    #[inline(never)]
    fn any_sample<E: Endian>(&mut self, d: &Decodable, rec: &[u8], batch: &mut Batch) {
        let l = &d.layout;
        if rec.len() < l.min as usize {
            batch.quality.add(QualityCode::BadRecords, 1);
            return;
        }
        let word = |at: u16| E::u32(rec, at as usize);
        let ts = match l.time {
            0 => self.untimed(batch),
            at => match E::u64(rec, at as usize) {
                u64::MAX => self.untimed(batch),
                t => t,
            },
        };
        let mut variable = Variable::default();
        if l.raw != 0 {
            let at = l.raw as usize + 4;
            variable.raw = match rec.get(at..at + word(l.raw) as usize) {
                Some(raw) => raw,
                None => return batch.quality.add(QualityCode::BadRecords, 1),
            };
        } else if l.variable {
            variable = match l.walk::<E>(rec) {
                Some(v) => v,
                None => return batch.quality.add(QualityCode::BadRecords, 1),
            };
        }
        if d.reads_group {
            self.readings::<E>(d, rec, ts, variable.read, batch);
        }
        let what = match &d.class {
            Class::Tracepoint(plan) => match plan.decode::<E>(variable.raw, &mut self.names, batch)
            {
                Some(What::ContentionBegin { lock, flags, .. }) if !variable.chain.is_empty() => {
                    What::ContentionBegin {
                        lock,
                        flags,
                        stack: batch.push_stack(frames::<E>(variable.chain)),
                    }
                }
                Some(What::Other) if matches!(plan, Plan::Incomplete(_)) => {
                    batch.quality.add(QualityCode::MissingField, 1);
                    What::Other
                }
                Some(what) => what,
                None => {
                    // perf prints such a sample too; only its content is unreadable.
                    batch.quality.add(QualityCode::BadRecords, 1);
                    What::Other
                }
            },
            Class::NoFormat => {
                batch.quality.add(QualityCode::MissingFormat, 1);
                What::Other
            }
            Class::Probe(probe) => probe.decode::<E>(l, rec).unwrap_or_else(|| {
                batch.quality.add(QualityCode::BadRecords, 1);
                What::Other
            }),
            Class::Counter => counter::<E>(d, rec, variable, batch),
        };
        self.last = ts;
        if d.tells_calls && matches!(what, What::Switch { .. }) {
            leaves::<E>(d, rec, ts, variable.chain, batch);
        }
        if d.has_chains
            && !variable.chain.is_empty()
            && !matches!(what, What::Sample { .. } | What::ContentionBegin { .. })
        {
            let of = batch.push_stack(frames::<E>(variable.chain));
            if !of.is_empty() {
                let what = What::Stack { of };
                batch.events.push(event::<E>(d, rec, ts, EventId::SIDEBAND, what));
            }
        }
        batch.events.push(event::<E>(d, rec, ts, d.event, what));
    }

    /// The values of the group's other counters; the leader's own count is in its samples.
    fn readings<E: Endian>(
        &mut self,
        d: &Decodable,
        rec: &[u8],
        ts: u64,
        read: &[u8],
        batch: &mut Batch,
    ) {
        let mut unknown = 0;
        let group = d.layout.group::<E>(read);
        let enabled_running = group.enabled_running;
        let of = batch.push_readings(group.filter_map(|(id, value)| {
            let Some((member, instance)) = self.schema.member(id) else {
                unknown += 1;
                return None;
            };
            let event = member.event;
            (event != d.event).then_some(Reading { event, instance, value, enabled_running })
        }));
        batch.quality.add(QualityCode::BadRecords, unknown);
        if !batch.readings(of).is_empty() {
            let what = What::Readings { leader: d.event, of };
            batch.events.push(event::<E>(d, rec, ts, EventId::SIDEBAND, what));
        }
    }

    fn untimed(&self, batch: &mut Batch) -> u64 {
        batch.quality.add(QualityCode::Untimed, 1);
        self.last
    }

    #[cold]
    fn other<E: Endian>(&mut self, kind: u32, rec: &[u8], batch: &mut Batch) {
        match kind {
            record::LOST_SAMPLES if rec.len() >= 16 => {
                return batch.quality.add(QualityCode::LostSamples, E::u64(rec, 8));
            }
            record::THROTTLE => return batch.quality.add(QualityCode::Throttled, 1),
            record::AUX if rec.len() >= 32 => {
                // PERF_AUX_FLAG_TRUNCATED and _PARTIAL: hardware trace the kernel had no room for.
                let lost = E::u64(rec, 24) & (1 | 4) != 0;
                return batch.quality.add(QualityCode::AuxErrors, lost as u64);
            }
            record::MMAP | record::MMAP2 | record::KSYMBOL if !self.schema.maps => return,
            record::COMM
            | record::FORK
            | record::EXIT
            | record::LOST
            | record::SWITCH
            | record::SWITCH_CPU_WIDE
            | record::MMAP
            | record::MMAP2
            | record::KSYMBOL => {}
            _ => return,
        }
        let ts = match self.schema.when::<E>(kind, rec) {
            When::At(t) => t,
            When::Unsaid => self.last,
            When::Never => return batch.quality.add(QualityCode::BadRecords, 1),
        };
        let misc = E::u16(rec, 4);
        let word = |at: usize| E::u32(rec, at);
        let trailer = self.schema.trailer_of::<E>(rec);
        let back = |distance: u16| rec.len() - distance as usize;
        let what = match kind {
            record::COMM => {
                let (pid, tid) = (word(8), word(12));
                let comm = self.names.name(tid, &rec[16..back(trailer.len)]);
                What::Comm {
                    tid: Tid(tid),
                    pid: Pid(pid),
                    comm,
                    exec: misc & record::MISC_COMM_EXEC != 0,
                }
            }
            record::FORK => What::TaskNew {
                pid: Pid(word(8)),
                parent_pid: Pid(word(12)),
                tid: Tid(word(16)),
                parent_tid: Tid(word(20)),
            },
            record::MMAP | record::MMAP2 | record::KSYMBOL => {
                let body = &rec[..back(trailer.len)];
                match mapped::parse::<E>(kind, body, &mut self.names) {
                    Some(mapping) => What::Mapped {
                        pid: if kind == record::KSYMBOL { Pid::UNKNOWN } else { Pid(word(8)) },
                        mapping: batch.push_mapping(mapping),
                    },
                    // The mapping has no code.
                    None => return,
                }
            }
            record::EXIT => What::TaskEnd { pid: Pid(word(8)), tid: Tid(word(16)) },
            record::LOST => {
                let count = E::u64(rec, 16);
                batch.quality.add(QualityCode::LostEvents, count);
                What::Lost { count }
            }
            _ => What::ContextSwitch {
                out: misc & record::MISC_SWITCH_OUT != 0,
                preempt: misc & record::MISC_SWITCH_OUT_PREEMPT != 0,
                other: if kind == record::SWITCH_CPU_WIDE { Tid(word(12)) } else { Tid::UNKNOWN },
            },
        };
        self.last = ts;
        batch.events.push(Event {
            ts,
            tid: if trailer.tid == 0 { Tid::UNKNOWN } else { Tid(word(back(trailer.tid) + 4)) },
            pid: if trailer.tid == 0 { Pid::UNKNOWN } else { Pid(word(back(trailer.tid))) },
            comm: NameId::NONE,
            cpu: if trailer.cpu == 0 { Cpu::UNKNOWN } else { cpu(word(back(trailer.cpu))) },
            id: EventId::SIDEBAND,
            what,
        });
    }
}

/// An event at the place and time of a sample, whose fixed fields must be there.
fn event<E: Endian>(d: &Decodable, rec: &[u8], ts: u64, id: EventId, what: What) -> Event {
    let l = &d.layout;
    let word = |at: u16| E::u32(rec, at as usize);
    Event {
        ts,
        tid: if l.tid == 0 { Tid::UNKNOWN } else { Tid(word(l.tid + 4)) },
        pid: if l.tid == 0 { Pid::UNKNOWN } else { Pid(word(l.tid)) },
        comm: NameId::NONE,
        cpu: if l.cpu == 0 { Cpu::UNKNOWN } else { cpu(word(l.cpu)) },
        id,
        what,
    }
}

/// Report where in the kernel the thread of a sample is, and the first argument of its system call.
/// A kernel thread has no user registers.
fn leaves<E: Endian>(d: &Decodable, rec: &[u8], ts: u64, chain: &[u8], batch: &mut Batch) {
    let Some((_, end)) = d.layout.payload::<E>(rec) else { return };
    let Some(registers) = rec.get(end..end + 16).filter(|words| E::u64(words, 0) != 0) else {
        return;
    };
    let of = batch.push_stack(frames::<E>(chain).take_while(|frame| frame.kernel));
    if !of.is_empty() {
        let what = What::Leaves { of, argument: E::u64(registers, 8) };
        batch.events.push(event::<E>(d, rec, ts, EventId::SIDEBAND, what));
    }
}

fn counter<E: Endian>(
    d: &Decodable,
    rec: &[u8],
    variable: Variable<'_>,
    batch: &mut Batch,
) -> What {
    let l = &d.layout;
    // The address that the processor recorded (PEBS) is more precise than the chain, which begins
    // where the interrupt arrived.
    let here = (l.ip != 0).then(|| Frame {
        address: E::u64(rec, l.ip as usize),
        kernel: E::u16(rec, 4) & record::MISC_CPUMODE == record::MISC_KERNEL,
    });
    let mut chain = frames::<E>(variable.chain).peekable();
    if let (Some(here), Some(first)) = (here, chain.peek())
        && here.kernel == first.kernel
    {
        chain.next();
    }
    let stack = batch.push_stack(here.into_iter().chain(chain));
    // An event opened with a fixed period does not repeat it in every sample.
    let period = if l.period == 0 { d.period } else { E::u64(rec, l.period as usize) };
    What::Sample { period, stack }
}

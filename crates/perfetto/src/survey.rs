//! Everything in a trace except its events: one walk over the packets.

use crate::fields::Symbols;
use crate::index::Found;
use crate::samples::{Around, Defaults, Samples};
use crate::schema::{buffers, clock, config, interned, packet, snapshot, stats, system, tree};
use crate::source::{Part, Place};
use crate::wire::{Broken, Fields, Value};
use holdup_trace::{Cut, NameId, Names, Pid, Task, Tid};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the packets say, apart from events.
pub(crate) struct Survey {
    names: Arc<Names>,
    /// The bundles, in the order of the file.
    pub(crate) bundles: Vec<Found>,
    /// Machines that bundles come from; the one the recorder ran on has no number.
    pub(crate) machines: BTreeSet<u64>,
    pub(crate) symbols: Vec<Symbols>,
    sequences: FxHashMap<u64, Sequence>,
    pub(crate) tasks: Vec<Task>,
    known: FxHashSet<u32>,
    pub(crate) system: System,
    /// Losses of each CPU by the kernel's own counters.
    pub(crate) lost: BTreeMap<u64, Counters>,
    /// Events that the recorder was told to record, and events that it could not record.
    pub(crate) enabled: BTreeSet<String>,
    pub(crate) failed: BTreeSet<String>,
    /// Whether only some threads were recorded.
    pub(crate) some_threads: bool,
    pub(crate) overwritten: u64,
    pub(crate) discarded: u64,
    /// Offsets from other clocks of the machine to the boot clock, ns.
    to_boot: BTreeMap<u64, i64>,
    pub(crate) packets: u64,
    /// Which part of a longer trace this file is.
    pub(crate) cut: Option<Cut>,
    /// Number of packets with truncated content.
    pub(crate) broken: u64,
    /// Samples of `linux.perf`, with call chains.
    pub(crate) samples: Samples,
}

/// The machine and the recorder (`SystemInfo`).
#[derive(Default)]
pub(crate) struct System {
    pub(crate) release: Option<String>,
    pub(crate) machine: Option<String>,
    pub(crate) build: Option<String>,
    pub(crate) recorder: Option<String>,
    pub(crate) cpus: Option<u32>,
    pub(crate) memory: Option<u64>,
}

/// Events lost by a CPU's buffer when recording began and when it ended.
#[derive(Default)]
pub(crate) struct Counters {
    before: Option<u64>,
    after: u64,
}

impl Counters {
    /// Events lost in between.
    pub(crate) fn lost(&self) -> u64 {
        self.after.saturating_sub(self.before.unwrap_or(0))
    }
}

/// The data that one writer of packets has interned.
#[derive(Default)]
struct Sequence {
    /// Index of its symbols, if it has any.
    symbols: Option<u32>,
    /// Index of its tables for samples, and its defaults for samples.
    samples: Option<u32>,
    defaults: Option<Defaults>,
}

/// The fields of one packet that concern other packets or may come in any order.
#[derive(Default)]
struct Frame<'a> {
    sequence: u64,
    machine: u64,
    cleared: bool,
    dropped: bool,
    first: bool,
    interned: Option<&'a [u8]>,
    bundle: Option<&'a [u8]>,
    time: Option<u64>,
    clock: Option<u64>,
    defaults: Option<&'a [u8]>,
    sample: Option<&'a [u8]>,
}

impl Survey {
    pub(crate) fn new(names: Arc<Names>) -> Survey {
        Survey {
            names,
            bundles: Vec::new(),
            machines: BTreeSet::new(),
            // Number 0: nothing was interned.
            symbols: vec![Symbols::default()],
            sequences: FxHashMap::default(),
            tasks: Vec::new(),
            known: FxHashSet::default(),
            system: System::default(),
            lost: BTreeMap::new(),
            enabled: BTreeSet::new(),
            failed: BTreeSet::new(),
            some_threads: false,
            overwritten: 0,
            discarded: 0,
            to_boot: BTreeMap::new(),
            packets: 0,
            cut: None,
            broken: 0,
            samples: Samples::default(),
        }
    }

    /// Take in the packet whose content lies at `start` of `part`.
    pub(crate) fn packet(&mut self, part: Part, start: usize, content: &[u8]) {
        self.packets += 1;
        let mut frame = Frame::default();
        let mut inner = Ok(());
        let read = Fields::of(content).each(|number, value| match (number, value) {
            (packet::FTRACE_EVENTS, Value::Bytes(b)) => frame.bundle = Some(b),
            (packet::TRUSTED_PACKET_SEQUENCE_ID, Value::Int(n)) => frame.sequence = n,
            (packet::MACHINE_ID, Value::Int(n)) => frame.machine = n,
            (packet::SEQUENCE_FLAGS, Value::Int(n)) => {
                frame.cleared |= n & packet::SEQ_INCREMENTAL_STATE_CLEARED != 0;
            }
            (packet::INCREMENTAL_STATE_CLEARED, Value::Int(n)) => frame.cleared |= n != 0,
            (packet::PREVIOUS_PACKET_DROPPED, Value::Int(n)) => frame.dropped = n != 0,
            (packet::FIRST_PACKET_ON_SEQUENCE, Value::Int(n)) => frame.first = n != 0,
            (packet::INTERNED_DATA, Value::Bytes(b)) => frame.interned = Some(b),
            (packet::TIMESTAMP, Value::Int(n)) => frame.time = Some(n),
            (packet::TIMESTAMP_CLOCK_ID, Value::Int(n)) => frame.clock = Some(n),
            (packet::TRACE_PACKET_DEFAULTS, Value::Bytes(b)) => frame.defaults = Some(b),
            (packet::PERF_SAMPLE, Value::Bytes(b)) => frame.sample = Some(b),
            (_, Value::Bytes(b)) => inner = inner.and(self.message(number, b)),
            _ => {}
        });
        self.broken += read.and(inner).is_err() as u64;
        let new = !self.sequences.contains_key(&frame.sequence);
        let sequence = self.sequences.entry(frame.sequence).or_default();
        if frame.cleared {
            *sequence = Sequence::default();
        }
        let mut sound = Ok(());
        if let Some(defaults) = frame.defaults {
            let read = self.samples.defaults(defaults);
            sequence.defaults = read.ok();
            sound = sound.and(read.map(drop));
        }
        if let Some(data) = frame.interned {
            intern(data, &self.names, &mut self.symbols, sequence);
        }
        if (frame.interned.is_some() || frame.sample.is_some()) && sequence.samples.is_none() {
            sequence.samples = self.samples.table();
        }
        let table = sequence.samples.unwrap_or(u32::MAX);
        if let Some(data) = frame.interned {
            sound = sound.and(self.samples.intern(data, &self.names, table));
        }
        if let Some(sample) = frame.sample {
            let (ts, clock, key) = (frame.time, frame.clock, (part == Part::File, start));
            let defaults = *sequence.defaults.get_or_insert_with(|| self.samples.none());
            let around = Around { ts, clock, defaults, table, key };
            sound = sound.and(self.samples.sample(sample, &around));
        }
        self.broken += sound.is_err() as u64;
        let symbols = sequence.symbols.unwrap_or(0);
        if let Some(bundle) = frame.bundle {
            self.machines.insert(frame.machine);
            let start = start + (bundle.as_ptr() as usize - content.as_ptr() as usize);
            let place = Place { part, start, end: start + bundle.len() };
            // The first packet of a writer always has this flag, because nothing is known to
            // precede it.
            let dropped = frame.dropped && !new && !frame.first;
            self.bundles.push(Found { place, symbols, dropped });
        }
    }

    fn message(&mut self, number: u32, bytes: &[u8]) -> Result<(), Broken> {
        match number {
            packet::PROCESS_TREE => self.process_tree(bytes),
            packet::SYSTEM_INFO => self.system_info(bytes),
            packet::FTRACE_STATS => self.ftrace_stats(bytes),
            packet::CLOCK_SNAPSHOT => self.clock_snapshot(bytes),
            packet::TRACE_CONFIG => self.trace_config(bytes),
            packet::TRACE_STATS => self.trace_stats(bytes),
            packet::FOR_TESTING => {
                self.cut = Cut::find(&String::from_utf8_lossy(bytes)).or(self.cut.take());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn task(&mut self, tid: u64, pid: u64, parent: Option<u64>, comm: NameId) {
        // A later entry may be about another thread that reused the id.
        if self.known.insert(tid as u32) {
            let (tid, pid) = (Tid(tid as u32), Pid(pid as u32));
            self.tasks.push(Task { tid, pid, parent: parent.map(|p| Tid(p as u32)), comm });
        }
    }

    fn process_tree(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let mut inner = Ok(());
        let read = Fields::of(bytes).each(|number, value| {
            let Value::Bytes(bytes) = value else { return };
            let read = match number {
                tree::PROCESSES => self.process(bytes),
                tree::THREADS => self.thread(bytes),
                _ => Ok(()),
            };
            inner = inner.and(read);
        });
        read.and(inner)
    }

    fn process(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let (mut pid, mut parent, mut kernel, mut is_comm) = (None, None, false, false);
        let mut command: Option<&[u8]> = None;
        Fields::of(bytes).each(|number, value| match (number, value) {
            (tree::PROCESS_PID, Value::Int(n)) => pid = Some(n),
            (tree::PROCESS_PPID, Value::Int(n)) => parent = Some(n),
            (tree::PROCESS_IS_KTHREAD, Value::Int(n)) => kernel = n != 0,
            (tree::PROCESS_CMDLINE_IS_COMM, Value::Int(n)) => is_comm = n != 0,
            (tree::PROCESS_CMDLINE, Value::Bytes(b)) => drop(command.get_or_insert(b)),
            _ => {}
        })?;
        // A kernel thread has no command line: its name is in that field. A program's command line
        // does not reliably give its name.
        const KTHREADD: u64 = 2;
        let kernel = kernel || parent == Some(KTHREADD) || pid == Some(KTHREADD);
        let name = command.filter(|_| is_comm || kernel).unwrap_or(&[]);
        let parent = if kernel && pid != Some(KTHREADD) { Some(KTHREADD) } else { parent };
        if let Some(pid) = pid {
            self.task(pid, pid, parent, self.names.intern(name));
        }
        Ok(())
    }

    fn thread(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let (mut tid, mut pid, mut name): (_, _, &[u8]) = (None, None, &[]);
        Fields::of(bytes).each(|number, value| match (number, value) {
            (tree::THREAD_TID, Value::Int(n)) => tid = Some(n),
            (tree::THREAD_TGID, Value::Int(n)) => pid = Some(n),
            (tree::THREAD_NAME, Value::Bytes(b)) => name = b,
            _ => {}
        })?;
        if let Some(tid) = tid {
            let pid = pid.unwrap_or(u64::from(Pid::UNKNOWN.0));
            self.task(tid, pid, None, self.names.intern(name));
        }
        Ok(())
    }

    fn system_info(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let s = &mut self.system;
        let mut inner = Ok(());
        let read = Fields::of(bytes).each(|number, value| match (number, value) {
            (system::UTSNAME, Value::Bytes(uts)) => {
                inner = Fields::of(uts).each(|number, value| match number {
                    system::UTS_RELEASE => s.release = value.text(),
                    system::UTS_MACHINE => s.machine = value.text(),
                    _ => {}
                });
            }
            (system::ANDROID_BUILD_FINGERPRINT, value) => s.build = value.text(),
            (system::TRACING_SERVICE_VERSION, value) => s.recorder = value.text(),
            (system::NUM_CPUS, Value::Int(n)) => s.cpus = u32::try_from(n).ok(),
            (system::SYSTEM_RAM_BYTES, Value::Int(n)) => s.memory = Some(n),
            _ => {}
        });
        read.and(inner)
    }

    /// Read the kernel's counters from the begin and the end of recording.
    fn ftrace_stats(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let (mut start, mut cpus) = (false, Vec::new());
        let read = Fields::of(bytes).each(|number, value| match (number, value) {
            (stats::PHASE, Value::Int(n)) => start = n == stats::START_OF_TRACE,
            (stats::CPU_STATS, Value::Bytes(b)) => cpus.push(b),
            (stats::UNKNOWN_FTRACE_EVENTS | stats::FAILED_FTRACE_EVENTS, value) => {
                self.failed.extend(value.text());
            }
            _ => {}
        });
        for bytes in cpus {
            let (mut cpu, mut lost) = (0, 0u64);
            Fields::of(bytes).each(|number, value| match (number, value) {
                (stats::CPU, Value::Int(n)) => cpu = n,
                (stats::OVERRUN | stats::COMMIT_OVERRUN | stats::DROPPED_EVENTS, Value::Int(n)) => {
                    lost = lost.saturating_add(n);
                }
                _ => {}
            })?;
            let of_cpu = self.lost.entry(cpu).or_default();
            if start {
                of_cpu.before = Some(of_cpu.before.map_or(lost, |n| n.min(lost)));
            } else {
                of_cpu.after = of_cpu.after.max(lost);
            }
        }
        read
    }

    fn clock_snapshot(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let (mut times, mut inner) = (Vec::new(), Ok(()));
        let read = Fields::of(bytes).each(|number, value| {
            let (snapshot::CLOCKS, Value::Bytes(bytes)) = (number, value) else { return };
            let (mut id, mut time) = (0, 0);
            inner = inner.and(Fields::of(bytes).each(|number, value| match (number, value) {
                (snapshot::CLOCK_ID, Value::Int(n)) => id = n,
                (snapshot::TIMESTAMP, Value::Int(n)) => time = n,
                _ => {}
            }));
            // Keep only clocks of the machine: other numbers have a meaning per writer.
            if id <= clock::LAST_BUILTIN {
                times.push((id, time));
            }
        });
        let boot = times.iter().find(|(id, _)| *id == clock::BUILTIN_BOOTTIME);
        for (id, time) in times.iter().take(boot.map_or(0, |_| times.len())) {
            let boot = boot.map_or(0, |b| b.1);
            self.to_boot.entry(*id).or_insert(boot.wrapping_sub(*time) as i64);
        }
        read.and(inner)
    }

    /// Offset from a clock of the machine to the boot clock by the first snapshot, ns.
    pub(crate) fn to_boot(&self, id: u64) -> Option<i64> {
        let itself = (id == clock::BUILTIN_BOOTTIME).then_some(0);
        itself.or_else(|| self.to_boot.get(&id).copied())
    }

    /// Offset from `CLOCK_MONOTONIC_RAW` to the boot clock, ns.
    pub(crate) fn raw_to_boot(&self) -> Option<i64> {
        self.to_boot(clock::BUILTIN_MONOTONIC_RAW)
    }

    /// `TraceConfig { data_sources { config { ftrace_config { ftrace_events } } } }`.
    fn trace_config(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let (enabled, some) = (&mut self.enabled, &mut self.some_threads);
        inside(bytes, config::DATA_SOURCES, &mut |source| {
            inside(source, config::DATA_SOURCE_CONFIG, &mut |source| {
                inside(source, config::FTRACE_CONFIG, &mut |ftrace| {
                    Fields::of(ftrace).each(|number, value| match number {
                        config::FTRACE_EVENTS => enabled.extend(value.text()),
                        config::TIDS_TO_TRACE => *some = true,
                        _ => {}
                    })
                })
            })
        })
    }

    fn trace_stats(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let (mut overwritten, mut discarded) = (0u64, 0u64);
        inside(bytes, buffers::BUFFER_STATS, &mut |buffer| {
            Fields::of(buffer).each(|number, value| match (number, value) {
                (buffers::CHUNKS_OVERWRITTEN, Value::Int(n)) => {
                    overwritten = overwritten.saturating_add(n);
                }
                (buffers::CHUNKS_DISCARDED, Value::Int(n)) => {
                    discarded = discarded.saturating_add(n);
                }
                _ => {}
            })
        })?;
        // Each packet of statistics counts from the start of the recording.
        self.overwritten = self.overwritten.max(overwritten);
        self.discarded = self.discarded.max(discarded);
        Ok(())
    }
}

/// Call `message` for each message that field `number` holds.
fn inside(
    bytes: &[u8],
    number: u32,
    message: &mut dyn FnMut(&[u8]) -> Result<(), Broken>,
) -> Result<(), Broken> {
    let mut inner = Ok(());
    let read = Fields::of(bytes).each(|n, value| {
        if let (true, Value::Bytes(bytes)) = (n == number, value) {
            inner = inner.and(message(bytes));
        }
    });
    read.and(inner)
}

/// `InternedData.kernel_symbols`: the functions to which numbers in events refer.
fn intern(data: &[u8], names: &Names, all: &mut Vec<Symbols>, sequence: &mut Sequence) {
    let _ = inside(data, interned::KERNEL_SYMBOLS, &mut |symbol| {
        let (mut id, mut name): (_, &[u8]) = (None, &[]);
        Fields::of(symbol).each(|number, value| match (number, value) {
            (interned::IID, Value::Int(n)) => id = Some(n),
            (interned::STR, Value::Bytes(b)) => name = b,
            _ => {}
        })?;
        let (Some(id), Ok(new)) = (id, u32::try_from(all.len())) else { return Ok(()) };
        let place = *sequence.symbols.get_or_insert(new);
        if place == new {
            all.push(Symbols::default());
        }
        if let Some(symbols) = all.get_mut(place as usize) {
            symbols.insert(id, names.intern(name));
        }
        Ok(())
    });
}

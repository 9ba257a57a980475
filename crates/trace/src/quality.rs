//! What went wrong while reading, as named counters: a damaged trace is still analysed.

use serde::Serialize;
use std::collections::BTreeMap;

/// How much a [`QualityCode`] harms the answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The defect was repaired, or is harmless.
    Info,
    /// Figures near the defect may be wrong.
    Warning,
    /// A part of the trace is missing.
    Error,
}

macro_rules! codes {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident = ($code:literal, $severity:ident, $message:literal),
    )+) => {
        /// A named anomaly. The code is stable and appears in JSON as `quality[].code`.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum QualityCode { $($(#[doc = $doc])+ $name),+ }

        impl QualityCode {
            /// Every code there is.
            pub const ALL: &'static [QualityCode] = &[$(QualityCode::$name),+];

            /// The stable name.
            pub fn code(self) -> &'static str {
                match self { $(QualityCode::$name => $code),+ }
            }

            /// How bad it is.
            pub fn severity(self) -> Severity {
                match self { $(QualityCode::$name => Severity::$severity),+ }
            }

            /// What it means, in words for the readers of a report.
            pub fn message(self) -> &'static str {
                match self { $(QualityCode::$name => $message),+ }
            }
        }
    };
}

codes! {
    /// PERF_RECORD_LOST, ring-buffer overruns: counts events.
    LostEvents = (
        "lost-events", Error,
        "events that the recorder lost; every figure is a lower bound"
    ),
    /// PERF_RECORD_LOST_SAMPLES: since 6.1 perf adds the kernel's count of lost samples at the end
    /// of a recording, which counts the same losses as its LOST records.
    LostSamples = (
        "lost-samples", Error,
        "samples that were lost, by the kernel's own count, which includes the events of \
         lost-events"
    ),
    /// Chunks (not events) perf reported lost, when the number of events is unknown.
    LostChunks = (
        "lost-chunks", Error,
        "places where the recorder lost an unknown number of events"
    ),
    /// PERF_RECORD_THROTTLE.
    Throttled = (
        "throttled", Warning,
        "times the kernel throttled an event; the counts of this event are too low"
    ),
    /// The file ends in the middle of something.
    Truncated = (
        "truncated", Error,
        "times the data ended too early, as in a file that was cut off; the data before the end \
         were read"
    ),
    /// Bytes that were skipped because they are not a record.
    SkippedBytes = (
        "skipped-bytes", Error,
        "bytes skipped because no record could be read from them"
    ),
    /// Records that are too short for their content, or carry an unknown id.
    BadRecords = (
        "bad-records", Warning,
        "records whose contents do not match their header; they were skipped"
    ),
    /// Lines of text that cannot be read.
    UnreadableLines = (
        "unreadable-lines", Warning,
        "lines that are neither event nor heading nor call chain; they were skipped (info shows \
         the first)"
    ),
    /// Text without the CPU column.
    NoCpu = (
        "no-cpu", Error,
        "events that do not say on which CPU they happened and cannot be used: perf script -F +cpu \
         prints it"
    ),
    /// Text without the thread column.
    NoThread = (
        "no-thread", Error,
        "events that do not say in which thread they happened and cannot be used: \
         perf script -F +tid prints it"
    ),
    /// Text without the fields of its events.
    NoFields = (
        "no-fields", Error,
        "events that were printed without their fields and cannot be used: \
         perf script -F +trace prints them"
    ),
    /// Bytes after the last record that are not a record.
    TrailingBytes = (
        "trailing-bytes", Info,
        "bytes after the last record that are not records: zeros, or messages of the recorder"
    ),
    /// Record types that the reader does not know.
    UnknownRecords = (
        "unknown-records", Info,
        "records of an unknown type; they were skipped"
    ),
    /// Events recorded without a time stamp of their own.
    Untimed = (
        "untimed-events", Warning,
        "events without time stamp; they were placed directly after the previous event in the file"
    ),
    /// Events that were not in the order that the format promises; re-sorted.
    Reordered = ("reordered", Info, "events that were not in the order that the format promises; \
                                     they were sorted"),
    /// Time went backwards in a way that could not be repaired.
    TimeBackwards = (
        "time-backwards", Warning,
        "events with a time before that of the previous event; they were given the time of the \
         previous event"
    ),
    /// Events whose format description is missing.
    MissingFormat = (
        "missing-format", Warning,
        "events whose format description is missing from the file; they were counted, but not used"
    ),
    /// A known event lacks a field holdup needs.
    MissingField = (
        "missing-field", Warning,
        "events that lack a field that is needed to use them; they were only counted"
    ),
    /// The time stamps are coarser than a nanosecond (text dumps).
    MicrosecondClock = (
        "microsecond-clock", Info,
        "time stamps have a resolution of a microsecond; shorter times are shown as 0 or 1 us"
    ),
    /// The time stamps are ticks of a counter (`x86-tsc`), and the file has no rate.
    TickClock = (
        "tick-clock", Warning,
        "time stamps are ticks of a counter whose rate the file does not say: times are in ticks, \
         not nanoseconds; shares of time are right"
    ),
    /// An event that was enabled in more than one buffer of a file.
    RepeatedEvents = (
        "repeated-events", Warning,
        "kinds of events recorded in more than one buffer of the file: an event that is in several \
         buffers counts several times"
    ),
    /// Events of a pair whose other half was not recorded.
    HalfRecorded = (
        "half-recorded", Warning,
        "events of pairs of which only one half was recorded (sys_enter without sys_exit, a begin \
         without its end): not used, because the time between the two halves is not known"
    ),
    /// A group of counters was off its CPU between two readings.
    GroupOff = (
        "group-off", Warning,
        "readings of counters that did not count all the time, because counters were multiplexed: \
         counts are scaled up, and events of the group itself (its switches) are missing; record \
         fewer counters in a group"
    ),
    /// Current thread of a CPU changed without a switch event.
    SwitchGap = (
        "switch-gap", Info,
        "times a CPU's current thread changed without a switch event; the time in between is \
         unaccounted"
    ),
    /// A switch from the idle task that was not recorded, inferred at the wake-up of the thread.
    InferredSwitch = (
        "inferred-switch", Info,
        "switches out of idle that were not recorded; they were placed at the wake-up of the \
         thread that ran next"
    ),
    /// A switch from idle on a CPU that never records them, inferred at the wake-up of a thread.
    PresumedSwitch = (
        "presumed-switch", Info,
        "threads woken on an idle CPU whose switches out of idle are never recorded; they are \
         assumed to run on this CPU from then on, and their time until their next event is \
         unaccounted"
    ),
    /// A thread still believed ready on the queue of a CPU that goes idle.
    QueuedAtIdle = (
        "queued-at-idle", Info,
        "threads that ran or moved unseen: they were counted as ready until their CPU went idle, \
         which happens only if no thread is ready; that time is left out of all sums"
    ),
    /// A thread seen on a second CPU without having left the first.
    TwoCpus = (
        "two-cpus", Info,
        "threads seen on a CPU while still counted on another CPU; the time since the last event \
         on that other CPU is unaccounted"
    ),
    /// A thread woken while believed ready after a wake-up.
    WokenTwice = (
        "woken-twice", Info,
        "threads woken again while still counted as ready: they ran and slept unseen in between; \
         that time is left out of all sums"
    ),
    /// A thread left a CPU in a state that no table has a letter for.
    UnknownState = (
        "unknown-state", Warning,
        "switches in which a thread leaves in an unknown state, from a kernel newer than this \
         program: the time until the thread was woken is left out of all sums"
    ),
    /// sys_exit without sys_enter, inside the trace.
    OrphanSysExit = (
        "orphan-sys-exit", Info,
        "system calls that returned without having been seen to start"
    ),
    /// sys_enter while another call was open.
    OrphanSysEnter = (
        "orphan-sys-enter", Info,
        "system calls that were never seen to return although the thread went on"
    ),
    /// Entry/exit pairs of interrupts that do not match.
    UnmatchedIrq = (
        "unmatched-irq", Info,
        "interrupts, softirqs or work items of which only the beginning or only the end was \
         recorded"
    ),
    /// A CPU without any event.
    SilentCpu = (
        "silent-cpu", Info,
        "CPUs without a single event: they count as idle if interrupts were recorded, and as \
         unaccounted otherwise"
    ),
    /// A recording of some tasks, not of the whole system.
    NotSystemWide = (
        "not-system-wide", Warning,
        "only some threads were recorded: the CPU time of other threads is unaccounted"
    ),
    /// A choice of system calls: the number of calls recorded.
    UntracedCalls = (
        "untraced-calls", Info,
        "system calls were recorded, and all other calls are untraced: application code and \
         untraced calls are one figure, and figures that need all system calls are n/a"
    ),
    /// PERF_SAMPLE_STACK_USER: the number of events recorded that way.
    CopiedStacks = (
        "copied-stacks", Info,
        "events were recorded with copies of stacks (--call-graph dwarf), which holdup does not \
         unwind: callers in programs are n/a; -g (frame pointers) records them"
    ),
    /// Go programs that were recorded without `--runtime-locks`: their number.
    UnseenTasks = (
        "unseen-tasks", Info,
        "Go programs of which only the threads were recorded: what goroutines wait for is n/a; \
         holdup record --runtime-locks records it"
    ),
    /// Thread switched in without wake-up although wake-ups are recorded.
    MissingWakeup = (
        "missing-wakeup", Info,
        "threads that ran again without a wake-up event; the time before is counted as sleep"
    ),
    /// `contention_begin` without `contention_end`, although the thread went on.
    UnmatchedContention = (
        "unmatched-contention", Info,
        "waits for kernel locks that were never seen to end although the thread went on"
    ),
    /// More kernel locks, callers and threads than are kept separately.
    LocksFolded = (
        "locks-folded", Warning,
        "waits for kernel locks, or acquisitions of them, that are counted in the row 'other', \
         because there are too many different locks, callers and threads"
    ),
    /// Data that the reader skipped on purpose (AUX data).
    SkippedAux = ("skipped-aux", Info, "blocks of AUX data (hardware trace); they were skipped"),
    /// Errors of a hardware trace: PERF_RECORD_AUX with a flag, AUXTRACE_ERROR, lines of perf
    /// script that report them.
    AuxErrors = (
        "aux-errors", Info,
        "losses and errors of the hardware trace (AUX data), which is not read: no figure is \
         affected"
    ),
}

impl QualityCode {
    /// Events that lack a column that perf script was told not to print. A message that covers all
    /// lacking columns names the CPU, so that comes last.
    pub const LACKS: [QualityCode; 3] =
        [QualityCode::NoThread, QualityCode::NoFields, QualityCode::NoCpu];
}

/// Counters of everything that went wrong.
#[derive(Clone, Default, Debug, PartialEq)]
pub struct Quality(BTreeMap<QualityCode, u64>);

/// A kind of defect of the trace, and how often it occurred.
#[derive(Clone, Debug, Serialize, PartialEq, schemars::JsonSchema)]
pub struct QualityEntry {
    /// Stable name of the kind of defect.
    pub code: &'static str,
    /// Severity of the defect.
    pub severity: Severity,
    /// Number of occurrences, of events or of bytes: the message says which.
    pub count: u64,
    /// What the defect is, and what was done about it.
    pub message: &'static str,
}

impl Quality {
    /// Count `n` of `code`. Adding 0 leaves no trace.
    pub fn add(&mut self, code: QualityCode, n: u64) {
        if n > 0 {
            let c = self.0.entry(code).or_insert(0);
            *c = c.saturating_add(n);
        }
    }

    /// The count of `code`.
    pub fn count(&self, code: QualityCode) -> u64 {
        self.0.get(&code).copied().unwrap_or(0)
    }

    /// Subtracts `n` from `code`.
    pub fn take_back(&mut self, code: QualityCode, n: u64) {
        if let Some(c) = self.0.get_mut(&code) {
            *c = c.saturating_sub(n);
            if *c == 0 {
                self.0.remove(&code);
            }
        }
    }

    /// Add all of `other`.
    pub fn absorb(&mut self, other: &Quality) {
        for (&code, &n) in &other.0 {
            self.add(code, n);
        }
    }

    /// Whether nothing went wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all counts.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Rows for a report, worst first, then by code.
    pub fn entries(&self) -> Vec<QualityEntry> {
        let mut rows: Vec<QualityEntry> = self
            .0
            .iter()
            .map(|(c, &count)| QualityEntry {
                code: c.code(),
                severity: c.severity(),
                count,
                message: c.message(),
            })
            .collect();
        rows.sort_by(|a, b| b.severity.cmp(&a.severity).then(a.code.cmp(b.code)));
        rows
    }
}

//! The list.

use super::{LimitKind, Threshold};

macro_rules! limits {
    ($(
        $name:ident = $key:literal, $default:literal, $unit:literal,
            kind: $kind:ident, meaning: $meaning:literal, source: $source:literal;
    )+) => {
        $(
            #[doc = $meaning]
            pub const $name: Threshold = Threshold {
                key: $key,
                default: $default,
                unit: $unit,
                kind: LimitKind::$kind,
                meaning: $meaning,
                source: $source,
                registered: (),
            };
        )+
        /// All of them.
        pub const REGISTRY: &[Threshold] = &[$($name),+];
    };
}

limits! {
    MATTERS = "all.matters_pct", 15.0, "% of wanted CPU time",
        kind: Matters,
        meaning: "a rule fires only if its cost or its gain is at least this; wanted CPU time is \
                  the CPU time that the traced programs used or lacked, so CPUs for which there is \
                  no work do not count",
        source: "recordings that are known to be healthy (docs/verdicts.md) lose up to 10 % to \
                 start-up, wake-up delays and the recorder itself";
    NAMED = "all.named_pct", 1.0, "% of capacity",
        kind: Matters,
        meaning: "evidence and culprits that cost less are not listed; this threshold has no other \
                  effect",
        source: "the recorder itself takes about one per cent of capacity";
    ENOUGH = "all.enough", 20.0, "cases",
        kind: Significance,
        meaning: "a mean or a median is used only if it comes from at least this many cases",
        source: "the median of 20 values differs from the true median by about a quarter of their \
                 spread";
    SERVER_ENDS = "server.ends_pct", 80.0, "% of the waiting time",
        kind: Significance,
        meaning: "a thread counts as a server only if it ended at least this part of all time that \
                  threads waited for threads and services; a thread that other threads spin for at \
                  a barrier counts only if it ended at least this part of the time for which it \
                  and one of these threads spin",
        source: "servers in recordings with a known bottleneck (docs/verdicts.md) end at least 98 \
                 % of the waiting time; of two workers that alternate, each ends about half of it, \
                 at most two thirds";
    ALONE = "server.alone_pct", 75.0, "% of the time",
        kind: Significance,
        meaning: "the work is serial if just one application thread runs or is ready for at least \
                  this part of the time in which any does; a thread has most of the work if it \
                  runs for at least this part of its life",
        source: "the server of AIX case 4 (docs/cases/aix-4-server.md) used 23.8 % of four CPUs, \
                 which is 95 % of one CPU; of two equal threads that alternate, each runs half of \
                 the time";
    DEARER = "calls.dearer_pct", 200.0, "% of a call alone",
        kind: Significance,
        meaning: "system calls that begin while another thread is in the kernel, or while another \
                  thread of the process is on a CPU, are contended if they cost at least this \
                  much, compared with calls that begin alone",
        source: "a call takes at most 200 % if two hardware threads share a core; with one other \
                 thread of the process on a CPU, mprotect takes 600 % and madvise 350 %; with a \
                 thread of another process on a CPU, both take 100 %";
    MISSING_ENDS = "calls.missing_ends", 3.0, "times",
        kind: Significance,
        meaning: "system calls exclude each other if pairs of calls that end close together are \
                  this many times rarer than by chance, or if gaps between ends just above the \
                  minimum gap are this many times more frequent than gaps below it; sleeps exclude \
                  each other if they overlap this many times less than by chance",
        source: "a Poisson variable of mean 8 is below 3 in one of 70 cases";
    UNDISTURBED = "calls.undisturbed", 0.9, "of the user-mode intervals",
        kind: Soundness,
        meaning: "this part of the user-mode intervals, the shortest ones, counts as undisturbed \
                  by interrupts and preemption",
        source: "interrupts and preemption lengthen fewer than a tenth of the intervals";
    LOOK = "yields.short_us", 40.0, "us",
        kind: Significance,
        meaning: "a thread that calls sched_yield again after less user CPU time than this, and \
                  makes no other call in between, has only checked whether a lock is free",
        source: "checking a lock takes less than 0.1 us, but writing the two events of the call \
                 takes the recorder 1 us, in slow guests 20 us; spin locks often spin for a few us \
                 before they yield";
    SLOWER = "hardware-bandwidth.slower_pct", 20.0, "% more time for similar work",
        kind: Significance,
        meaning: "a smaller slowdown cannot be distinguished from noise and from changes of the \
                  clock rate",
        source: "processors run at a 10 to 20 % lower clock rate with all cores busy than with \
                 one; medians are exact within 6 %";
    QUEUE = "cpu-overload.queue_per_cpu", 1.25, "threads",
        kind: Significance,
        meaning: "the CPUs are overloaded only if at least this many threads per CPU run or are \
                  ready",
        source: "PARbench on the p690 (docs/cases/parbench-overload.md): one thread per CPU is a \
                 full load; recorders and daemons add a few hundredths of a thread per CPU";
    WELL_MET = "replay.exact_pct", 2.0, "% of the time of the work",
        kind: Soundness,
        meaning: "the accuracy of a replay: a smaller gain does not count, and threads that \
                  together have a smaller part of all CPU time do not count as the work",
        source: "replays of one trace that break ties differently differ by less than this";
}

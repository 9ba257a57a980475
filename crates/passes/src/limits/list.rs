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
        meaning: "a smaller loss, or the gain from removing such a loss, is no verdict; wanted CPU \
                  time is the CPU time that the traced programs used or lacked, so CPUs without \
                  any work to do change nothing",
        source: "healthy recordings of the labelled corpus lose up to 10 % to start-up, wake-up \
                 delays and the recorder itself";
    NAMED = "all.named_pct", 1.0, "% of capacity",
        kind: Matters,
        meaning: "evidence and culprits with a smaller cost are not listed; this limit has no \
                  other effect",
        source: "one per cent of the machine is about the cost of the recorder";
    ENOUGH = "all.enough", 20.0, "cases",
        kind: Significance,
        meaning: "a mean or a median of fewer cases is not used",
        source: "the median of 20 values is off by about a quarter of their spread";
    SERVER_ENDS = "server.ends_pct", 80.0, "% of the waiting time",
        kind: Significance,
        meaning: "a thread is a server only if it ended at least this part of all time that \
            threads waited for threads and services; one that others spin for at a barrier, only \
            if it ended this part of the time that it and one of them spin",
        source: "servers of the labelled corpus end 98 % and more; of two workers that alternate, \
                 each ends half, at most two thirds";
    ALONE = "server.alone_pct", 75.0, "% of the time",
        kind: Significance,
        meaning: "the work is serial if, for at least this part of the time with any application \
            thread running or ready, just one is. A thread is the one with the work if it runs \
            for at least this part of its life",
        source: "the server of AIX case 4 used 23.8 % of four CPUs, which is 95 % of one CPU; two \
            equal threads that alternate run half of the time each";
    DEARER = "calls.dearer_pct", 200.0, "% of a call alone",
        kind: Significance,
        meaning: "calls begun concurrently, or while another thread of the process is on a CPU, \
                  are contended if they cost at least this much",
        source: "two hardware threads of a core get half of it each at worst; with one sibling on \
                 a CPU mprotect takes 600 % and madvise 350 %; with another process on a CPU \
                 both take 100 %";
    MISSING_ENDS = "calls.missing_ends", 3.0, "times",
        kind: Significance,
        meaning: "calls exclude each other if this many times fewer pairs of calls end close \
                  together than by chance, or if this many times more gaps between ends are just \
                  above the minimum gap than below it; sleeps, if they overlap this many times \
                  less than by chance",
        source: "a Poisson variable of mean 8 is below 3 in one of 70 cases";
    UNDISTURBED = "calls.undisturbed", 0.9, "of the user-mode intervals",
        kind: Soundness,
        meaning: "this part of the intervals, the shortest ones, counts as undisturbed",
        source: "interruptions and preemptions hit fewer than a tenth of the intervals";
    LOOK = "yields.short_us", 40.0, "us",
        kind: Significance,
        meaning: "a thread that calls sched_yield again after less user CPU time than this, and \
                  makes no other call in between, has only polled a lock",
        source: "checking a lock takes less than 0.1 us, but the recorder writes two events: 1 us, \
                 in slow guests 20 us; spin locks often spin for some us before they yield";
    SLOWER = "hardware-bandwidth.slower_pct", 20.0, "% more time for similar work",
        kind: Significance,
        meaning: "a smaller slowdown cannot be distinguished from noise and clock rates",
        source: "processors run at a 10 to 20 % lower clock rate with all cores busy than with \
                 one; medians are exact within 6 %";
    QUEUE = "cpu-overload.queue_per_cpu", 1.25, "threads",
        kind: Significance,
        meaning: "with fewer threads per CPU that run or are ready, there is no queue",
        source: "PARbench on the p690: 1 is a full load; recorders and daemons add a few \
                 hundredths per CPU";
    WELL_MET = "replay.exact_pct", 2.0, "% of the time of the work",
        kind: Soundness,
        meaning: "the accuracy of a replay: a smaller gain is no gain, and threads with a smaller \
                  part of all CPU time in total are not counted as the work",
        source: "a choice: replays of one trace with ties broken differently differ by less";
}

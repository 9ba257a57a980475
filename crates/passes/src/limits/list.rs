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
        meaning: "a loss below this is not worth a verdict; wanted is what the work used and what \
                  it lacked, so that CPUs which nobody has work for change nothing",
        source: "the healthy recordings of the labelled corpus lose up to 10 % to start-up, \
                 wake-up delays and the recorder itself";
    NAMED = "all.named_pct", 1.0, "% of capacity",
        kind: Matters,
        meaning: "what costs less is not named among the evidence and the culprits, and decides \
                  nothing else",
        source: "a hundredth of the machine: the recorder costs as much";
    ENOUGH = "all.enough", 20.0, "cases",
        kind: Significance,
        meaning: "a mean or a median over fewer says nothing",
        source: "of 20 values the median is off by a quarter of their spread";
    SERVER_ENDS = "server.ends_pct", 80.0, "% of the waiting time",
        kind: Significance,
        meaning: "all waiting for threads and services, of which the server must have ended this \
            part",
        source: "servers of the labelled corpus end 98 % and more; two workers that hand a turn to \
                 each other end half each, up to two thirds";
    ALONE = "server.alone_pct", 75.0, "% of the time",
        kind: Significance,
        meaning: "time with just one application thread running or ready, of the time with any \
            thread at all: from this part on the work is serial. A thread that runs for this part \
            of its life has the work",
        source: "the server of AIX case 4 used 23.8 % of four CPUs, 95 % of one; of two equal \
            threads each runs half of the time";
    DEARER = "calls.dearer_pct", 200.0, "% of a call alone",
        kind: Significance,
        meaning: "calls under concurrency, or beside a sibling, that cost this much are contended",
        source: "two threads of one core get half of it each at worst; mprotect beside one sibling \
                 takes 600 %, madvise 350 %, either beside another process 100 %";
    MISSING_ENDS = "calls.missing_ends", 3.0, "times",
        kind: Significance,
        meaning: "so many times fewer ends of calls beside each other than chance has, or more at \
                  one distance than below it: calls exclude each other",
        source: "a Poisson variable of mean 8 is below 3 once in 70 times";
    UNDISTURBED = "calls.undisturbed", 0.9, "of the user-mode intervals",
        kind: Soundness,
        meaning: "the shortest part of them, which nothing disturbs",
        source: "what takes CPUs away hits fewer than a tenth";
    LOOK = "yields.short_us", 40.0, "us",
        kind: Significance,
        meaning: "a thread that yields again after less of its own code than this, and without any \
                  other call, has only looked whether it may go on",
        source: "a look at a lock takes less than 0.1 us, but the recorder adds its own two \
                 events: 1 us, in slow guests 20 us; spin locks often turn for some us before they \
                 yield";
    SLOWER = "hardware-bandwidth.slower_pct", 20.0, "% more time for like work",
        kind: Significance,
        meaning: "a slowdown below this is not told from noise and clock rates",
        source: "processors clock 10 to 20 % lower with all cores busy than with one; medians \
                 are exact within 6 %";
    QUEUE = "cpu-overload.queue_per_cpu", 1.25, "threads",
        kind: Significance,
        meaning: "threads per CPU that run or want to, below which there is no queue",
        source: "PARbench on the p690: 1 is a full load; recorders and daemons add some \
                 hundredths per CPU";
    WELL_MET = "replay.exact_pct", 2.0, "% of the time of the work",
        kind: Soundness,
        meaning: "as exact as a replay is: what gains less is no gain, and threads that have less \
                  of all CPU time together are not the work",
        source: "a choice: replays of one trace with other ties differ by less";
}

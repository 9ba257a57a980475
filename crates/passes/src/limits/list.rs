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
    MATTERS_LEAST = "all.matters_cpu_pct", 25.0, "% of one CPU",
        kind: Matters,
        meaning: "and a loss below this neither, as a system that does next to nothing has little \
                  to lose",
        source: "a choice: one thread that waits for a quarter of its time";
    NAMED = "all.named_pct", 1.0, "% of capacity",
        kind: Matters,
        meaning: "what costs less is not named among the evidence and the culprits, and decides \
                  nothing else",
        source: "a hundredth of the machine: the recorder costs as much";
    ENOUGH = "all.enough", 20.0, "cases",
        kind: Significance,
        meaning: "a mean or a median over fewer says nothing",
        source: "of 20 values the median is off by a quarter of their spread";
    SERVER_BUSY = "server.busy_pct", 60.0, "% of its life",
        kind: Significance,
        meaning: "running or ready for this part of it, a thread is busy enough to be a server \
            that others wait for",
        source: "the server of AIX case 4 ran 95 % of one CPU, one on a machine that was taken \
            away from it now and then 65 %; a lock's holder among N equal workers runs about 100/N \
            %";
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
    PARTNER = "server.partner_pct", 125.0, "% of its busy time",
        kind: Significance,
        meaning: "two threads that answer each other through a pipe or socket are partners, who \
            have one CPU's worth of work between them, if the waits that one of them ends last \
            together no longer than this; beyond it threads stand in line for that one",
        source: "where n threads share k tokens it is (n - k) / k: 100 % for two that alternate; \
                 the rest is for wake-ups";
    SAME = "calls.same_pct", 110.0, "% of a call alone",
        kind: Significance,
        meaning: "calls in company that cost no more than this are not contended",
        source: "a choice: means over some hundred calls differ by about a tenth by chance";
    DEARER = "calls.dearer_pct", 200.0, "% of a call alone",
        kind: Significance,
        meaning: "calls in company, or beside a sibling, that cost this much are contended",
        source: "two threads of one core get half of it each at worst; mprotect beside one sibling \
                 takes 600 %, madvise 350 %, either beside another process 100 %";
    MISSING_ENDS = "calls.missing_ends", 3.0, "times",
        kind: Significance,
        meaning: "so many times fewer such ends than expected: calls exclude each other",
        source: "a Poisson variable of mean 8 is below 3 once in 70 times";
    UNDISTURBED = "calls.undisturbed", 0.9, "of the stretches of application code",
        kind: Soundness,
        meaning: "the shortest part of them, which nothing disturbs",
        source: "what takes CPUs away hits fewer than a tenth";
    GAPS_BELOW = "section.shortest_pct", 2.0, "% of the gaps",
        kind: Significance,
        meaning: "gaps between the ends of two threads' calls that may be below the floor",
        source: "a choice: interrupts and lost time slices put an event so late that the next call \
                 ends right behind it";
    CLIFF = "section.cliff_times", 3.0, "times",
        kind: Significance,
        meaning: "gaps from the floor to twice the floor, against those below it, from which on \
                  it is a floor",
        source: "once for calls that end by chance";
    SLEEPS = "section.sleeps_pct", 10.0, "sleeps per hundred calls",
        kind: Significance,
        meaning: "threads that sleep more often may keep apart because they wait for each other",
        source: "partners that answer each other sleep once a call";
    SATURATED = "funneled-driver.saturated_pct", 40.0, "% of its time",
        kind: Significance,
        meaning: "a CPU, or a driver's one worker, must spend this part of its time on driver work",
        source: "funnels recorded for tests spend 42 to 97 % (recordings begin before the work \
                 does), their controls at most 30 %";
    WORK_STAYS = "neighbours.work_stays", 100.0, "times",
        kind: Soundness,
        meaning: "what the recorder started is known as the work if its threads get a CPU so \
                  often, however little they run: work that mostly sleeps in turns is work too",
        source: "a choice: a command that only waits for the end of the recording gets a CPU a few \
                 times";
    LOOK = "yields.short_us", 40.0, "us",
        kind: Significance,
        meaning: "a thread that yields again after less of its own code than this, and without any \
                  other call, has only looked whether it may go on",
        source: "a look at a lock takes less than 0.1 us, but the recorder adds its own two \
                 events: 1 us, in slow guests 20 us; spin locks often turn for some us before they \
                 yield";
    LOOKERS_WORK = "yields.work_pct", 10.0, "% of their CPU time",
        kind: Significance,
        meaning: "threads that yield in this way do something else in this part of it at least, or \
                  nobody waits for anything",
        source: "threads that wait for each other work for 1/N of the time; a loop of nothing but \
                 yields has no work at all";
    PHASE_CHANGE = "phases.change_pct", 25.0, "% of capacity",
        kind: Matters,
        meaning: "neighbouring pieces of a trace that differ by less, in what the CPUs do or in \
                  who runs, are one phase",
        source: "one of four CPUs";
    PHASE_PRICE = "phases.cut_price", 0.3, "bins",
        kind: Significance,
        meaning: "what a cut must take off the squared scatter of the make-up, in bins of 1 by 1: \
                  the price of a cut in a trace without noise",
        source: "a change by a quarter of the capacity for ten of the 128 bins";
    PHASE_NOISE = "phases.noise_times", 12.0, "times the scatter between neighbouring bins",
        kind: Significance,
        meaning: "what noise adds to the price of a cut",
        source: "a little more than twice the logarithm of 128, as criteria for change points have \
                 it";
    PHASE_SHORTEST = "phases.shortest_pct", 6.0, "% of the trace",
        kind: Matters,
        meaning: "shorter pieces are part of a neighbour",
        source: "eight of 128 bins";
    UNEXPLAINED_KERNEL = "verdict.unexplained_kernel_pct", 40.0, "% of wanted CPU time",
        kind: Soundness,
        meaning: "kernel time of applications outside synchronisation calls that no rule \
                  explains and that is too much to call a system healthy: it may be spinning on \
                  locks",
        source: "AIX cases 1 and 3, both waiting for locks, spend 43 and 60.5 % of capacity in \
                 the kernel";
    LEAST_MS = "verdict.least_ms", 50.0, "ms",
        kind: Soundness,
        meaning: "shorter traces show a moment: no verdict on them",
        source: "a dozen time slices of a fair scheduler (3 to 4 ms each); the shortest labelled \
                 recording with a right verdict has 80 ms";
    LEAST_SWITCHES = "verdict.least_switches_per_s", 0.5, "switches per second and CPU",
        kind: Soundness,
        meaning: "with fewer switches most of them are missing: a CPU that runs one thread, or \
                  none, still runs the kernel's housekeeping now and then",
        source: "the worker that folds a CPU's counters runs once a second (vm.stat_interval); \
                 the quietest labelled recording has 6, of one thread that computes";
    STRETCH_SHORT = "hardware-bandwidth.short_us", 10.0, "us",
        kind: Soundness,
        meaning: "stretches that typically are shorter are not compared: what the recorder adds \
                  is a part of them",
        source: "an event costs the recorder 0.2 to 1 us, and its buffers compete for the \
                 caches that are to be judged";
    STRETCH_LONG = "hardware-bandwidth.long_us", 1000.0, "us",
        kind: Soundness,
        meaning: "stretches that typically are longer are not compared: a hypervisor that takes \
                  the CPU away lengthens the typical one too",
        source: "Linux, also as a hypervisor, gives a CPU for 0.75 to 4 ms at a time; within 1 \
                 ms most stretches see no change";
    FEWER_BUSY = "hardware-bandwidth.fewer_busy_pct", 80.0, "% of the trace's busy CPUs",
        kind: Soundness,
        meaning: "a baseline must have kept at most this part of them busy; runs of perf stat \
                  are of the traced work if they kept this part at least, and not more by the same",
        source: "with nearly as many busy there is no other company to compare with";
    QUEUE = "cpu-overload.queue_per_cpu", 1.25, "threads",
        kind: Significance,
        meaning: "threads per CPU that run or want to, below which there is no queue",
        source: "PARbench on the p690: 1 is a full load; recorders and daemons add some \
                 hundredths per CPU";
    OVERHEAD = "mp-up-overhead.overhead_pct", 5.0, "% of the calls' time",
        kind: Matters,
        meaning: "overhead below this is not told from noise",
        source: "Olszewski and Van Fleet, section MP/UP Overhead: normally between 5 and 10 %";
    SLOWER = "hardware-bandwidth.slower_pct", 20.0, "% more time for like work",
        kind: Significance,
        meaning: "a slowdown below this is not told from noise and clock rates",
        source: "processors clock 10 to 20 % lower with all cores busy than with one; medians \
                 are exact within 6 %";
    RARE = "waits.rare_pct", 2.0, "% of its time",
            kind: Matters,
        meaning: "a thread that has work for less lacks no CPU, whatever it waits for: a main \
                  thread that waits for its workers",
        source: "a choice: a fiftieth";
    PASSED_OVER = "replay.passed_over_pct", 30.0, "% of the time ready",
        kind: Significance,
        meaning: "a thread that was ready for so much of it while CPUs idled that never took it \
                  was not allowed there",
        source: "a scheduler looks for work every tick";
    BOUND_WALL = "replay.bound_wall_pct", 20.0, "% of the recording",
        kind: Significance,
        meaning: "if CPUs idled for so much while one of some like threads was ready, none of them \
                  was allowed there",
        source: "no scheduler is so late so long";
    OVERLAP = "replay.overlap_pct", 10.0, "% of their time",
        kind: Soundness,
        meaning: "holds that lie within those of others for more are not those of one lock",
        source: "a choice: times are exact within an event";
    WELL_MET = "replay.exact_pct", 2.0, "% of the time of the work",
        kind: Soundness,
        meaning: "as exact as a replay is: one that misses the trace by more is not believed, what \
                  gains less is no gain, and threads that have less of all CPU time together are \
                  not the work",
        source: "a choice: replays of one trace with other ties differ by less";
    HANDED_ON = "replay.handed_on_pct", 66.7, "% of the waiting time",
        kind: Significance,
        meaning: "if so much of the waiting for words that threads wake each other through ended \
                  as a lock is handed on, they are one lock: whoever ended it had been let go \
                  itself, and nobody else had let anybody go since",
        source: "two of three; of pools of idle workers, which others wake as work comes, up to \
                 63 % ended so, of locks over calls to other programs 68 % and more";
    FREE = "replay.free_pct", 30.0, "% of the time of the work",
        kind: Soundness,
        meaning: "if being free of the order of the trace alone changes it by more, holds are not \
                  what they are taken for, or the work hangs on the order: then that is kept",
        source: "a choice: of 120 recordings the order alone changes five by more";
}

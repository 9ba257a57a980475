//! From the name of an event to what it counts.
//!
//! perf has its own names for what most processors count (`cycles`), and accepts the manufacturer's
//! (`cpu_clk_unhalted.thread`). A name may be inside its PMU (`cpu_core/cycles/u`), and may be
//! followed by modifiers (`cycles:u`).

use std::fmt;

/// Bytes that one miss of the last-level cache moves: a cache line of x86 and nearly all of Arm.
pub const LINE: f64 = 64.0;

/// Generates [`Counter`] and the look-up of its names from one list.
macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $counter:ident: $($name:literal)|+;)+) => {
        /// A quantity whose count shows how efficiently processors execute the application's code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Counter {
            $($(#[doc = $doc])+ $counter,)+
        }

        impl Counter {
            /// All counters, in a fixed order.
            pub const ALL: &[Counter] = &[$(Counter::$counter),+];

            fn by_name(name: &str) -> Option<Counter> {
                match name {
                    $($($name)|+ => Some(Counter::$counter),)+
                    _ => None,
                }
            }

            /// perf's name of the counter.
            pub const fn name(self) -> &'static str {
                match self { $(Counter::$counter => counters!(@first $($name)+),)+ }
            }
        }
    };
    (@first $name:literal $($more:literal)*) => { $name };
}

// Manufacturers' names: the event lists of the kernel's `tools/perf/pmu-events/arch`.
counters! {
    /// Cycles of a processor while it was not halted.
    Cycles: "cycles" | "cpu-cycles" | "cpu_cycles" | "cpu_clk_unhalted.thread"
        | "cpu_clk_unhalted.thread_p" | "cpu_clk_unhalted.core" | "cpu_clk_unhalted.core_p"
        | "ls_not_halted_cyc";
    /// Instructions completed.
    Instructions: "instructions" | "inst_retired" | "inst_retired.any" | "inst_retired.any_p"
        | "ex_ret_instr";
    /// Accesses of any kind that missed the last-level cache.
    CacheMisses: "cache-misses" | "longest_lat_cache.miss";
    /// Loads that reached the last-level cache.
    LlcLoads: "LLC-loads" | "ll_cache_rd";
    /// Loads that missed the last-level cache.
    LlcMisses: "LLC-load-misses" | "ll_cache_miss_rd" | "mem_load_retired.l3_miss"
        | "ls_dmnd_fills_from_sys.mem_io_local";
    /// Cycles in which nothing could be executed, mostly because data were not available.
    Stalled: "stalled-cycles-backend" | "idle-cycles-backend" | "stall_backend"
        | "cycle_activity.stalls_mem_any" | "memory_activity.stalls_l1d_miss";
    /// Pipeline slots that stayed empty because execution waited.
    StalledSlots: "topdown-be-bound" | "topdown-backend-bound";
    /// Pipeline slots, used or not.
    Slots: "slots" | "topdown-total-slots" | "topdown.slots";
    /// Data that memory controllers read.
    MemoryRead: "data_reads" | "data_read" | "cas_count_read" | "unc_m_cas_count.rd"
        | "unc_m_cas_count_rd";
    /// Data that memory controllers wrote.
    MemoryWritten: "data_writes" | "data_write" | "cas_count_write" | "unc_m_cas_count.wr"
        | "unc_m_cas_count_wr";
    /// Time that threads were on CPUs.
    TaskClock: "task-clock";
    /// Time that CPUs were counted, idle or not.
    CpuClock: "cpu-clock";
    /// Time from begin to end.
    Duration: "duration_time";
}

impl Counter {
    /// Whether memory controllers count it, independently of the CPUs.
    pub const fn is_of_memory(self) -> bool {
        matches!(self, Counter::MemoryRead | Counter::MemoryWritten)
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whose execution is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Application code only (`:u`).
    User,
    /// The kernel only (`:k`).
    Kernel,
    /// Application code and the kernel.
    Both,
}

/// What an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The quantity counted.
    pub counter: Counter,
    /// Whose execution is counted.
    pub mode: Mode,
}

/// The name of an event without its PMU, and its modifiers: `cycles` and `u` of
/// `cpu_core/cycles/u`.
pub(crate) fn parts(event: &str) -> (&str, &str) {
    let event = event.trim();
    if let Some((_pmu, inside)) = event.split_once('/') {
        let (terms, modifiers) = inside.split_once('/').unwrap_or((inside, ""));
        let name = terms.split(',').next().unwrap_or("");
        return (name, modifiers.trim_start_matches(':'));
    }
    event.split_once(':').unwrap_or((event, ""))
}

/// What `event` counts, e.g. `cycles:u` or `cpu_core/cycles/u`; `None` for events from which holdup
/// draws no conclusion.
pub fn meaning(event: &str) -> Option<Meaning> {
    let (name, modifiers) = parts(event);
    // Manufacturers' manuals use capitals; perf accepts both.
    let counter =
        Counter::by_name(name).or_else(|| Counter::by_name(&name.to_ascii_lowercase()))?;
    let mode = match (modifiers.contains('u'), modifiers.contains('k')) {
        (true, false) => Mode::User,
        (false, true) => Mode::Kernel,
        _ => Mode::Both,
    };
    Some(Meaning { counter, mode })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_counted_and_whose() {
        let of = |event| meaning(event).map(|m| (m.counter, m.mode));
        assert_eq!(of("cycles"), Some((Counter::Cycles, Mode::Both)));
        assert_eq!(of("cycles:u"), Some((Counter::Cycles, Mode::User)));
        assert_eq!(of("instructions:k"), Some((Counter::Instructions, Mode::Kernel)));
        assert_eq!(of("cpu-cycles:ukhH"), Some((Counter::Cycles, Mode::Both)));
        assert_eq!(of("cpu_core/cycles/u"), Some((Counter::Cycles, Mode::User)));
        assert_eq!(of("cpu/instructions/"), Some((Counter::Instructions, Mode::Both)));
        assert_eq!(of("CPU_CLK_UNHALTED.THREAD"), Some((Counter::Cycles, Mode::Both)));
        assert_eq!(of("armv8_pmuv3_0/stall_backend/u"), Some((Counter::Stalled, Mode::User)));
        assert_eq!(of("uncore_imc_0/data_reads/"), Some((Counter::MemoryRead, Mode::Both)));
        assert_eq!(of("task-clock:u"), Some((Counter::TaskClock, Mode::User)));
        assert_eq!(of("cpu/event=0x3c,umask=0x0/"), None);
        assert_eq!(of("sched:sched_switch"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn every_counter_is_found_by_the_name_it_is_shown_with() {
        for &counter in Counter::ALL {
            assert_eq!(meaning(counter.name()).map(|m| m.counter), Some(counter));
        }
    }
}

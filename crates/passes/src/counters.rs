//! The processor's counters for the application's code, by how many CPUs are busy.
//!
//! They come in two forms:
//! * **samples** (`-e cycles:u`): each carries the count since the previous sample, so that their
//!   sums are counts, as precise as there are samples;
//! * **readings** of a group (`-e '{sched:sched_switch,cycles:u}:S'`): the values of the counters
//!   of a CPU. The difference to the previous reading belongs to the thread that ran in between, if
//!   only one did. That is certain if counters are read at every switch. If a timer reads them, it
//!   holds for a thread that was there both times and hardly ever away.
//!
//! Only user mode counts for a thread. Events opened for user mode say so (`cycles:u`); for other
//! samples the address decides, because the upper half of the address space is the kernel's.
//! Without an address, a thread is in user mode outside its system calls. Differences of counters
//! of both modes are kept as such, because they cannot be divided.

use crate::slot::Slot;
use crate::user_intervals::{QUARTERS, quarter};
use holdup_counters::{Counter, LINE, Meaning, Mode, Tally, meaning};
use holdup_trace::{EventDesc, EventId, EventKind, Nanos, Reading};

/// Counts of one thread's application code, or of the whole machine in one mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    by: [u64; Counter::ALL.len()],
    /// Samples or readings of cycles and of instructions, on which the sums of these two rest.
    samples: [u64; 2],
}

impl Tally for Counts {
    /// 0 means not counted: a trace does not distinguish the two.
    fn total(&self, counter: Counter) -> Option<f64> {
        // Memory controllers count lines; perf stat converts them to bytes, a trace does not.
        let unit = if counter.is_of_memory() { LINE } else { 1.0 };
        Some(self.get(counter)).filter(|&n| n > 0).map(|n| n as f64 * unit)
    }
}

impl Counts {
    /// The count of one counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.by[counter as usize]
    }

    /// The sum of two.
    pub fn with(mut self, o: &Counts) -> Counts {
        let sums = self.by.iter_mut().zip(o.by).chain(self.samples.iter_mut().zip(o.samples));
        sums.for_each(|(sum, n)| *sum = sum.saturating_add(n));
        self
    }

    /// Cycles per instruction, if there are at least `samples` samples of each.
    pub fn per_instruction(&self, samples: u64) -> Option<f64> {
        let enough = self.samples.iter().all(|&n| n >= samples);
        self.cycles_per_instruction().filter(|_| enough)
    }

    fn add(&mut self, counter: Counter, n: u64) {
        match counter {
            Counter::Cycles => self.samples[0] += 1,
            Counter::Instructions => self.samples[1] += 1,
            _ => {}
        }
        let sum = &mut self.by[counter as usize];
        *sum = sum.saturating_add(n);
    }
}

/// How long counters that were read were enabled, and how long they counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// Time enabled, summed over counters.
    pub enabled_ns: u64,
    /// Time counting: less if several counters shared the processor's by multiplexing.
    pub running_ns: u64,
}

/// What ran on a CPU since its last switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// No thread, since this time.
    Idle { since: Nanos },
    /// This thread, since this time; `after_idle`: the CPU idled before, without an event.
    One { slot: Slot, since: Nanos, after_idle: bool, stays: Stays },
    /// More than one thread, or not known.
    Unknown,
}

/// Shows whether a thread was elsewhere between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stays {
    /// CPU time of the thread so far.
    pub(crate) ran_ns: Nanos,
    pub(crate) migrations: u64,
}

/// How busy the machine is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Concurrency {
    /// CPUs that run a thread now, including the observed one.
    pub(crate) running: u32,
    /// Integral of that number.
    pub(crate) running_ns: Nanos,
    /// CPUs that have run threads at all.
    pub(crate) cpus: u32,
}

/// A thread that was on its CPU for at least 19/20 of the time between two readings gets the whole
/// count: other threads can have caused at most a twentieth of it.
const MOST: (Nanos, Nanos) = (19, 20);

/// The last reading of a counter.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Nanos,
    value: u64,
    enabled_running: Option<(Nanos, Nanos)>,
    ran: Ran,
    running_ns: Nanos,
}

impl Last {
    /// The quarter of the CPUs that other threads kept busy since then, on average.
    fn quarter(&self, now: Nanos, concurrency: Concurrency) -> u8 {
        let span = now.saturating_sub(self.at);
        let all = match span {
            0 => Nanos::from(concurrency.running),
            _ => (concurrency.running_ns.saturating_sub(self.running_ns) + span / 2) / span,
        };
        quarter(all.saturating_sub(1) as usize, concurrency.cpus as usize)
    }

    /// Which thread and mode gets the count from then to `now`, in this mode.
    fn whose(&self, now: Nanos, ran: Ran, mode: Mode) -> Whose {
        match (ran, self.ran) {
            (Ran::Idle { since }, _) if since <= self.at => Whose::IdleTask,
            // The idle task never is in user mode.
            (Ran::One { slot, since, after_idle, .. }, _)
                if since <= self.at && (!after_idle || mode == Mode::User) =>
            {
                Whose::Thread(slot)
            }
            (
                Ran::One { slot, stays, .. },
                Ran::One { slot: slot_before, stays: stays_before, .. },
            ) if slot == slot_before && stays.migrations == stays_before.migrations => {
                let ran = stays.ran_ns.saturating_sub(stays_before.ran_ns);
                let most = ran.saturating_mul(MOST.1) >= (now - self.at).saturating_mul(MOST.0);
                if most { Whose::Thread(slot) } else { Whose::Nobody }
            }
            _ => Whose::Nobody,
        }
    }
}

/// What a difference between two readings is charged to.
enum Whose {
    Thread(Slot),
    IdleTask,
    /// Unknown.
    Nobody,
}

/// The sums by thread, and by the quarter of the CPUs that were busy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    kinds: Vec<Option<Meaning>>,
    /// Whether an event is the switch, by event id.
    switches: Vec<bool>,
    /// By slot; grows as needed.
    threads: Vec<[Counts; QUARTERS]>,
    /// Of all threads together, including counts that belong to no single thread, by [`Mode`].
    machine: [[Counts; QUARTERS]; 3],
    running: Running,
    /// By [`Reading::instance`]; grows as needed.
    lasts: Vec<Option<Last>>,
}

impl Counters {
    pub(crate) fn new(events: &[EventDesc]) -> Counters {
        let switch = EventKind::Switch;
        let is_switch = |e: &EventDesc| e.name == switch.to_string();
        Counters {
            kinds: events.iter().map(|e| meaning(&e.name)).collect(),
            switches: events.iter().map(is_switch).collect(),
            ..Counters::default()
        }
    }

    /// Whether this event is the switch.
    pub(crate) fn is_switch(&self, id: EventId) -> bool {
        self.switches.get(id.0 as usize) == Some(&true)
    }

    fn kind(&self, id: EventId) -> Option<Meaning> {
        self.kinds.get(id.0 as usize).copied().flatten()
    }

    /// Whether samples of this event count hardware events.
    #[inline]
    pub(crate) fn counts(&self, id: EventId) -> bool {
        let clocks = [Counter::TaskClock, Counter::CpuClock, Counter::Duration];
        self.kind(id).is_some_and(|kind| !clocks.contains(&kind.counter))
    }

    /// A sample: `period` more while `slot` was on a CPU. `user`: in user mode.
    pub(crate) fn sample(&mut self, id: EventId, slot: Slot, period: u64, user: bool, quarter: u8) {
        let Some(kind) = self.kind(id) else { return };
        let mode = match kind.mode {
            Mode::Both if user => Mode::User,
            Mode::Both => Mode::Kernel,
            known => known,
        };
        self.add(Some(slot), mode, kind.counter, period, quarter);
    }

    /// Counter values of a group while `ran` was still on their CPU. Returns whether the group had
    /// been off since the previous reading.
    pub(crate) fn readings(
        &mut self,
        now: Nanos,
        readings: &[Reading],
        ran: Ran,
        concurrency: Concurrency,
    ) -> bool {
        let off_before = self.off_ns();
        for r in readings {
            let index = r.instance as usize;
            if index >= self.lasts.len() {
                self.lasts.resize(index + 1, None);
            }
            let last = Last {
                at: now,
                value: r.value,
                enabled_running: r.enabled_running,
                ran,
                running_ns: concurrency.running_ns,
            };
            let Some(before) = self.lasts[index].replace(last) else { continue };
            let (Some(kind), Some(n)) = (self.kind(r.event), self.counted(before, last)) else {
                continue;
            };
            let slot = match before.whose(now, ran, kind.mode) {
                Whose::IdleTask if !kind.counter.is_of_memory() => continue,
                Whose::Thread(slot) => Some(slot),
                Whose::IdleTask | Whose::Nobody => None,
            };
            self.add(slot, kind.mode, kind.counter, n, before.quarter(now, concurrency));
        }
        self.off_ns() > off_before
    }

    fn off_ns(&self) -> Nanos {
        self.running.enabled_ns - self.running.running_ns
    }

    /// The count between two readings, scaled up for multiplexing. `None` if the counter did not
    /// count at all, or was restarted.
    fn counted(&mut self, before: Last, now: Last) -> Option<u64> {
        let n = now.value.checked_sub(before.value)?;
        let times = now.enabled_running.zip(before.enabled_running);
        let Some(((enabled, running), (enabled_before, running_before))) = times else {
            return Some(n);
        };
        let enabled = enabled.saturating_sub(enabled_before);
        let running = running.saturating_sub(running_before).min(enabled);
        self.running.enabled_ns = self.running.enabled_ns.saturating_add(enabled);
        self.running.running_ns = self.running.running_ns.saturating_add(running);
        let scaled =
            u128::from(n) * u128::from(enabled) / u128::from(Some(running).filter(|&r| r > 0)?);
        u64::try_from(scaled).ok()
    }

    fn add(&mut self, slot: Option<Slot>, mode: Mode, counter: Counter, n: u64, quarter: u8) {
        let level = quarter as usize % QUARTERS;
        self.machine[mode as usize][level].add(counter, n);
        let Some(slot) = slot.filter(|_| mode == Mode::User) else { return };
        let index = slot.0 as usize;
        if index >= self.threads.len() {
            self.threads.resize(index + 1, Default::default());
        }
        self.threads[index][level].add(counter, n);
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (Slot, &[Counts; QUARTERS])> {
        let rows = (0..).map(Slot).zip(&self.threads);
        rows.filter(|(_, levels)| levels.iter().any(|c| *c != Counts::default()))
    }

    /// All counts in one mode.
    pub(crate) fn machine(&self, mode: Mode) -> &[Counts; QUARTERS] {
        &self.machine[mode as usize]
    }

    /// How long counters counted; `None` if readings do not say.
    pub(crate) fn running(&self) -> Option<Running> {
        Some(self.running).filter(|r| r.enabled_ns > 0)
    }

    /// The next readings cannot be compared with the previous ones.
    pub(crate) fn forget_readings(&mut self) {
        self.lasts.fill(None);
    }

    /// Clears the sums.
    pub(crate) fn restart(&mut self) {
        self.threads.clear();
        self.machine = Default::default();
        self.running = Running::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_trace::Presence;

    fn events(names: &[&str]) -> Vec<EventDesc> {
        let event = |name: &&str| EventDesc {
            name: (*name).into(),
            system: String::new(),
            presence: Presence::Seen,
        };
        names.iter().map(event).collect()
    }

    #[test]
    fn sums_are_of_user_mode() {
        let mut c = Counters::new(&events(&[
            "cycles",
            "instructions:u",
            "LLC-load-misses",
            "cache-misses",
            "cpu-clock",
        ]));
        c.sample(EventId(0), Slot(1), 1000, true, 2);
        c.sample(EventId(0), Slot(1), 5000, false, 2);
        c.sample(EventId(1), Slot(1), 500, false, 2);
        c.sample(EventId(2), Slot(1), 7, true, 2);
        c.sample(EventId(3), Slot(1), 9, true, 2);
        c.sample(EventId(9), Slot(1), 9, true, 2);
        assert!(!c.counts(EventId(4)), "a clock tells nothing of the hardware");
        let rows: Vec<_> = c.rows().collect();
        assert_eq!(rows.len(), 1);
        let found = rows[0].1[2];
        assert_eq!(found.get(Counter::Cycles), 1000);
        assert_eq!(found.misses(), Some(9.0), "one count of misses is enough");
        assert_eq!(found.per_instruction(1), Some(2.0));
        assert_eq!(found.per_instruction(2), None);
        assert_eq!(sum(&c, Mode::Kernel), 5000);
    }

    /// A reading of the first event's counter number 7.
    fn reading(value: u64, enabled_running: Option<(u64, u64)>) -> [Reading; 1] {
        [Reading { event: EventId(0), instance: 7, value, enabled_running }]
    }

    fn of(slot: u32, since: Nanos) -> Ran {
        ran(slot, since, 0, 0)
    }

    fn ran(slot: u32, since: Nanos, ran_ns: Nanos, migrations: u64) -> Ran {
        let stays = Stays { ran_ns, migrations };
        Ran::One { slot: Slot(slot), since, after_idle: false, stays }
    }

    const ALONE: Concurrency = Concurrency { running: 1, running_ns: 0, cpus: 4 };

    fn sum(c: &Counters, mode: Mode) -> u64 {
        c.machine(mode).iter().map(|c| c.get(Counter::Cycles)).sum()
    }

    fn cycles(c: &Counters, slot: u32) -> u64 {
        let of_slot = c.rows().find(|r| r.0 == Slot(slot));
        of_slot.map_or(0, |r| r.1.iter().map(|c| c.get(Counter::Cycles)).sum())
    }

    #[test]
    fn a_difference_belongs_to_the_one_thread_that_ran_in_between() {
        let mut c = Counters::new(&events(&["cycles:u"]));
        c.readings(100, &reading(5000, None), of(1, 50), ALONE);
        assert_eq!(cycles(&c, 1), 0, "what was before the first reading is nobody's");
        c.readings(200, &reading(5700, None), of(2, 100), ALONE);
        assert_eq!(cycles(&c, 2), 700);
        c.readings(300, &reading(5800, None), of(1, 250), ALONE);
        assert_eq!(cycles(&c, 1), 0, "a switch in between: it may be another's");
        c.readings(400, &reading(6000, None), Ran::Idle { since: 300 }, ALONE);
        c.readings(500, &reading(6030, None), Ran::Unknown, ALONE);
        assert_eq!(sum(&c, Mode::User), 830);
        c.forget_readings();
        c.readings(600, &reading(9000, None), of(1, 500), ALONE);
        assert_eq!(sum(&c, Mode::User), 830, "who ran is not known");
        c.readings(700, &reading(10, None), of(1, 600), ALONE);
        assert_eq!(cycles(&c, 1), 0, "a counter that began anew");
    }

    #[test]
    fn between_readings_of_a_timer_a_thread_may_have_been_away_for_a_moment() {
        let mut c = Counters::new(&events(&["cycles:u"]));
        c.readings(0, &reading(0, None), ran(1, 0, 0, 0), ALONE);
        c.readings(1000, &reading(700, None), ran(1, 990, 950, 0), ALONE);
        assert_eq!(cycles(&c, 1), 700, "it was there for 19 of 20");
        c.readings(2000, &reading(1400, None), ran(1, 1990, 1899, 0), ALONE);
        assert_eq!(cycles(&c, 1), 700, "another may have done more than a twentieth");
        c.readings(3000, &reading(2100, None), ran(1, 2990, 2899, 1), ALONE);
        assert_eq!(cycles(&c, 1), 700, "it ran elsewhere");
        c.readings(4000, &reading(2800, None), ran(2, 3990, 1000, 1), ALONE);
        assert_eq!((cycles(&c, 1), cycles(&c, 2)), (700, 0), "two threads");
        assert_eq!(sum(&c, Mode::User), 2800, "the machine did it all");
        c.readings(5000, &reading(3500, None), Ran::Idle { since: 4500 }, ALONE);
        assert_eq!(sum(&c, Mode::User), 3500, "somebody ran before the CPU went idle");
        c.readings(6000, &reading(3600, None), Ran::Idle { since: 4500 }, ALONE);
        assert_eq!(sum(&c, Mode::User), 3500, "nobody ran");
    }

    #[test]
    fn memory_controllers_count_while_a_cpu_is_idle_and_count_lines() {
        let mut c = Counters::new(&events(&["uncore_imc_0/cas_count_read/"]));
        for (at, value) in [(100, 0), (200, 10)] {
            c.readings(at, &reading(value, None), Ran::Idle { since: 0 }, ALONE);
        }
        let read: f64 =
            c.machine(Mode::Both).iter().filter_map(|c| c.total(Counter::MemoryRead)).sum();
        assert_eq!(read, 640.0);
    }

    #[test]
    fn the_concurrent_is_that_of_all_the_time_between_two_readings() {
        let mut c = Counters::new(&events(&["cycles:u"]));
        let concurrency = |running_ns| Concurrency { running: 1, running_ns, cpus: 4 };
        c.readings(0, &reading(0, None), ran(1, 0, 0, 0), concurrency(0));
        c.readings(1000, &reading(70, None), ran(1, 0, 1000, 0), concurrency(2900));
        c.readings(2000, &reading(80, None), ran(1, 0, 2000, 0), concurrency(3900));
        let (_, levels) = c.rows().next().unwrap();
        assert_eq!(levels.map(|c| c.get(Counter::Cycles)), [10, 0, 70, 0]);
    }

    #[test]
    fn the_idle_task_has_no_user_mode() {
        let stays = Stays::default();
        let after_idle = Ran::One { slot: Slot(1), since: 100, after_idle: true, stays };
        let mut user = Counters::new(&events(&["cycles:u"]));
        let mut both = Counters::new(&events(&["cycles"]));
        for c in [&mut user, &mut both] {
            c.readings(100, &reading(0, None), Ran::Unknown, ALONE);
            c.readings(200, &reading(60, None), after_idle, ALONE);
        }
        assert_eq!((cycles(&user, 1), cycles(&both, 1)), (60, 0));
        assert_eq!(sum(&both, Mode::Both), 60);
    }

    #[test]
    fn counters_that_contended_are_scaled_up() {
        let mut c = Counters::new(&events(&["cycles:u"]));
        c.readings(0, &reading(0, Some((0, 0))), Ran::Unknown, ALONE);
        assert!(c.readings(100, &reading(50, Some((100, 25))), of(1, 0), ALONE), "it was off");
        assert_eq!(cycles(&c, 1), 200);
        c.readings(200, &reading(50, Some((200, 25))), of(1, 0), ALONE);
        assert_eq!(cycles(&c, 1), 200, "it did not count");
        assert_eq!(c.running(), Some(Running { enabled_ns: 200, running_ns: 25 }));
    }
}

//! The ledger closes, whoever spins: its leaves add up to the capacity to the nanosecond.

use crate::scene::{GETPPID, US, YIELD, machine};
use holdup_attribution::{Attribution, Leaf, analyze};
use holdup_passes::{FindsSpins, Options, Source};
use holdup_testkit::TraceBuilder;
use holdup_trace::{BuildId, Nanos, Spin, Spot};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use std::sync::Arc;

const CODE: u64 = 0x5000;
const PAUSE: u64 = 1;
const LOOP: u64 = 2;
const WORK: u64 = 3;
const UNKNOWN: u64 = 4;

/// Code that spins at one place and works at another.
struct KnownCode;

impl FindsSpins for KnownCode {
    fn at(&self, _: &str, _: Option<BuildId>, offset: u64) -> Option<Option<Spot>> {
        let spot = |spin| Spot { spin, function: "lock".to_owned() };
        match offset {
            PAUSE => Some(Some(spot(Spin::Pause))),
            LOOP => Some(Some(spot(Spin::Loop))),
            UNKNOWN => None,
            _ => Some(None),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    pid: u32,
    /// Of ten samples in its usual code, those that find it spinning.
    spins: u64,
}

/// What a thread does until its next sample.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Its usual code: one of ten samples.
    Usual(u64),
    /// The sample is at this place.
    At(u64),
    Yields(u64),
    Calls,
}

/// A thread has its CPU for some steps, each of them this long.
#[derive(Clone, Debug)]
struct Turn {
    thread: usize,
    steps: Vec<(Step, Nanos)>,
    sleeps: bool,
}

#[derive(Clone, Debug)]
struct Scene {
    cpus: usize,
    threads: Vec<Thread>,
    turns: Vec<Turn>,
    calls_recorded: bool,
}

fn any_scene() -> impl Strategy<Value = Scene> {
    let thread = (7..10_u32, 0..=10_u64).prop_map(|(pid, spins)| Thread { pid, spins });
    let step = prop_oneof![
        12 => (0..10_u64).prop_map(Step::Usual),
        2 => Just(Step::At(LOOP)),
        1 => Just(Step::At(UNKNOWN)),
        2 => (1..20_u64).prop_map(Step::Yields),
        1 => Just(Step::Calls),
    ];
    let steps = prop::collection::vec((step, 1..2_000 * US), 1..40);
    let turn = (0..6_usize, steps, any::<bool>());
    let turn = turn.prop_map(|(thread, steps, sleeps)| Turn { thread, steps, sleeps });
    let parts = (
        1..4_usize,
        prop::collection::vec(thread, 1..6),
        prop::collection::vec(turn, 1..20),
        any::<bool>(),
    );
    parts.prop_map(|(cpus, threads, turns, calls_recorded)| Scene {
        cpus,
        threads,
        turns,
        calls_recorded,
    })
}

impl Scene {
    /// Each thread stays on one CPU.
    fn trace(&self) -> TraceBuilder {
        let mut b = match self.calls_recorded {
            true => machine(self.cpus as u32),
            false => TraceBuilder::new(self.cpus as u32),
        };
        for (thread, tid) in self.threads.iter().zip(7..) {
            b = b.task(tid, thread.pid, None, "w");
            b = b.mapped(0, thread.pid, CODE, 0x1000, "/bin/w");
        }
        let mut on: Vec<(Nanos, u32)> = vec![(0, 0); self.cpus];
        for turn in &self.turns {
            let number = turn.thread % self.threads.len();
            let (cpu, tid) = (number % self.cpus, 7 + number as u32);
            let (at, last) = &mut on[cpu];
            if *last != tid {
                b = b.switch(*at, cpu as u16, *last, tid, "R");
            }
            for &(step, ns) in &turn.steps {
                b = self.step(b, at, (cpu as u16, tid), step);
                *at += ns;
            }
            *last = tid;
            if turn.sleeps {
                b = b.switch(*at, cpu as u16, tid, 0, "S");
                (*at, *last) = (*at + 100 * US, 0);
            }
        }
        for (cpu, (at, last)) in on.into_iter().enumerate() {
            b = b.switch(at, cpu as u16, last, 0, "S");
        }
        b
    }

    fn step(
        &self,
        b: TraceBuilder,
        at: &mut Nanos,
        (cpu, tid): (u16, u32),
        step: Step,
    ) -> TraceBuilder {
        let place = match step {
            Step::Usual(n) if n < self.threads[tid as usize - 7].spins => PAUSE,
            Step::At(place) => place,
            _ => WORK,
        };
        let (call, times) = match step {
            Step::Yields(times) => (YIELD, times),
            Step::Calls => (GETPPID, 1),
            Step::Usual(_) | Step::At(_) => (0, 0),
        };
        let calls = |b: TraceBuilder, _| {
            *at += 2 * US;
            b.sys_enter(*at - US, cpu, tid, call).sys_exit(*at, cpu, tid, call, 0)
        };
        let recorded = if self.calls_recorded { times } else { 0 };
        let b = (0..recorded).fold(b, calls);
        b.sample(*at, cpu, tid, &[CODE + place])
    }
}

#[test]
fn the_ledger_closes_whoever_spins() {
    let spins: [(Leaf, Cell<u32>); 3] =
        [Leaf::Spin, Leaf::ServiceSpin, Leaf::BarrierSpin].map(|leaf| (leaf, Cell::new(0)));
    let closes = |scene: Scene| {
        let spins_at: Source<dyn FindsSpins> = Source(Arc::new(KnownCode));
        let options = Options { spins: Some(spins_at), ..Options::default() };
        let analysis = analyze(&scene.trace().build(), &options).expect("a built trace");
        let ledger = Attribution::from(&analysis).ledger;
        let all: Nanos = ledger.leaves().map(|l| l.1).sum();
        prop_assert_eq!(all, ledger.capacity_ns);
        for (leaf, cases) in &spins {
            cases.set(cases.get() + u32::from(ledger.ns(*leaf) > 0));
        }
        Ok(())
    };
    TestRunner::deterministic().run(&any_scene(), closes).expect("it closes");
    for (leaf, cases) in spins {
        assert!(cases.get() > 10, "{}: {} cases", leaf.path(), cases.get());
    }
}

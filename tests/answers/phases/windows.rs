//! Windows of a trace, analysed side by side in one reading, equal what each gives on its own.

use crate::support::recording;
use holdup_attribution::{Attribution, JUDGE, Thresholds};
use holdup_diagnose::phases::{self, Wanted};
use holdup_passes::{
    Analysis, Detail, Fact, Group, LockBy, Observer, Options, Selection, Slot, Threads, Window,
};
use holdup_passes::{analyze, analyze_observed, analyze_parts, analyze_windows, each_fact};
use holdup_trace::{Batch, Event, Nanos, Opened, Reader, RunDecoder, Tid};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

fn open(scenario: &str) -> Box<dyn Reader> {
    holdup_open::open(&recording(scenario)).expect("readable")
}

/// All that the tables and the ledger say.
fn figures(a: &Analysis) -> String {
    let ledger = Attribution::from(a).ledger;
    format!(
        "{} events\n{:#?}\n{:#?}\n{:#?}\n{:#?}\n{ledger:#?}",
        a.events,
        a.cpu_rows(),
        a.procs(Group::Thread),
        a.syscalls(Group::Thread),
        a.locks(LockBy::Class),
    )
}

fn selected(reader: &dyn Reader, window: &Window) -> Analysis {
    let selection =
        Selection { from: Some(window.from), to: Some(window.to), ..Selection::default() };
    let options = Options { detail: window.detail, ..selection.into() };
    analyze(reader, &options, &JUDGE).expect("readable")
}

/// Thirds, what overlaps two of them, and all: of `reader`'s trace.
fn windows(reader: &dyn Reader) -> Vec<Window> {
    let (start, end) = reader.info().span.expect("times");
    let at = |twelfths: u64| start + (end - start) * twelfths / 12;
    [(2, 6), (0, 4), (3, 9), (8, 12), (5, 7), (0, 12)]
        .map(|(from, to)| Window { from: at(from), to: at(to), closed: true, detail: Detail::Sums })
        .into()
}

#[test]
fn windows_of_one_reading_equal_the_same_parts_read_alone() {
    for name in ["imb_server_c4", "native_steps", "ser_flock_c4", "neighbour_c4"] {
        let reader = open(name);
        let windows = windows(&*reader);
        let options = Options::default();
        let (parts, _) =
            analyze_parts(&*reader, &options, &JUDGE, &[], &windows, None).expect("readable");
        let whole = analyze(&*reader, &options, &JUDGE).expect("readable");
        assert_eq!(parts.len(), windows.len());
        let mut ended = Vec::new();
        let mut again: Vec<Option<Analysis>> = windows.iter().map(|_| None).collect();
        let cpus = whole.cpu_list();
        let done = &mut |number: usize, part| {
            ended.push(windows[number].to);
            again[number] = Some(part);
        };
        analyze_windows(&*reader, &options, &JUDGE, cpus, &windows, None, done).expect("readable");
        assert!(ended.is_sorted(), "{name}: {ended:?}");
        for ((window, part), again) in windows.iter().zip(&parts).zip(&again) {
            let alone = selected(&*reader, window);
            assert!(part.events > 0, "{name} {window:?}");
            assert!(figures(part) == figures(&alone), "{name} {window:?}");
            let again = again.as_ref().expect("every window ends");
            assert!(figures(again) == figures(&alone), "{name} {window:?}, once more");
        }
    }
}

/// Steps that are kept from a window's beginning on are those of the same part read alone.
#[test]
fn a_window_keeps_its_own_detail() {
    let reader = open("ser_flock_c4");
    let (start, end) = reader.info().span.expect("times");
    let third = (end - start) / 3;
    let window =
        Window { from: start + third, to: end - third, closed: true, detail: Detail::Steps };
    let (parts, _) = analyze_parts(&*reader, &Options::default(), &JUDGE, &[], &[window], None)
        .expect("readable");
    let part = &parts[0];
    assert!(part.keeps_steps());
    let alone = selected(&*reader, &window);
    let mut steps = 0;
    for (slot, thread) in part.all_threads() {
        let (a, b) = (part.steps(slot), alone.steps(slot));
        // A thread that nobody has seen before may have been there since the trace began.
        let known = |s: &holdup_passes::Step| s.at >= window.from;
        let a: Vec<_> = a.steps.iter().filter(|s| known(s)).collect();
        let b: Vec<_> = b.steps.iter().filter(|s| known(s)).collect();
        assert_eq!(a, b, "{:?}", thread.tid);
        steps += a.len();
    }
    assert!(steps > 100, "{steps}");
}

/// Counts how often a run is opened.
struct Counted {
    reader: Box<dyn Reader>,
    read: AtomicUsize,
    /// For its switches alone.
    looked_at: AtomicUsize,
}

impl Counted {
    fn of(scenario: &str) -> Counted {
        let (read, looked_at) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Counted { reader: open(scenario), read, looked_at }
    }
}

impl Reader for Counted {
    fn opened(&self) -> &Opened {
        self.reader.opened()
    }

    fn opened_mut(&mut self) -> &mut Opened {
        self.reader.opened_mut()
    }
    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        self.read.fetch_add(1, Ordering::Relaxed);
        self.reader.decoder(run)
    }
    fn decoder_of_switches(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        self.looked_at.fetch_add(1, Ordering::Relaxed);
        self.reader.decoder_of_switches(run)
    }
}

#[test]
fn any_number_of_windows_takes_one_reading() {
    let reader = Counted::of("imb_server_c4");
    let windows = windows(&reader);
    analyze_parts(&reader, &Options::default(), &JUDGE, &[], &windows, None).expect("readable");
    assert_eq!(reader.read.into_inner(), reader.reader.runs().len());
}

/// Where start-up is left out, and what is judged is replayed, and its facts are observed, and all
/// is wanted too.
#[test]
fn a_verdict_takes_one_look_at_switches_and_one_reading() {
    let reader = Counted::of("ser_retry_c2");
    let wanted = Wanted { replay: Some(1.0), whole: true };
    let (options, limits) = (Options::default(), Thresholds::default());
    let mut facts = Facts::default();
    let judged = phases::read_observed(&reader, &options, &limits, wanted, Some(&mut facts))
        .expect("readable");
    assert!(judged.left_out_ns > 0 && judged.whole.is_some());
    assert!(judged.replayed().keeps_steps());
    assert!(facts.all.len() > 1000);
    let runs = reader.reader.runs().len();
    assert_eq!(reader.looked_at.into_inner(), runs);
    assert_eq!(reader.read.into_inner(), runs);
}

/// Collects facts, with the thread of each.
#[derive(Default)]
struct Facts {
    all: Vec<String>,
    events: usize,
    begun: Vec<(Nanos, Nanos)>,
}

impl Observer for Facts {
    fn begins(&mut self, from: Nanos, to: Nanos) {
        self.begun.push((from, to));
    }

    fn events(&mut self, events: &[Event], _: &Batch) {
        self.events += events.len();
    }

    fn fact(&mut self, fact: &Fact, threads: &Threads) {
        self.all.extend(of_waits(fact, |slot| threads[slot].tid));
    }
}

/// A fact as text; runs that began before the window are not observed, so runs are left out.
fn of_waits(fact: &Fact, tid: impl Fn(Slot) -> Tid) -> Option<String> {
    match fact {
        Fact::Wait(slept) => Some(format!("{} {fact:?}", tid(slept.slot))),
        Fact::Call(call) => Some(format!("{} {fact:?}", tid(call.slot))),
        Fact::Run(_) => None,
        _ => Some(format!("{fact:?}")),
    }
}

/// The facts of an analysed part, by reading once more.
fn facts_read_again(reader: &dyn Reader, part: &Analysis) -> Vec<String> {
    let mut all = Vec::new();
    each_fact(reader, part, &JUDGE, &mut |fact| {
        all.extend(of_waits(fact, |slot| part.thread(slot).tid));
        ControlFlow::Continue(())
    })
    .expect("readable");
    all
}

#[test]
fn observed_facts_are_those_of_another_reading() {
    for name in ["imb_server_c4", "ser_flock_c4", "native_steps", "thr_mutex_perfz_c8"] {
        let reader = open(name);
        let options = Options::default();
        let mut facts = Facts::default();
        let whole = analyze_observed(&*reader, &options, &JUDGE, &mut facts).expect("readable");
        assert_eq!(facts.begun, [reader.info().span.expect("times")], "{name}");
        assert!(facts.events as u64 >= whole.events, "{name}");
        assert!(facts.all == facts_read_again(&*reader, &whole), "{name}");

        // Other windows before and beside it change nothing.
        let mut windows = windows(&*reader);
        windows.rotate_left(2);
        let mut facts = Facts::default();
        let (parts, _) = analyze_parts(&*reader, &options, &JUDGE, &[], &windows, Some(&mut facts))
            .expect("readable");
        assert_eq!(facts.begun, [(windows[0].from, windows[0].to)], "{name}");
        let alone = selected(&*reader, &windows[0]);
        assert!(figures(&parts[0]) == figures(&alone), "{name}");
        assert!(facts.all.len() > 10, "{name}");
        assert!(facts.all == facts_read_again(&*reader, &alone), "{name}");
    }
}

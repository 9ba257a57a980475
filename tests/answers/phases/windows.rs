//! Windows of a trace, analysed side by side in one reading, equal what each gives on its own.

use crate::support::recording;
use holdup_attribution::{Attribution, JUDGE, Thresholds};
use holdup_diagnose::phases::{self, Wanted};
use holdup_passes::{Analysis, Detail, Group, LockBy, Options, Selection, Window};
use holdup_passes::{analyze, analyze_parts, analyze_windows};
use holdup_trace::{Opened, Reader, RunDecoder};
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
            analyze_parts(&*reader, &options, &JUDGE, &[], &windows).expect("readable");
        let whole = analyze(&*reader, &options, &JUDGE).expect("readable");
        assert_eq!(parts.len(), windows.len());
        let mut ended = Vec::new();
        let mut again: Vec<Option<Analysis>> = windows.iter().map(|_| None).collect();
        let cpus = whole.cpu_list();
        analyze_windows(&*reader, &options, &JUDGE, cpus, &windows, &mut |number, part| {
            ended.push(windows[number].to);
            again[number] = Some(part);
        })
        .expect("readable");
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
    let (parts, _) =
        analyze_parts(&*reader, &Options::default(), &JUDGE, &[], &[window]).expect("readable");
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
    analyze_parts(&reader, &Options::default(), &JUDGE, &[], &windows).expect("readable");
    assert_eq!(reader.read.into_inner(), reader.reader.runs().len());
}

/// Where start-up is left out, and what is judged is replayed, and all is wanted too.
#[test]
fn a_verdict_takes_one_look_at_switches_and_one_reading() {
    let reader = Counted::of("ser_retry_c2");
    let wanted = Wanted { replay: Some(1.0), whole: true };
    let judged = phases::read(&reader, &Options::default(), &Thresholds::default(), wanted)
        .expect("readable");
    assert!(judged.left_out_ns > 0 && judged.whole.is_some());
    assert!(judged.replayed().keeps_steps());
    let runs = reader.reader.runs().len();
    assert_eq!(reader.looked_at.into_inner(), runs);
    assert_eq!(reader.read.into_inner(), runs);
}

//! A cut has all events of its part, in order, whatever else it has.

use crate::fixture;
use holdup_cut::cut;
use holdup_testkit::{Packing, PerfettoForm, TraceBuilder, perfetto};
use holdup_trace::{Cpu, Cut, Event, EventId, NameId, Nanos, Reader, What, merge};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A small trace of each format that can be cut.
const FIXTURES: [&str; 7] = [
    "healthy_naps_c2/perf.data",
    "profile_bank/perf.data",
    "thr_mutex_perfpipe_c8/perf.data",
    "tracedat-small/imb_single_c2.trace.dat.zst",
    "tracedat-small/thr_mutex_tc6_c8.trace.dat.zst",
    "profile_bank/script.txt.xz",
    "equivalence/lttng_thr_mutex_c4/lttng.tar.gz",
];

/// The cut, and its temporary folder.
fn cut_out(path: &Path, cut_to: &Cut) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("cut");
    let unpacked = holdup_open::unpacked(path).unwrap();
    let reader = holdup_open::open(unpacked.path()).unwrap();
    let written = cut(&*reader, unpacked.path(), cut_to, &output).unwrap();
    assert_eq!(written.bytes, files(&output).iter().map(|f| f.1.len() as u64).sum::<u64>());
    (folder, output)
}

/// Each file of a trace, which may be a folder, and what is in it.
fn files(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).unwrap();
        return entries.flat_map(|e| files(&e.unwrap().path())).collect();
    }
    vec![(path.to_owned(), std::fs::read(path).unwrap())]
}

/// Time, CPU, thread and kind of each event of a part; names and addresses depend on the file.
fn events(reader: &dyn Reader, (from, to): (Nanos, Nanos)) -> Vec<String> {
    let name = |id: NameId| reader.info().names.get(id);
    let of = |e: Event| {
        let event = &reader.info().events[usize::from(e.id.0)].name;
        let what = match e.what {
            What::Switch { prev, next, prev_state, prev_comm, next_comm, .. } => {
                format!("{prev} {prev_state:?} {} {next} {}", name(prev_comm), name(next_comm))
            }
            What::SysEnter { nr, .. } => format!("enter {nr}"),
            What::SysExit { nr, ret } => format!("exit {nr} {ret}"),
            _ => String::new(),
        };
        format!("{} {} {} {event} {what}", e.ts, e.cpu, e.tid)
    };
    let all = merge::events(reader).map(Result::unwrap);
    all.filter(|e| e.id != EventId::SIDEBAND && (from..=to).contains(&e.ts)).map(of).collect()
}

/// From and to, in thousandths of a trace.
fn window(reader: &dyn Reader, from: u64, to: u64) -> (Nanos, Nanos) {
    let (first, last) = reader.info().span.unwrap();
    // Damaged times may be up to `u64::MAX` apart.
    let at = |part: u64| first + (u128::from(last - first) * u128::from(part) / 1000) as u64;
    (at(from), at(to))
}

fn of_time(time: (Nanos, Nanos)) -> Cut {
    Cut { time: Some(time), ..Cut::default() }
}

#[test]
fn a_cut_has_the_events_of_its_part() {
    for name in FIXTURES {
        let path = fixture(name);
        let whole = holdup_open::open(&path).unwrap();
        for (from, to) in [(300, 500), (0, 250), (950, 1000), (500, 501)] {
            let time = window(&*whole, from, to);
            let (_folder, output) = cut_out(&path, &of_time(time));
            let part = holdup_open::open(&output).unwrap();
            assert_eq!(events(&*part, time), events(&*whole, time), "{name} {from} to {to}");
            assert_eq!(part.info().cut.as_ref().unwrap().time, Some(time), "{name}");
        }
    }
}

#[test]
fn a_cut_of_everything_is_everything() {
    for name in FIXTURES {
        let path = fixture(name);
        let whole = holdup_open::open(&path).unwrap();
        let (_folder, output) = cut_out(&path, &Cut::default());
        let again = holdup_open::open(&output).unwrap();
        assert_eq!(events(&*again, (0, u64::MAX)), events(&*whole, (0, u64::MAX)), "{name}");
        assert_eq!(again.info().capabilities, whole.info().capabilities, "{name}");
        assert_eq!(again.info().tasks.len(), whole.info().tasks.len(), "{name}");
    }
}

#[test]
fn a_cut_of_a_cut_is_the_same_as_of_the_whole() {
    for name in FIXTURES {
        let path = fixture(name);
        let whole = holdup_open::open(&path).unwrap();
        let (_outer, outer) = cut_out(&path, &of_time(window(&*whole, 200, 800)));
        let time = window(&*whole, 400, 600);
        let (_inner, inner) = cut_out(&outer, &of_time(time));
        let inner = holdup_open::open(&inner).unwrap();
        assert_eq!(events(&*inner, time), events(&*whole, time), "{name}");
    }
}

#[test]
fn chosen_cpus_are_all_there_is_of_the_part() {
    for name in FIXTURES {
        let path = fixture(name);
        let whole = holdup_open::open(&path).unwrap();
        let time = window(&*whole, 300, 500);
        let cpus = Some(vec![Cpu(1)]);
        let cut = Cut { cpus: cpus.clone(), ..of_time(time) };
        let (_folder, output) = cut_out(&path, &cut);
        let part = holdup_open::open(&output).unwrap();
        let of_cpu = |reader: &dyn Reader| -> Vec<String> {
            let all = events(reader, time);
            all.into_iter().filter(|e| e.split(' ').nth(1) == Some("1")).collect()
        };
        assert_eq!(of_cpu(&*part), of_cpu(&*whole), "{name}");
        assert_eq!(part.info().cut.as_ref().unwrap().cpus, cpus, "{name}");
    }
}

/// Regression: pages of trace.dat stayed whole, with halves of calls and interrupts at both ends.
#[test]
fn what_does_not_stay_of_a_page_becomes_padding() {
    for name in FIXTURES.into_iter().filter(|name| name.contains("trace.dat")) {
        let path = fixture(name);
        let unpacked = holdup_open::unpacked(&path).unwrap();
        let whole = holdup_open::open(unpacked.path()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("cut");
        let time = window(&*whole, 500, 501);
        let written = cut(&*whole, unpacked.path(), &of_time(time), &output).unwrap();
        let part = events(&*holdup_open::open(&output).unwrap(), (0, u64::MAX));
        assert_eq!(part.len() as u64, written.inside + written.outside, "{name}");
        // Their times are unchanged, although records between them are missing.
        let all: std::collections::HashSet<String> =
            events(&*whole, (0, u64::MAX)).into_iter().collect();
        let other = part.iter().find(|e| !all.contains(*e));
        assert_eq!(other, None, "{name}");
    }
}

#[test]
fn a_cut_is_small() {
    let path = fixture("imb_server_c4/perf.data");
    let whole = holdup_open::open(&path).unwrap();
    let (_folder, output) = cut_out(&path, &of_time(window(&*whole, 500, 510)));
    let (of_cut, of_whole) = (output.metadata().unwrap().len(), path.metadata().unwrap().len());
    assert!(of_cut * 10 < of_whole, "{of_cut} of {of_whole} bytes");
}

#[test]
fn packets_of_perfetto_are_cut() {
    let mut trace = TraceBuilder::new(2);
    for i in 0..4000u64 {
        let (cpu, tid) = ((i % 2) as u16, 40 + (i % 2) as u32);
        trace = trace.switch(1000 * i, cpu, 0, tid, "R").switch(1000 * i + 500, cpu, tid, 0, "S");
    }
    let trace = trace.build();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.pftrace");
    for packing in [Packing::None, Packing::Deflate] {
        let form = PerfettoForm { packing, ..PerfettoForm::default() };
        std::fs::write(&path, perfetto(&trace, &form)).unwrap();
        let whole = holdup_open::open(&path).unwrap();
        let time = window(&*whole, 400, 600);
        let (_folder, output) = cut_out(&path, &of_time(time));
        let part = holdup_open::open(&output).unwrap();
        let expected = events(&*whole, time);
        assert!(expected.len() > 1000);
        assert_eq!(events(&*part, time), expected);
        assert_eq!(part.info().cut.as_ref().unwrap().time, Some(time));
    }
}

#[test]
fn what_cannot_be_cut_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let line = "    <idle>-0     [006] d..2 7115.449607: sched_waking: comm=a pid=1 prio=1";
    let text = format!(
        "<!DOCTYPE html>\n<html><script class=\"trace-data\">\n# tracer: nop\n{line}\n</script>\n"
    );
    std::fs::write(&page, text).unwrap();
    let reader = holdup_open::open(&page).unwrap();
    let error = cut(&*reader, &page, &Cut::default(), &folder.path().join("cut")).unwrap_err();
    assert!(error.to_string().contains("an HTML page"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_window_has_its_events(which in 0..FIXTURES.len(), from in 0..1000u64, len in 0..300u64) {
        let path = fixture(FIXTURES[which]);
        let whole = holdup_open::open(&path).unwrap();
        let time = window(&*whole, from, (from + len).min(1000));
        let (_folder, output) = cut_out(&path, &of_time(time));
        let part = holdup_open::open(&output).unwrap();
        prop_assert_eq!(events(&*part, time), events(&*whole, time));
    }

    #[test]
    fn damage_is_an_error_or_a_cut_and_never_a_panic(
        which in 0..FIXTURES.len(),
        places in prop::collection::vec((0..1u64 << 32, any::<u8>()), 1..20),
        keep in 500..1001usize,
        anonymous: bool,
    ) {
        let unpacked = holdup_open::unpacked(&fixture(FIXTURES[which])).unwrap();
        let mut bytes = std::fs::read(unpacked.path()).unwrap();
        bytes.truncate(bytes.len() / 1000 * keep);
        for (at, byte) in places {
            // Most of the damage where the tables are.
            let reach = if at % 2 == 0 { bytes.len() } else { bytes.len().min(8192) };
            let at = at as usize % reach;
            bytes[at] = byte;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("damaged");
        std::fs::write(&path, bytes).unwrap();
        if let Ok(reader) = holdup_open::open(&path)
            && reader.info().span.is_some()
        {
            let time = window(&*reader, 300, 600);
            let asked = Cut { anonymous, ..of_time(time) };
            let output = folder.path().join("cut");
            if cut(&*reader, &path, &asked, &output).is_ok() {
                let _ = holdup_open::open(&output);
            }
        }
    }
}

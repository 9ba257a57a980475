//! A cut without names contains no name in its bytes, and gives the same figures as the whole.

use crate::fixture;
use holdup_cut::cut;
use holdup_testkit::{Generic, Packing, PerfettoForm, perfetto};
use holdup_trace::{Batch, Cpu, Cut, Event, EventId, NameId, Nanos, Reader, What, merge};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Recordings of each format that is one file or archive.
const FIXTURES: [&str; 16] = [
    "healthy_naps_c2/perf.data",
    "profile_bank/perf.data",
    "thr_mutex_perfpipe_c8/perf.data",
    "tracedat-small/imb_single_c2.trace.dat.zst",
    "tracedat-small/thr_mutex_tc6_c8.trace.dat.zst",
    "profile_bank/script.txt.xz",
    "profile_convoy/script.txt.xz",
    "equivalence/imb_single_c4/ftrace.txt.xz",
    "equivalence/imb_single_c4/report.txt.xz",
    "equivalence/imb_single_c4/report-ns.txt.xz",
    "equivalence/ser_semop_c4/ftrace.txt.xz",
    "equivalence/ser_semop_c4/report.txt.xz",
    "equivalence/thr_mutex_c4/ftrace.txt.xz",
    "equivalence/thr_mutex_c4/report.txt.xz",
    "equivalence/lttng_thr_mutex_c4/lttng.tar.gz",
    "equivalence/lttng_ser_semop_c4/lttng.tar.gz",
];

/// The whole trace without names, and its temporary folder.
fn nameless(path: &Path) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("cut");
    let unpacked = holdup_open::unpacked(path).unwrap();
    let reader = holdup_open::open(unpacked.path()).unwrap();
    let all = Cut { anonymous: true, ..Cut::default() };
    cut(&*reader, unpacked.path(), &all, &output).unwrap();
    (folder, output)
}

/// Every byte of a file, or of a folder's files with their names.
fn bytes(path: &Path) -> Vec<u8> {
    if !path.is_dir() {
        return std::fs::read(path).unwrap();
    }
    let entries = std::fs::read_dir(path).unwrap().map(Result::unwrap);
    let of = |e: std::fs::DirEntry| [e.file_name().as_encoded_bytes(), &bytes(&e.path())].concat();
    entries.flat_map(of).collect()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    memchr::memmem::find(bytes, text.as_bytes()).is_some()
}

/// Whether `bytes` contain `text` as a separate word.
fn contains_word(bytes: &[u8], text: &str) -> bool {
    let is_word = |at: Option<usize>| {
        let b = at.and_then(|at| bytes.get(at));
        b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
    };
    memchr::memmem::find_iter(bytes, text.as_bytes())
        .any(|at| !is_word(at.checked_sub(1)) && !is_word(Some(at + text.len())))
}

/// Names of threads, files and functions in a trace that are neither the kernel's nor generally
/// known; and the kernel's names.
fn names(reader: &dyn Reader) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut kernel = BTreeSet::new();
    let mut ids: BTreeSet<NameId> = reader.info().tasks.iter().map(|t| t.comm).collect();
    merge::drive(reader, 1, &mut |events: &[Event], batch: &Batch| {
        for event in events {
            ids.insert(event.comm);
            match event.what {
                What::Switch { prev_comm, next_comm, .. } => ids.extend([prev_comm, next_comm]),
                What::Comm { comm, .. } | What::Fork { child_comm: comm, .. } => {
                    ids.insert(comm);
                }
                What::Exec { filename, .. } => _ = ids.insert(filename),
                What::Sample { stack, .. } | What::Stack { of: stack } => {
                    for f in batch.frame_names(stack) {
                        let names = &reader.info().names;
                        match is_kernel(&names.get(f.dso)) {
                            true => _ = kernel.insert(names.get(f.function)),
                            false => ids.extend([f.dso, f.function]),
                        }
                    }
                }
                What::BlockedReason { name, .. } | What::WorkStart { name, .. } => {
                    kernel.insert(reader.info().names.get(name));
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    let all: Vec<String> = ids.into_iter().map(|id| reader.info().names.get(id)).collect();
    kernel.extend(all.iter().filter(|n| holdup_trace::is_kernel_thread(n.as_bytes())).cloned());
    let known =
        ["perf", "trace-cmd", "holdup", "swapper", "[vdso]", "[unknown]", "lttng", "<idle>"];
    let own = all.into_iter().filter(|name| {
        let letters = name.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
        letters.len() >= 4
            && !holdup_trace::is_kernel_thread(name.as_bytes())
            && !known.iter().any(|k| name.starts_with(k))
    });
    (own.collect(), kernel)
}

fn is_kernel(dso: &str) -> bool {
    dso.is_empty() || dso.starts_with("[kernel") || dso == "[vdso]"
}

/// No name of `path` is in the bytes of its nameless cut, which has all of its events.
fn check(path: &Path) {
    let name = path.display();
    let whole = holdup_open::open(path).unwrap();
    let info = whole.info();
    let (_folder, output) = nameless(path);
    let bytes = bytes(&output);
    let mut searched = 0;
    let host = info.hostname.clone().filter(|h| h.len() > 3 && h != "(none)");
    let command = info.cmdline.clone().unwrap_or_default();
    let words = command.split(' ').filter(|w| w.starts_with('/')).map(str::to_owned);
    let (own, kernel) = names(&*whole);
    // Some functions, fields and events of the kernel have the same names as threads.
    let of_kernel = |word: &str| {
        kernel.iter().any(|name| name.contains(word))
            || info.symbols.functions().any(|(_, f)| f.contains(word))
            || info.events.iter().any(|e| format!("{}:{}", e.system, e.name).contains(word))
    };
    for secret in own.into_iter().chain(host).chain(words) {
        // A number at a name's end stays; the name is before it.
        let stem = secret.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
        searched += 1;
        assert!(!contains_word(&bytes, &secret), "{name}: {secret}");
        assert!(of_kernel(&secret) || !contains(&bytes, &secret), "{name}: {secret}");
        assert!(of_kernel(stem) || !contains(&bytes, stem), "{name}: {stem}");
    }
    assert!(searched > 0, "{name}: only {searched} names to look for");
    let part = holdup_open::open(&output).unwrap();
    assert_eq!(kinds(&*part), kinds(&*whole), "{name}");
    assert!(part.info().built.is_empty(), "{name}");

    assert!(part.info().capabilities == info.capabilities, "{name}");
}

/// Time, CPU, thread and kind of each event, without names.
fn kinds(reader: &dyn Reader) -> Vec<(Nanos, Cpu, u32, String)> {
    let all = merge::events(reader).map(Result::unwrap);
    let events = &reader.info().events;
    all.filter(|e| e.id != EventId::SIDEBAND)
        .map(|e| {
            let what = match e.what {
                What::Switch { prev, next, prev_state, .. } => {
                    format!("{prev} {prev_state:?} {next}")
                }
                What::SysExit { nr, ret } => format!("{nr} {ret}"),
                What::Wakeup { tid, target, .. } | What::Waking { tid, target, .. } => {
                    format!("{tid} {target}")
                }
                What::Other => String::new(),
                _ => events[usize::from(e.id.0)].name.clone(),
            };
            (e.ts, e.cpu, e.tid.0, what)
        })
        .collect()
}

#[test]
fn no_name_is_left_in_the_bytes() {
    for name in FIXTURES {
        check(&fixture(name));
    }
}

#[test]
fn no_name_is_left_in_packets_of_perfetto() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.pftrace");
    for name in [FIXTURES[0], FIXTURES[3], "ser_psem_c2/perf.data", "imb_amdahl_c2/perf.data"] {
        let trace = holdup_open::open(&fixture(name)).unwrap();
        for (compact, generic, packing) in
            [(false, Generic::Named, Packing::None), (true, Generic::Described, Packing::Deflate)]
        {
            let form = PerfettoForm { compact, generic, packing, ..PerfettoForm::default() };
            std::fs::write(&path, perfetto(&*trace, &form)).unwrap();
            check(&path);
        }
    }
}

/// A message, field by field.
#[derive(Default, Clone)]
struct M(Vec<u8>);

impl M {
    fn int(mut self, number: u64, value: u64) -> M {
        self.varint(number << 3);
        self.varint(value);
        self
    }
    fn bytes(mut self, number: u64, value: impl AsRef<[u8]>) -> M {
        self.varint(number << 3 | 2);
        self.varint(value.as_ref().len() as u64);
        self.0.extend_from_slice(value.as_ref());
        self
    }
    fn with(self, number: u64, message: M) -> M {
        self.bytes(number, message.0)
    }
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

fn m() -> M {
    M::default()
}

const SECRET: &str = "acmesecret";

/// A secret in every place of a packet that has text, and in some that do not exist.
fn packets() -> Vec<M> {
    let of = |number, message| m().int(8, 1000).int(10, 1).with(number, message);
    let event = |number, content: M| m().int(1, 1000).int(2, 7).with(number, content);
    let text = |id| m().int(1, id).bytes(2, SECRET);
    let generic = m().bytes(1, SECRET).with(2, m().bytes(1, SECRET).bytes(3, SECRET));
    let stat = m().bytes(1, "sched_stat_wait").with(2, m().bytes(1, "comm").bytes(3, SECRET));
    let described = m().bytes(1, SECRET).with(2, m().bytes(1, SECRET).int(3, 1));
    let switch = m().bytes(1, SECRET).int(2, 7).int(4, 1).bytes(5, SECRET).int(6, 9);
    let bundle = m()
        .int(1, 0)
        .with(2, event(4, switch.clone().bytes(99, SECRET)))
        .with(2, event(3, m().bytes(2, SECRET)))
        .with(2, event(236, m().int(1, 7).bytes(2, SECRET).bytes(3, SECRET)))
        .with(2, event(327, generic))
        .with(2, event(327, stat))
        .with(2, event(70_000, m().bytes(1, SECRET)).bytes(500, SECRET))
        .with(11, m().int(1, 70_000).bytes(3, SECRET).bytes(2, described.0))
        .bytes(512, SECRET);
    let interned = [5u64, 16, 17, 18, 2, 1].iter().fold(m(), |i, &n| i.with(n, text(1)));
    let interned = interned.with(6, m().int(1, 1).int(2, 1).int(3, 1).bytes(8, SECRET));
    let interned = interned.with(19, m().int(1, 1).int(7, 1)).with(7, m().int(1, 1).int(2, 1));
    let base = m().int(2, 100).with(3, m().bytes(1, SECRET).bytes(2, SECRET)).bytes(10, SECRET);
    let uts = m().bytes(1, "Linux").bytes(2, SECRET).bytes(3, format!("6.1.2-{SECRET}"));
    let config = m().bytes(1, SECRET).bytes(2, SECRET).int(35, 4);
    vec![
        of(2, m().with(1, m().int(1, 7).bytes(3, SECRET)).with(2, m().int(1, 7).bytes(2, SECRET))),
        of(33, m().with(2, m().with(1, m().bytes(1, SECRET).with(100, config))).bytes(9, SECRET)),
        of(45, m().with(1, uts).bytes(2, SECRET).bytes(17, SECRET)),
        of(34, m().int(1, 1).bytes(6, SECRET).bytes(7, SECRET)),
        of(59, m().with(12, m().with(1, base))).int(13, 1),
        of(12, interned),
        of(66, m().int(1, 0).int(2, 7).int(3, 7).int(4, 1).bytes(19, SECRET)),
        of(1, bundle),
        of(11, m().bytes(23, SECRET)),
        of(39, m().bytes(1, SECRET)),
        of(65, m().bytes(1, SECRET)),
        of(900, m().bytes(1, SECRET)),
        of(899, m().bytes(1, SECRET)),
    ]
}

/// Writes a file with this content and removes the names: the secret is nowhere in the output. The
/// folder has both.
fn leaks_nothing(name: &str, content: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (path, output) = (folder.path().join(name), folder.path().join("nameless"));
    std::fs::write(&path, content).unwrap();
    let (_made, nameless) = nameless(&path);
    std::fs::rename(nameless, &output).unwrap();
    let bytes = bytes(&output);
    assert!(!contains(&bytes, SECRET), "{}", bytes.escape_ascii());
    (folder, output)
}

#[test]
fn no_field_of_a_packet_leaks() {
    let file = packets().into_iter().fold(m(), |file, packet| file.with(1, packet)).0;
    let (folder, output) = leaks_nothing("whole.pftrace", &file);
    let path = folder.path().join("whole.pftrace");
    let (whole, part) = (holdup_open::open(&path).unwrap(), holdup_open::open(&output).unwrap());
    assert_eq!(kinds(&*part).len(), kinds(&*whole).len());
    assert_eq!(part.info().tasks.len(), whole.info().tasks.len());
    assert_eq!(part.info().os_release.as_deref(), Some("6.1.2"));
}

#[test]
fn no_word_of_a_line_leaks() {
    let lines = "\
        # tracer: nop\n# acmesecret: x\n#  acmesecret\n\
        acmesecret:     acmesecret-42 [001] 1.000100: sched_wakeup: comm=acmesecret pid=43 prio=1 \
        target_cpu=000\n\
        \x20     acmesecret-42 [001] 1.000200: print: acmesecret: 12345 acmesecret=acmesecret\n\
        \x20     acmesecret-42 [001] 1.000300: acmesecret: (0xffff) acmesecret=7\n\
        \x20     acmesecret-42 [001] 1.000400: sys_openat(dfd: 1, filename: 7f \"/acmesecret: \")\n\
        \x20     acmesecret-42 [001] 1.000500: sched_process_exec: filename=/a/acmesecret pid=42 \
        old_pid=42\n\
        \x20     acmesecret-42 [001] 1.000600: workqueue_execute_start: work struct \
        0xffff888000000000: function acme_fn [acmesecret]\n\
        => acmesecret+0x1/0x2 [acmesecret]\nacmesecret\n";
    let (folder, output) = leaks_nothing("whole.txt", lines.as_bytes());
    let path = folder.path().join("whole.txt");
    let (whole, part) = (holdup_open::open(&path).unwrap(), holdup_open::open(&output).unwrap());
    assert_eq!(kinds(&*part), kinds(&*whole));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever is damaged, the output contains the secret at most by chance.
    #[test]
    fn damaged_packets_are_no_panic_and_leak_nothing(
        places in prop::collection::vec((any::<usize>(), any::<u8>()), 1..8)
    ) {
        let mut file = packets().into_iter().fold(m(), |file, packet| file.with(1, packet)).0;
        for (at, byte) in places {
            let at = at % file.len();
            file[at] = byte;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("damaged");
        std::fs::write(&path, file).unwrap();
        if let Ok(reader) = holdup_open::open(&path) {
            let output = folder.path().join("cut");
            let all = Cut { anonymous: true, ..Cut::default() };
            if cut(&*reader, &path, &all, &output).is_ok() {
                prop_assert!(!contains(&bytes(&output), SECRET));
            }
        }
    }
}

/// A damaged byte made the reader take a switch for the lists of a bundle: the name was copied as
/// ten numbers.
#[test]
fn lists_that_do_not_fit_together_are_not_copied() {
    let lists = m().bytes(1, SECRET).int(2, 7).int(4, 1);
    let bundle = m().int(1, 0).with(4, lists);
    let packet = m().int(8, 1000).int(10, 1).with(1, bundle);
    let file = packets().into_iter().chain([packet]).fold(m(), |file, p| file.with(1, p)).0;
    leaks_nothing("whole.pftrace", &file);
}

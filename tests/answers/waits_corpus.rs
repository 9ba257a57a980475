//! The labelled recordings: the known bottleneck comes first, its holder is right, waiting times
//! agree with what the programs counted themselves, and every nanosecond of blame is accounted for.

use holdup_attribution::{Attribution, Leaf, WaitsBy, WaitsRow, analyze};
use holdup_passes::{Analysis, Options};
use holdup_testkit::{corpus, needs};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Part of the labelled recordings whose bottleneck must come first, in per cent.
const FIRST_PCT: usize = 95;
/// The waiting time of the first row against the program's own counter, in per cent of the latter:
/// the program's clock also runs while it is on its way into and out of the call.
const WAIT_TOLERANCE_PCT: u64 = 25;

struct Case {
    name: String,
    class: String,
    workload: String,
    truth: Value,
    analysis: Analysis,
}

/// The labelled recordings.
fn labelled() -> PathBuf {
    corpus().join("vm")
}

fn read(packed: &Path) -> Analysis {
    let reader = holdup_open::open(packed).unwrap_or_else(|e| panic!("{}: {e}", packed.display()));
    analyze(&*reader, &Options::default()).unwrap_or_else(|e| panic!("{}: {e}", packed.display()))
}

/// All labelled recordings, one after the other.
fn each(dir: &Path, mut look: impl FnMut(Case)) {
    let labels = std::fs::read_to_string(dir.join("LABELS.tsv")).expect("labels");
    for line in labels.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (name, class) = (fields[0], fields[7]);
        let path = dir.join(name);
        if !path.is_file() {
            continue;
        }
        look(Case {
            name: name.to_owned(),
            class: class.to_owned(),
            workload: fields[5].to_owned(),
            truth: serde_json::from_str(fields.last().unwrap()).expect("ground truth"),
            analysis: read(&path),
        });
    }
}

/// What the first row must be, where the recording can show it.
fn is_bottleneck(case: &Case, row: &WaitsRow) -> Option<bool> {
    let b = &case.truth["bottleneck"];
    let address = |key: &str| {
        b[key].as_str().and_then(|a| u64::from_str_radix(a.trim_start_matches("0x"), 16).ok())
    };
    let object = || u64::from_str_radix(row.object.trim_start_matches("0x"), 16).ok();
    let kind = b["kind"].as_str().unwrap_or("");
    Some(match kind {
        "pthread mutex" if b["locks"] == 1 => row.kind == "futex" && object() == address("addr"),
        // Any word of the 48 bytes, or its mutex.
        "condition variable broadcast" => {
            let cond = address("cond")?;
            row.kind == "futex"
                && (object() == address("mutex")
                    || object().is_some_and(|o| (cond..cond + 48).contains(&o)))
        }
        "pthread barrier" | "serial phase" => row.kind == "futex" && row.usage == Some("barrier"),
        "SysV semaphore" | "single server" => {
            row.kind == "semop" && row.object == format!("semid {}", b["semid"])
        }
        "SysV message queue token" => {
            row.kind == "msgq" && row.object == format!("msqid {}", b["msqid"])
        }
        "file lock (flock)" => row.kind == "flock",
        "pipe token ring" => row.kind == "pipe",
        "block device" if case.class.starts_with("io_bound") => row.kind == "disk",
        _ => return None,
    })
}

fn tids(roles: &Value) -> Vec<u32> {
    let mut out = Vec::new();
    for list in roles.as_object().into_iter().flat_map(|m| m.values()).filter_map(Value::as_array) {
        let numbers: Vec<u32> = list.iter().filter_map(Value::as_u64).map(|n| n as u32).collect();
        // `[7, "..", 12]` is a range.
        match (list.iter().any(Value::is_string), numbers[..].first(), numbers.last()) {
            (true, Some(&a), Some(&b)) => out.extend(a..=b),
            _ => out.extend(numbers),
        }
    }
    out
}

#[needs(corpus)]
#[test]
fn the_known_bottleneck_is_the_first_row_and_its_holder_is_right() {
    let dir = labelled();
    let (mut cases, mut first, mut holders, mut right, mut compared, mut agree) =
        (0, 0, 0, 0, 0, 0);
    let mut report = String::new();
    each(&dir, |case| {
        let a = &case.analysis;
        let caps = &a.capabilities;
        if !(caps.switches && caps.syscalls.are_all() && (caps.wakeups || caps.wakers)) {
            return;
        }
        let rows = Attribution::from(a).waits(WaitsBy::Object);
        let Some(row) = rows.first() else { return };
        let Some(ok) = is_bottleneck(&case, row) else { return };
        cases += 1;
        first += ok as usize;
        if !ok {
            writeln!(
                report,
                "{}: first row is {} {} ({:?})",
                case.name, row.kind, row.object, row.usage
            )
            .unwrap();
            return;
        }
        let b = &case.truth["bottleneck"];
        let roles = tids(&case.truth["roles"]);
        // Who must hold it: the server, the worker with most to do, or else any worker.
        let one = if b["kind"] == "single server" {
            case.truth["roles"]["server"][0].as_u64()
        } else {
            b["longest_worker"]
                .as_u64()
                .or(b["worker"].as_u64())
                .and_then(|w| roles.get(w as usize))
                .map(|&t| t as u64)
        };
        if let Some(h) = row.holders.first() {
            holders += 1;
            let good = one.map_or(roles.contains(&h.tid), |t| t == h.tid as u64);
            right += good as usize;
            if !good {
                writeln!(report, "{}: holder is {} ({}), not {one:?}", case.name, h.comm, h.tid)
                    .unwrap();
            }
        }
        // The programs time lock, semop, flock, msgrcv, read and barrier calls.
        let counted = case.truth["wait_us"].as_u64().unwrap_or(0) * 1000;
        let lone = !matches!(row.kind, "pipe" | "disk")
            && row.usage != Some("condvar")
            && caps.lifecycle
            && a.lost_events == 0;
        if counted > 50_000_000 && lone && b["kind"] != "condition variable broadcast" {
            compared += 1;
            let seen = row.elapsed_ns.unwrap_or(0);
            let off = seen.abs_diff(counted) * 100 / counted;
            agree += (off <= WAIT_TOLERANCE_PCT) as usize;
            if off > WAIT_TOLERANCE_PCT {
                let (seen, counted) = (seen / 1_000_000, counted / 1_000_000);
                writeln!(
                    report,
                    "{} ({}): waits {seen} ms, the program counted {counted} ms",
                    case.name, case.workload
                )
                .unwrap();
            }
        }
    });
    println!(
        "bottleneck first: {first}/{cases}; holder right: {right}/{holders}; waiting time agrees: \
            {agree}/{compared}\n{report}"
    );
    assert!(cases >= 30, "{cases} cases");
    assert!(first * 100 >= cases * FIRST_PCT, "bottleneck first in {first} of {cases}\n{report}");
    assert!(right * 100 >= holders * FIRST_PCT, "holder right in {right} of {holders}\n{report}");
    assert!(agree * 100 >= compared * 90, "waiting time agrees in {agree} of {compared}\n{report}");
}

fn assert_adds_up(name: &str, a: &Analysis) {
    let (parts, whole) = a.blame_check();
    assert_eq!(parts, whole, "{name}: blame");
    let judged = Attribution::from(a);
    let ledger = &judged.ledger;
    assert_eq!(ledger.leaves().map(|l| l.1).sum::<u64>(), ledger.capacity_ns, "{name}: ledger");
    // Every object's part is in the table: rows lose less than a nanosecond each to rounding.
    let rows = judged.waits(WaitsBy::Object);
    let blamed: u64 = rows.iter().map(|r| r.idle_blamed_ns).sum();
    let leaves = Leaf::WAITED_FOR.map(|leaf| ledger.ns(leaf));
    assert!(
        blamed + rows.len() as u64 + leaves.len() as u64 >= leaves.iter().sum::<u64>(),
        "{name}: rows"
    );
}

#[test]
fn blame_adds_up_on_every_fixture() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut checked = 0;
    for dir in std::fs::read_dir(fixtures).expect("fixtures").flatten() {
        for file in std::fs::read_dir(dir.path()).into_iter().flatten().flatten() {
            let path = file.path();
            let name = path.to_string_lossy().into_owned();
            if [".dat.zst", ".data.zst", ".dat", ".data"].iter().any(|e| name.ends_with(e)) {
                assert_adds_up(&name, &read(&path));
                checked += 1;
            }
        }
    }
    assert!(checked > 0);
}

#[needs(corpus)]
#[test]
fn blame_adds_up_on_every_labelled_recording() {
    each(&labelled(), |case| assert_adds_up(&case.name, &case.analysis));
}

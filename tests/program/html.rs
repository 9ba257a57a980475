//! The page of `holdup report`: what stands in it is what the other forms say, in bounded size.

use crate::support::{recording, run, stdout};
use holdup_attribution::{analyze, follow};
use holdup_passes::{Doing, Options};
use holdup_render::html;
use serde_json::{Map, Value};

/// What the page's scripts get.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("type=\"application/json\" id=\"data\">").expect("a block");
    serde_json::from_str(rest.split_once("</script>").expect("its end").0).expect("JSON")
}

fn page(args: &[&str]) -> Value {
    data(&stdout(args))
}

#[test]
fn the_page_carries_the_figures_of_json() {
    for scenario in ["imb_server_c4", "native_chain_disk", "thr_rows_c2"] {
        let trace = recording(scenario);
        let trace = trace.to_str().unwrap();
        let page = page(&["report", trace]);
        let json = |args: &[&str]| -> Value { serde_json::from_str(&stdout(args)).unwrap() };
        assert_eq!(page["report"], json(&["diagnose", "-j", trace]), "{scenario}");
        for table in page["tables"].as_array().unwrap() {
            let name = table["name"].as_str().unwrap();
            if name != "locks" {
                assert_eq!(table["rows"], json(&[name, "-j", trace])["rows"], "{scenario} {name}");
            }
        }
        let graph = json(&["waits", "--graph", "json", trace]);
        assert_eq!(page["graph"]["edges"], graph["graph"]["edges"], "{scenario}");
        let bins = &page["timeline"]["bins"];
        let sum = |key: &str| -> u64 {
            bins[key].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum()
        };
        let rows = json(&["cpus", "-j", trace]);
        let column = |key: &str| -> u64 {
            rows["rows"].as_array().unwrap().iter().map(|r| r[key].as_u64().unwrap()).sum()
        };
        assert_eq!(sum("idle"), column("idle_ns"), "{scenario}: the bins are the CPUs' accounts");
        assert_eq!(sum("switches"), column("switches"), "{scenario}");
    }
}

/// What lanes show adds up to what the accounts say, to the nanosecond.
#[test]
fn lanes_add_up_to_the_accounts() {
    for scenario in ["imb_server_c4", "native_pipe_pair", "order_stages_c4", "lost_sysloop_n2"] {
        let reader = holdup_open::open(&recording(scenario)).unwrap();
        let whole = analyze(&*reader, &Options::default()).unwrap();
        let whom = html::whom(&whole);
        let followed = follow(&*reader, &whole, &whom).unwrap();
        for &slot in &whom.threads {
            let (lane, t) = (followed.lane(slot).unwrap(), whole.thread(slot));
            let asleep: u64 = [
                Doing::ThreadSync,
                Doing::KernelService,
                Doing::KernelLock,
                Doing::Io,
                Doing::Outside,
                Doing::Asleep,
            ]
            .map(|d| lane.sum(d))
            .iter()
            .sum();
            let lanes = (lane.sum(Doing::Running), lane.sum(Doing::Ready), asleep);
            let sums = (t.running_ns, t.woken_ns + t.preempted_ns, t.blocked_ns);
            assert_eq!(lanes, sums, "{scenario}: {}", whole.comm(t));
        }
        let (mut known, mut shown) = (0, 0);
        for row in whole.cpu_rows() {
            let lane = followed.cpu_lane(holdup_trace::Cpu(row.cpu)).unwrap();
            assert_eq!(Doing::ALL.iter().map(|&d| lane.sum(d)).sum::<u64>(), row.wall_ns);
            known += row.idle_ns;
            // Interrupts on top of the idle task are the lane's idle time and not the row's.
            shown += lane.sum(Doing::Idle);
        }
        assert!(known <= shown, "{scenario}: {known} of {shown}");
    }
}

/// The shape of the block: keys and kinds, without what they hold.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "bool".into(),
        Value::Number(_) => "number".into(),
        Value::String(_) => "text".into(),
        Value::Array(list) => Value::Array(list.first().map(shape).into_iter().collect()),
        Value::Object(map) => {
            map.iter().map(|(k, v)| (k.clone(), shape(v))).collect::<Map<_, _>>().into()
        }
    }
}

#[test]
fn the_shape_of_the_timeline_is_kept() {
    let page = page(&["report", recording("imb_server_c4").to_str().unwrap()]);
    insta::assert_json_snapshot!("timeline", shape(&page["timeline"]));
}

#[test]
fn the_same_trace_gives_the_same_bytes() {
    let trace = recording("thr_rows_c2");
    let trace = trace.to_str().unwrap();
    let once = stdout(&["report", trace]);
    assert_eq!(once, stdout(&["diagnose", "--format", "html", trace]));
    assert!(once.len() < 2_000_000, "{} bytes of a small trace", once.len());
}

#[test]
fn every_table_has_a_page_and_what_has_none_says_so() {
    let trace = recording("thr_rows_c2");
    let trace = trace.to_str().unwrap();
    for verb in ["summary", "ledger", "procs", "info", "guide", "path", "phases"] {
        assert_eq!(page(&[verb, "--format", "html", trace])["report"]["command"], verb);
    }
    for args in [&["events", trace][..], &["rules"], &["doctor"]] {
        let out = run(&[args, &["--format", "html"]].concat());
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(String::from_utf8_lossy(&out.stderr).contains("HTML output"), "{args:?}");
    }
}

/// Threads without number: the page does not grow with them.
#[test]
fn the_page_does_not_grow_with_the_trace() {
    use std::fmt::Write as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.txt");
    let mut text = String::from("# tracer: nop\n#\n");
    for i in 0..60_000_u32 {
        let (prev, next) = (1000 + i % 9000, 1000 + (i + 1) % 9000);
        writeln!(
            text,
            " worker-{prev} [{:03}] d..2. {}.{:06}: sched_switch: prev_comm=worker{prev} \
             prev_pid={prev} prev_prio=120 prev_state=S ==> next_comm=worker{next} \
             next_pid={next} next_prio=120",
            i % 3,
            10 + i / 100_000,
            i % 100_000 * 10
        )
        .unwrap();
    }
    std::fs::write(&path, text).unwrap();
    let out = run(&["report", path.to_str().unwrap()]);
    assert!(out.stdout.len() > 100_000, "{}", String::from_utf8_lossy(&out.stderr));
    assert!(out.stdout.len() < 10_000_000, "{} bytes", out.stdout.len());
}

//! Call chains of `holdup profile`: as trees, with functions that were inlined, and beside perf.

use crate::support::profiles::{json, profile, rows, samples};
use crate::support::{fixture, recording, run, stdout};
use holdup_testkit::needs;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

const CONVOY: &str = "profile_convoy";
const BANK: &str = "profile_bank";
const INLINE: &str = "profile_inline";

fn number(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("{key} of {row}"))
}

/// A function as perf prints it.
fn name(row: &Value) -> String {
    let symbol = row["symbol"].as_str().unwrap_or("?");
    if row["inlined"] == true { format!("{symbol} (inlined)") } else { symbol.to_owned() }
}

/// The rows of a tree by their path from the thread's name on.
fn paths(answer: &Value) -> BTreeMap<Vec<String>, &Value> {
    let mut path: Vec<String> = Vec::new();
    let mut all = BTreeMap::new();
    for row in rows(answer) {
        let depth = number(row, "depth") as usize;
        assert!(depth <= path.len(), "no level is left out: {row}");
        path.truncate(depth);
        path.push(if depth == 0 { row["comm"].as_str().unwrap().into() } else { name(row) });
        // Functions without a name are told by their file.
        assert!(all.insert(path.clone(), row).is_none() || row["symbol"].is_null(), "{path:?}");
    }
    all
}

#[test]
fn what_is_below_a_function_and_its_own_samples_add_up_to_it() {
    for name in [CONVOY, BANK, INLINE] {
        let whole = samples(rows(&json(name, &[])));
        let down = json(name, &["--tree", "top-down", "--min-pct", "0"]);
        let all = rows(&down);
        let mut sums: Vec<(u64, u64)> = Vec::new();
        let check = |open: &mut Vec<(u64, u64)>, depth: usize| {
            while open.len() > depth {
                let (total, parts) = open.pop().unwrap();
                assert_eq!(total, parts, "{name}");
            }
        };
        for row in all {
            let depth = number(row, "depth") as usize;
            check(&mut sums, depth);
            let total = number(row, "total_samples");
            if let Some(above) = sums.last_mut() {
                above.1 += total;
            }
            sums.push((total, number(row, "samples")));
        }
        check(&mut sums, 0);
        let of_level = |rows: &[Value], level: u64, key: &str| -> u64 {
            rows.iter().filter(|r| r["depth"] == level).map(|r| number(r, key)).sum()
        };
        assert_eq!(of_level(all, 0, "total_samples"), whole);
        assert_eq!(samples(all), whole, "each sample ends somewhere");
        let up = json(name, &["--tree", "bottom-up", "--min-pct", "0"]);
        assert_eq!(of_level(rows(&up), 0, "total_samples"), whole);
        assert_eq!(of_level(rows(&up), 1, "total_samples"), whole);
        assert!(rows(&up)[0].get("samples").is_none());
    }
}

#[test]
fn a_tree_has_who_called_whom() {
    let down = json(CONVOY, &["--tree", "top-down"]);
    let leads = |paths: &BTreeMap<Vec<String>, &Value>, chain: &[&str]| {
        paths.keys().any(|path| path.windows(chain.len()).any(|part| part == chain))
    };
    let chain = ["worker", "handle_request", "update_balance", "post_entries"];
    assert!(leads(&paths(&down), &chain), "{down}");
    let up = json(CONVOY, &["--tree", "bottom-up"]);
    let chain = ["convoy", "post_entries", "update_balance", "handle_request", "worker"];
    assert!(leads(&paths(&up), &chain), "{up}");
    let text = profile(CONVOY, &["--tree", "top-down"]);
    let line = text.lines().find(|l| l.ends_with(" post_entries")).unwrap();
    let above = text.lines().find(|l| l.ends_with(" update_balance")).unwrap();
    assert_eq!(line.find("post_entries").unwrap(), above.find("update_balance").unwrap() + 2);
}

#[test]
fn branches_below_the_share_are_left_out() {
    for way in ["top-down", "bottom-up"] {
        let all = json(CONVOY, &["--tree", way, "--min-pct", "0"]);
        let some = json(CONVOY, &["--tree", way, "--min-pct", "20"]);
        let pct = |row: &Value| row["total_pct"].as_f64().unwrap();
        let large = |row: &&Value| pct(row) >= 20.0;
        let expected: Vec<&Value> = rows(&all).iter().filter(large).collect();
        assert!(expected.len() > 3 && expected.len() < rows(&all).len());
        assert_eq!(rows(&some).iter().collect::<Vec<_>>(), expected);
    }
    for wrong in ["-1", "101", "nan", "x"] {
        let out = run(&["profile", "--tree", "top-down", &format!("--min-pct={wrong}"), "x"]);
        assert_eq!(out.status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn functions_have_what_they_called_with_them() {
    for name in [CONVOY, BANK, INLINE] {
        let plain = json(name, &[]);
        let answer = json(name, &["--children"]);
        let all = rows(&answer);
        let own: Vec<&Value> = all.iter().filter(|r| r["samples"] != 0).collect();
        assert_eq!(own.len(), rows(&plain).len(), "{name}");
        assert_eq!(samples(own.iter().copied()), samples(rows(&plain)), "{name}");
        assert!(all.iter().all(|r| number(r, "total_samples") >= number(r, "samples")));
        assert!(all.is_sorted_by_key(|r| std::cmp::Reverse(number(r, "total_samples"))));
    }
    let answer = json(CONVOY, &["--children"]);
    let total = |symbol: &str, key: &str| -> u64 {
        rows(&answer).iter().filter(|r| r["symbol"] == symbol).map(|r| number(r, key)).sum()
    };
    assert_eq!(total("handle_request", "samples"), 0);
    let called = total("update_balance", "total_samples") + total("parse_request", "total_samples");
    assert!(total("handle_request", "total_samples") >= called && called > 100);
}

#[test]
fn inlined_functions_are_frames_of_their_own() {
    let folded = profile(INLINE, &["--folded"]);
    // What was put into the sampled function, and into one that calls.
    let chain = ";main;serve;reply;checksum;digest;mix ";
    assert!(folded.lines().any(|l| l.contains(chain)), "{folded}");
    assert!(folded.lines().any(|l| l.contains(";main;serve;mix ")), "{folded}");
    let counted = |text: &str| -> u64 {
        text.lines().map(|l| l.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
    };
    let functions = json(INLINE, &[]);
    assert_eq!(counted(&folded), samples(rows(&functions)));
    let names: Vec<&Value> = rows(&functions).iter().map(|r| &r["symbol"]).collect();
    assert!(names.contains(&&Value::from("checksum")), "{names:?}");
    assert!(!names.contains(&&Value::from("mix")), "its samples are checksum's: {names:?}");
    let tree = json(INLINE, &["--tree", "top-down"]);
    let paths = paths(&tree);
    let chain = ["serve", "reply (inlined)", "checksum", "digest (inlined)", "mix (inlined)"];
    assert!(paths.keys().any(|path| path.ends_with(&chain.map(str::to_owned))), "{paths:?}");
    let text = profile(INLINE, &["--tree", "top-down"]);
    assert!(text.lines().any(|l| l.ends_with(" mix (inlined)")), "{text}");

    let without = profile(INLINE, &["--folded", "--no-inline"]);
    assert!(without.lines().any(|l| l.contains(";main;serve;checksum ")), "{without}");
    assert!(!without.contains("mix") && counted(&without) == counted(&folded), "{without}");
    assert_eq!(rows(&functions), rows(&json(INLINE, &["--no-inline"])));
}

#[test]
fn forms_of_output_exclude_each_other() {
    let trace = recording(CONVOY).display().to_string();
    for wrong in [
        &["--tree", "top-down", "--by", "thread"][..],
        &["--tree", "top-down", "--children"],
        &["--children", "--by", "line"],
        &["--min-pct", "3"],
        &["--folded", "--tree", "top-down"],
        &["--pprof", "-", "--folded"],
        &["--pprof", "-", "--firefox", "-"],
        &["--pprof", "x", "-o", "y"],
        &["--firefox", "-", "-j"],
    ] {
        let out = run(&[&["profile"], wrong, &[&trace]].concat());
        assert_eq!(out.status.code(), Some(2), "{wrong:?}");
    }
    for form in ["--pprof", "--firefox"] {
        let out = run(&["profile", form, &trace, &trace]);
        let message = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(message.contains("is the trace itself"), "{form}: {message}");
    }
}

#[test]
fn a_trace_without_samples_has_no_tree() {
    let trace = recording("imb_server_c4").display().to_string();
    for args in [&["--tree", "top-down"][..], &["--children"]] {
        let text = stdout(&[&["profile"], args, &[&trace]].concat());
        assert!(text.contains("no samples say which code ran"), "{text}");
        assert!(text.contains("CPU time by thread"), "{text}");
    }
}

// ---- beside perf ---------------------------------------------------------------------------

/// What perf says of a fixture, with its files. Versions of perf differ in which chains they look
/// for inlined functions in.
fn perf(name: &str, args: &[&str]) -> String {
    let mut perf = Command::new("perf");
    perf.args(args)
        .arg("--no-inline")
        .arg("--symfs")
        .arg(fixture(name).join("root"))
        .arg("-i")
        .arg(recording(name));
    String::from_utf8_lossy(&perf.output().unwrap().stdout).into_owned()
}

/// The part of `perf report --stdio` that is about CPU time.
fn of_cpu_time(report: &str) -> impl Iterator<Item = &str> {
    let mut wanted = false;
    report.lines().filter(move |line| {
        if let Some((_, event)) = line.split_once("of event '") {
            wanted = event.starts_with("cpu-clock");
        }
        wanted && !line.starts_with('#') && !line.trim().is_empty()
    })
}

/// Names that perf has none for are addresses there.
fn known(symbol: &str) -> String {
    if symbol.starts_with("0x") || symbol.starts_with("ffffffff") { "?" } else { symbol }.to_owned()
}

#[needs(perf)]
#[test]
fn totals_are_those_of_perfs_children() {
    for name in [CONVOY, BANK, INLINE] {
        let text = perf(
            name,
            &[
                "report",
                "--stdio",
                "-g",
                "none",
                "--children",
                "-t",
                "\t",
                "-n",
                "--sort",
                "comm,sym",
            ],
        );
        let mut theirs: BTreeMap<(String, String), String> = BTreeMap::new();
        for line in of_cpu_time(&text) {
            let words: Vec<&str> = line.split('\t').map(str::trim).collect();
            let symbol = known(words[4].split_once("] ").unwrap().1);
            if symbol != "?" {
                theirs.insert((words[3].to_owned(), symbol), words[0].to_owned());
            }
        }
        let answer = json(name, &["--children", "--no-inline"]);
        let whole: u64 = samples(rows(&answer));
        let mut ours: BTreeMap<(String, String), u64> = BTreeMap::new();
        for row in rows(&answer).iter().filter(|r| !r["symbol"].is_null()) {
            let key = (row["comm"].as_str().unwrap().to_owned(), self::name(row));
            *ours.entry(key).or_default() += number(row, "total_samples");
        }
        // Samples of these recordings all count the same time.
        let ours: BTreeMap<(String, String), String> = ours
            .into_iter()
            .map(|(key, n)| (key, format!("{:.2}%", 100.0 * n as f64 / whole as f64)))
            .collect();
        assert_eq!(theirs, ours, "{name}");
        assert!(ours.len() > 2, "{ours:?}");
    }
}

#[needs(perf)]
#[test]
fn trees_are_perfs_call_graphs() {
    for name in [CONVOY, BANK, INLINE] {
        for (way, order) in [("top-down", "caller"), ("bottom-up", "callee")] {
            let form = format!("folded,0,{order},function,count");
            let text =
                perf(name, &["report", "--stdio", "--no-children", "-g", &form, "--sort", "comm"]);
            let mut theirs: BTreeMap<Vec<String>, u64> = BTreeMap::new();
            for line in of_cpu_time(&text) {
                // Between the lines of chains are those of the rows.
                let Some((n, chain)) = line.split_once(' ') else { continue };
                let Ok(n) = n.parse::<u64>() else { continue };
                let chain: Vec<String> = chain.split(';').map(known).collect();
                for end in 1..=chain.len() {
                    *theirs.entry(chain[..end].to_vec()).or_default() += n;
                }
            }
            let answer = json(name, &["--tree", way, "--min-pct", "0", "--no-inline"]);
            let mut ours: BTreeMap<Vec<String>, u64> = BTreeMap::new();
            let mut path = Vec::new();
            for row in rows(&answer).iter().filter(|r| r["depth"] != 0) {
                path.truncate(number(row, "depth") as usize - 1);
                path.push(self::name(row));
                *ours.entry(path.clone()).or_default() += number(row, "total_samples");
            }
            assert_eq!(theirs, ours, "{name} {way}");
        }
    }
}

/// The chains that perf prints, from the innermost frame on, each with the thread's name.
fn chains(name: &str) -> Vec<(String, Vec<String>)> {
    let text = perf(name, &["script", "-F", "comm,tid,event,ip,sym,dso"]);
    // A chain ends with an empty line.
    let records = text.split("\n\n").map(|record| record.trim_start_matches('\n').lines());
    let chain = |mut lines: std::str::Lines<'_>| {
        let head = lines.next().filter(|head| head.contains("cpu-clock"))?;
        let comm = head.split_whitespace().next()?.to_owned();
        Some((comm, lines.map(str::to_owned).collect()))
    };
    records.filter_map(chain).collect()
}

/// The lines of chains, from the outermost frame on, as stackcollapse-perf.pl makes them.
fn folded(chains: impl Iterator<Item = (String, Vec<String>)>) -> Vec<String> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for (comm, mut frames) in chains {
        frames.push(comm);
        frames.reverse();
        *counts.entry(frames.join(";")).or_default() += 1;
    }
    counts.iter().map(|(chain, n)| format!("{chain} {n}")).collect()
}

/// `55d0 main (/tmp/demo/convoy)`, `7f02 [unknown] (/usr/lib/libc.so.6)`: where it is, in which
/// file, and what the frame is called.
fn frame(line: &str) -> (u64, &str, String) {
    let (at, rest) = line.trim().split_once(' ').unwrap();
    let (function, file) = rest.rsplit_once(" (").unwrap();
    let file = file.trim_end_matches(')');
    let name = match (function, file.trim_matches(['[', ']'])) {
        ("[unknown]", "unknown") => "[unknown]".to_owned(),
        ("[unknown]", file) => format!("[{}]", file.rsplit('/').next().unwrap()),
        (name, _) => name.to_owned(),
    };
    (u64::from_str_radix(at, 16).unwrap(), file, name)
}

#[needs(perf)]
#[test]
fn folded_chains_are_those_of_perf_script() {
    for name in [CONVOY, BANK, INLINE] {
        let names = |frames: Vec<String>| frames.iter().map(|line| frame(line).2).collect();
        let theirs = folded(chains(name).into_iter().map(|(comm, f)| (comm, names(f))));
        let ours = profile(name, &["--folded", "--no-inline"]);
        assert_eq!(ours.lines().collect::<Vec<_>>(), theirs, "{name}");
        assert!(theirs.len() > 1);
    }
}

/// perf's chains with what addr2line knows of each address; of one that a call returns to, of the
/// call.
#[needs(perf, addr2line)]
#[test]
fn inlined_functions_are_those_of_addr2line() {
    let program = fixture(INLINE).join("root/tmp/demo/inline");
    let functions = |address: u64| -> Vec<String> {
        let mut addr2line = Command::new("addr2line");
        addr2line.args(["-i", "-f", "-e"]).arg(&program).arg(format!("{address:#x}"));
        let text = String::from_utf8(addr2line.output().unwrap().stdout).unwrap();
        text.lines().step_by(2).map(str::to_owned).collect()
    };
    let expand = |frames: Vec<String>| {
        let mut names = Vec::new();
        let mut returns = false;
        for (address, file, name) in frames.iter().map(|line| frame(line)) {
            match file {
                "/tmp/demo/inline" => names.extend(functions(address - u64::from(returns))),
                _ => names.push(name),
            }
            returns = !file.contains("kernel");
        }
        names
    };
    let theirs = folded(chains(INLINE).into_iter().map(|(comm, f)| (comm, expand(f))));
    assert_eq!(profile(INLINE, &["--folded"]).lines().collect::<Vec<_>>(), theirs);
}

/// Chains with their weights, of output in the form of flame graphs.
fn weights(folded: &str) -> BTreeMap<String, u64> {
    let line = |line: &str| {
        let (chain, weight) = line.rsplit_once(' ').unwrap();
        (chain.to_owned(), weight.parse().unwrap())
    };
    folded.lines().map(line).collect()
}

#[test]
fn time_asleep_by_chains_is_that_of_the_tables() {
    for name in ["profile_convoy", "profile_bank"] {
        let trace = fixture(name).join("perf.data").display().to_string();
        let root = fixture(name).join("root").display().to_string();
        let asleep = weights(&stdout(&["waits", "--folded", "--symfs", &root, &trace]));
        let table: Value =
            serde_json::from_str(&stdout(&["waits", "--by", "kind", "-j", &trace])).unwrap();
        let rows = table["rows"].as_array().unwrap();
        let total: u64 = rows.iter().map(|r| r["wait_total_ns"].as_u64().unwrap()).sum();
        assert_eq!(asleep.values().sum::<u64>(), total, "{name}");
        // Each is a chain with which a thread gave up its CPU.
        let args = ["profile", "--folded", "-e", "sched:sched_switch", "--no-inline"];
        let left = weights(&stdout(&[&args[..], &["--symfs", &root, &trace]].concat()));
        for chain in asleep.keys() {
            assert!(left.contains_key(chain), "{name}: {chain}");
        }
        assert!(asleep.len() >= 2, "{name}: {asleep:?}");
    }
    let out = run(&["waits", "--folded", recording("imb_server_c4").to_str().unwrap()]);
    assert!(out.status.success() && out.stdout.is_empty());
    assert!(String::from_utf8(out.stderr).unwrap().contains("no call chains were recorded"));
}

/// A trace that Perfetto's own descriptors wrote: three samples of each of two chains.
#[test]
fn samples_of_perfetto_are_a_profile() {
    let trace = crate::support::root().join("fuzz/corpus/perfetto/samples");
    let text = crate::support::stdout(&["profile", trace.to_str().unwrap()]);
    let row = |function: &str| {
        let row = text.lines().find(|line| line.ends_with(function)).expect(&text);
        row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("do_futex")[..2], ["3", "50.000"], "{text}");
    assert_eq!(row("hot")[..4], ["3", "50.000", "worker-1", "(70"], "{text}");
    assert!(text.contains("4 LOST") && text.contains("samples of cpu-clock"), "{text}");
}

/// The lock's holders run `post_entries` with it, and nothing else of their own.
#[test]
fn what_holders_ran_in_their_own_code_is_told_by_function() {
    let (trace, root) = (fixture(CONVOY).join("perf.data"), fixture(CONVOY).join("root"));
    let (trace, root) = (trace.to_str().unwrap(), root.to_str().unwrap());
    let report: Value =
        serde_json::from_str(&stdout(&["waits", "-j", trace, "--symfs", root])).unwrap();
    let lock = &report["rows"][0];
    let did = lock["holders_did"].as_array().unwrap();
    let sum: f64 = did.iter().map(|t| t["pct"].as_f64().unwrap()).sum();
    assert!((sum - 100.0).abs() < 0.01, "{sum}");
    for time in did {
        let functions = time["functions"].as_array().unwrap();
        let names: Vec<&str> = functions.iter().map(|f| f["function"].as_str().unwrap()).collect();
        let expected: &[&str] = if time["did"] == "user" { &["post_entries"] } else { &[] };
        assert_eq!(names, expected, "{time}");
    }
    let text = stdout(&["waits", trace, "--symfs", root]);
    assert!(text.contains("(100 % in post_entries)"), "{text}");
}

//! What `holdup profile` writes for other tools: pprof, and the Firefox profiler.

use crate::support::profiles::{json, profile, rows, samples, written};
use crate::support::{fixture, recording, run};
use flate2::read::GzDecoder;
use holdup_testkit::needs;
use prost::encoding::{WireType, decode_key, decode_varint};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::Command;

const CONVOY: &str = "profile_convoy";
const BANK: &str = "profile_bank";
const INLINE: &str = "profile_inline";
const ALL: [&str; 3] = [CONVOY, BANK, INLINE];

// ---- pprof ---------------------------------------------------------------------------------

/// The fields of a message: numbers, and bytes.
#[derive(Default)]
struct Message {
    ints: BTreeMap<u32, u64>,
    bytes: BTreeMap<u32, Vec<Vec<u8>>>,
}

impl Message {
    fn of(mut bytes: &[u8]) -> Message {
        let mut message = Message::default();
        while !bytes.is_empty() {
            let (field, wire) = decode_key(&mut bytes).unwrap();
            let number = decode_varint(&mut bytes).unwrap();
            match wire {
                WireType::Varint => assert!(message.ints.insert(field, number).is_none()),
                WireType::LengthDelimited => {
                    let (value, rest) = bytes.split_at(number as usize);
                    message.bytes.entry(field).or_default().push(value.to_vec());
                    bytes = rest;
                }
                other => panic!("{other:?}"),
            }
        }
        message
    }

    fn int(&self, field: u32) -> u64 {
        self.ints.get(&field).copied().unwrap_or(0)
    }

    fn all(&self, field: u32) -> Vec<Message> {
        self.bytes.get(&field).into_iter().flatten().map(|bytes| Message::of(bytes)).collect()
    }

    fn packed(&self, field: u32) -> Vec<u64> {
        let mut bytes = &self.bytes[&field][0][..];
        let mut numbers = Vec::new();
        while !bytes.is_empty() {
            numbers.push(decode_varint(&mut bytes).unwrap());
        }
        numbers
    }
}

struct Pprof {
    strings: Vec<String>,
    whole: Message,
}

impl Pprof {
    fn of(name: &str, args: &[&str]) -> Pprof {
        let packed = written(name, &[args, &["--pprof", "-"]].concat());
        let mut bytes = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
        let whole = Message::of(&bytes);
        let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap();
        let strings: Vec<String> = whole.bytes[&6].iter().map(text).collect();
        assert_eq!(strings[0], "");
        Pprof { strings, whole }
    }

    fn text(&self, message: &Message, field: u32) -> &str {
        &self.strings[message.int(field) as usize]
    }

    fn types(&self) -> Vec<(&str, &str)> {
        let types = self.whole.all(1);
        types
            .iter()
            .map(|t| (t.int(1), t.int(2)))
            .map(|(kind, unit)| {
                (self.strings[kind as usize].as_str(), self.strings[unit as usize].as_str())
            })
            .collect()
    }

    fn by_id(&self, field: u32) -> BTreeMap<u64, Message> {
        self.whole.all(field).into_iter().map(|m| (m.int(1), m)).collect()
    }
}

#[test]
fn pprof_has_the_samples_of_each_function_and_thread() {
    for name in ALL {
        let pprof = Pprof::of(name, &[]);
        assert_eq!(pprof.types(), [("samples", "count"), ("cpu", "nanoseconds")]);
        let (locations, functions) = (pprof.by_id(4), pprof.by_id(5));
        let mappings = pprof.by_id(3);
        let mut counts: BTreeMap<(String, u64, u64, Option<String>), u64> = BTreeMap::new();
        for sample in pprof.whole.all(2) {
            let labels: BTreeMap<String, (String, u64)> = sample
                .all(3)
                .iter()
                .map(|label| {
                    let value = (pprof.text(label, 2).to_owned(), label.int(3));
                    (pprof.text(label, 1).to_owned(), value)
                })
                .collect();
            let values = sample.packed(2);
            // 499 samples a second, each of which counts the same time.
            assert_eq!(values[1], values[0] * pprof.whole.int(12));
            let chain = sample.packed(1);
            assert!(chain.iter().all(|id| locations.contains_key(id)));
            let lines = locations[&chain[0]].all(4);
            // The last line is that of the function that the others were put into.
            let symbol =
                lines.last().map(|line| pprof.text(&functions[&line.int(1)], 2).to_owned());
            let key = (labels["comm"].0.clone(), labels["pid"].1, labels["tid"].1, symbol);
            *counts.entry(key).or_default() += values[0];
        }
        let answer = json(name, &[]);
        let mut ours: BTreeMap<(String, u64, u64, Option<String>), u64> = BTreeMap::new();
        for row in rows(&answer) {
            let number = |key: &str| row[key].as_u64().unwrap();
            let symbol = row["symbol"].as_str().map(str::to_owned);
            let comm = row["comm"].as_str().unwrap().to_owned();
            *ours.entry((comm, number("pid"), number("tid"), symbol)).or_default() +=
                number("samples");
        }
        assert_eq!(counts, ours, "{name}");
        for (id, location) in &locations {
            let mapping = mappings.get(&location.int(2));
            assert!(location.int(2) == 0 || mapping.is_some(), "{name}: location {id}");
            if let Some(m) = mapping {
                assert!((m.int(2)..m.int(3)).contains(&location.int(3)), "{name}: location {id}");
            }
        }
        let program = name.trim_start_matches("profile_");
        let of_program = |m: &&Message| pprof.text(m, 5) == format!("/tmp/demo/{program}");
        let program = mappings.values().find(of_program).unwrap();
        assert_eq!(pprof.text(program, 6).len(), 40, "a build id in hexadecimal");
        assert_eq!(program.int(7), 1, "it has functions");
        assert_eq!(program.int(9), u64::from(name != BANK), "and lines, where there are any");
    }
}

#[test]
fn pprof_has_inlined_functions_as_lines_of_one_location() {
    let pprof = Pprof::of(INLINE, &[]);
    let functions = pprof.by_id(5);
    let source = std::fs::read_to_string(fixture(INLINE).join("inline.c")).unwrap();
    let chains: Vec<Vec<(String, String)>> = pprof
        .whole
        .all(4)
        .iter()
        .map(|location| {
            location
                .all(4)
                .iter()
                .map(|line| {
                    let function = &functions[&line.int(1)];
                    let file = pprof.text(function, 4);
                    let at = line.int(2) as usize;
                    let text = match file.ends_with("inline.c") && at > 0 {
                        true => source.lines().nth(at - 1).unwrap().trim().to_owned(),
                        false => String::new(),
                    };
                    (pprof.text(function, 2).to_owned(), text)
                })
                .collect()
        })
        .collect();
    let names = |chain: &Vec<(String, String)>| -> Vec<String> {
        chain.iter().map(|(name, _)| name.clone()).collect()
    };
    let chain = chains.iter().find(|c| names(c) == ["mix", "digest", "checksum"]).unwrap();
    // Where each is in its source: the loop, and the calls that are none.
    assert!(chain[0].1.starts_with("for ") && chain[0].1.contains("sink += i * 31"), "{chain:?}");
    assert_eq!((chain[1].1.as_str(), chain[2].1.as_str()), ("mix(n);", "digest(400000);"));
    assert!(Pprof::of(INLINE, &["--no-inline"]).whole.all(4).iter().all(|l| l.all(4).len() < 2));
}

#[test]
fn pprof_counts_what_the_event_counts() {
    let pprof = Pprof::of(CONVOY, &["-e", "sched:sched_switch", "--comm", "convoy"]);
    assert_eq!(pprof.types()[1], ("sched:sched_switch", "count"));
    let answer = json(CONVOY, &["-e", "sched:sched_switch", "--comm", "convoy"]);
    let sum: u64 = pprof.whole.all(2).iter().map(|s| s.packed(2)[0]).sum();
    assert_eq!(sum, samples(rows(&answer)));
}

#[test]
fn a_trace_without_samples_makes_a_profile_without_samples() {
    let trace = recording("imb_server_c4").display().to_string();
    for (form, empty) in [("--pprof", false), ("--firefox", false), ("--folded", true)] {
        let file: &[&str] = if empty { &[] } else { &["-"] };
        let out = run(&[&["profile", form], file, &[&trace]].concat());
        assert_eq!(out.status.code(), Some(0));
        assert_eq!(out.stdout.is_empty(), empty);
        let message = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(message.contains("no samples say which code ran"), "{form}: {message}");
    }
}

#[needs(go)]
#[test]
fn pprof_opens_it_and_counts_the_same() {
    for name in ALL {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cpu.pb.gz");
        std::fs::write(&file, written(name, &["--pprof", "-"])).unwrap();
        let top = go_pprof(&["-top", "-sample_index=samples", "-nodecount=1000"], &file);
        let mut theirs: BTreeMap<String, u64> = BTreeMap::new();
        let table = top.lines().skip_while(|l| !l.trim_start().starts_with("flat")).skip(1);
        for line in table {
            // flat flat% sum% cum cum% name
            let words: Vec<&str> = line.split_whitespace().collect();
            let (n, symbol) = (words[0].parse::<u64>().unwrap(), words[5..].join(" "));
            let symbol = symbol.trim_end_matches(" (inline)").to_owned();
            *theirs.entry(symbol).or_default() += n;
        }
        theirs.retain(|symbol, n| *n > 0 && !symbol.starts_with('['));
        // The innermost function has the sample, inlined or not; those without a name are files.
        let mut ours: BTreeMap<String, u64> = BTreeMap::new();
        for line in profile(name, &["--folded"]).lines() {
            let (chain, n) = line.rsplit_once(' ').unwrap();
            let symbol = chain.rsplit_once(';').unwrap().1;
            if !symbol.starts_with('[') {
                *ours.entry(symbol.to_owned()).or_default() += n.parse::<u64>().unwrap();
            }
        }
        assert_eq!(theirs, ours, "{name}: {top}");
        assert!(!ours.is_empty());
        let raw = go_pprof(&["-raw"], &file);
        assert!(raw.contains("samples/count cpu/nanoseconds"), "{raw}");
    }
}

fn go_pprof(args: &[&str], file: &Path) -> String {
    let mut go = Command::new("go");
    let out = go.args(["tool", "pprof", "-symbolize=none"]).args(args).arg(file).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

// ---- the Firefox profiler ------------------------------------------------------------------

struct Firefox(Value);

impl Firefox {
    fn of(name: &str, args: &[&str]) -> Firefox {
        let bytes = written(name, &[args, &["--firefox", "-"]].concat());
        let profile = Firefox(serde_json::from_slice(&bytes).unwrap());
        profile.is_valid();
        profile
    }

    fn threads(&self) -> &Vec<Value> {
        self.0["threads"].as_array().unwrap()
    }

    /// Every column is as long as its table says, and every number in it is one of the table that
    /// it points into.
    fn is_valid(&self) {
        let shared = &self.0["shared"];
        let len = |table: &str| shared[table]["length"].as_u64().unwrap();
        for (name, table) in shared.as_object().unwrap().iter().filter(|t| t.1.is_object()) {
            is_table(name, table);
        }
        let strings = shared["stringArray"].as_array().unwrap().len() as u64;
        let libs = self.0["libs"].as_array().unwrap().len() as u64;
        let categories = self.0["meta"]["categories"].as_array().unwrap().len() as u64;
        for (table, column, below) in [
            ("stackTable", "frame", len("frameTable")),
            ("frameTable", "func", len("funcTable")),
            ("frameTable", "category", categories),
            ("funcTable", "name", strings),
            ("funcTable", "source", len("sources")),
            ("resourceTable", "lib", libs),
            ("resourceTable", "name", strings),
            ("sources", "filename", strings),
        ] {
            points_below(&shared[table][column], below, column);
        }
        let resources = shared["funcTable"]["resource"].as_array().unwrap();
        let last = len("resourceTable") as i64;
        assert!(resources.iter().all(|r| (-1..last).contains(&r.as_i64().unwrap())));
        // What called a frame stands before it.
        for (i, prefix) in shared["stackTable"]["prefix"].as_array().unwrap().iter().enumerate() {
            assert!(prefix.as_u64().is_none_or(|prefix| prefix < i as u64));
        }
        for thread in self.threads() {
            is_table("samples", &thread["samples"]);
            is_table("markers", &thread["markers"]);
            points_below(&thread["samples"]["stack"], len("stackTable"), "stack");
            points_below(&thread["markers"]["name"], strings, "name of a marker");
            let ascending = |column: &Value| {
                let times = column.as_array().unwrap().iter().map(|t| t.as_f64().unwrap());
                assert!(times.is_sorted());
            };
            ascending(&thread["samples"]["time"]);
            ascending(&thread["markers"]["startTime"]);
            assert!(thread["pid"].is_string() && thread["name"].is_string());
        }
    }

    /// Name of a function, file of a lib, category and depth of a stack's frame, from the innermost
    /// on.
    fn frames(&self, stack: &Value) -> Vec<(String, u64, u64)> {
        let shared = &self.0["shared"];
        let at = |table: &str, column: &str, i: u64| &shared[table][column][i as usize];
        let mut next = stack.as_u64();
        let mut frames = Vec::new();
        while let Some(stack) = next {
            let frame = at("stackTable", "frame", stack).as_u64().unwrap();
            let func = at("frameTable", "func", frame).as_u64().unwrap();
            let name = at("funcTable", "name", func).as_u64().unwrap();
            let name = shared["stringArray"][name as usize].as_str().unwrap().to_owned();
            let category = at("frameTable", "category", frame).as_u64().unwrap();
            let depth = at("frameTable", "inlineDepth", frame).as_u64().unwrap();
            frames.push((name, category, depth));
            next = at("stackTable", "prefix", stack).as_u64();
        }
        frames
    }
}

#[track_caller]
fn is_table(name: &str, table: &Value) {
    let length = table["length"].as_u64().unwrap() as usize;
    for (column, values) in table.as_object().unwrap() {
        let known = values.as_array().map(Vec::len);
        assert!(known.is_none_or(|n| n == length), "{name}.{column}: {known:?}, not {length}");
    }
}

#[track_caller]
fn points_below(column: &Value, below: u64, name: &str) {
    let all = column.as_array().unwrap();
    assert!(all.iter().all(|at| at.is_null() || at.as_u64().unwrap() < below), "{name}");
}

#[test]
fn firefox_has_every_sample_of_every_thread() {
    for name in ALL {
        let firefox = Firefox::of(name, &[]);
        let by_thread = json(name, &["--by", "thread"]);
        let mut theirs: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let mut chains: BTreeMap<String, u64> = BTreeMap::new();
        for thread in firefox.threads() {
            let stacks = thread["samples"]["stack"].as_array().unwrap();
            let mut kernel = 0;
            for stack in stacks {
                let frames = firefox.frames(stack);
                kernel += u64::from(frames[0].1 == 2);
                let names: Vec<&str> = frames.iter().rev().map(|f| f.0.as_str()).collect();
                let chain = format!("{};{}", thread["name"].as_str().unwrap(), names.join(";"));
                *chains.entry(chain).or_default() += 1;
            }
            let tid = thread["tid"].as_str().unwrap().to_owned();
            theirs.insert(tid, (stacks.len() as u64, kernel));
        }
        let number = |row: &Value, key: &str| row[key].as_u64().unwrap();
        let ours: BTreeMap<String, (u64, u64)> = rows(&by_thread)
            .iter()
            .map(|row| {
                (row["tid"].to_string(), (number(row, "samples"), number(row, "kernel_samples")))
            })
            .collect();
        assert_eq!(theirs, ours, "{name}");
        let folded = profile(name, &["--folded"]);
        let lines: Vec<String> = chains.iter().map(|(chain, n)| format!("{chain} {n}")).collect();
        assert_eq!(folded.lines().collect::<Vec<_>>(), lines, "{name}");
        assert_eq!(firefox.0["meta"]["preprocessedProfileVersion"], 62);
        assert!(firefox.0["libs"].as_array().unwrap().iter().any(|lib| {
            lib["path"].as_str().unwrap().starts_with("/tmp/demo/")
                && lib["codeId"].as_str().is_some_and(|id| id.len() == 40)
                && lib["breakpadId"].as_str().unwrap().len() == 33
        }));
    }
    let firefox = Firefox::of(INLINE, &[]);
    let stacks = firefox.threads()[0]["samples"]["stack"].as_array().unwrap();
    let inlined = |stack: &Value| {
        let frames = firefox.frames(stack);
        let innermost: Vec<(&str, u64)> =
            frames.iter().take(3).map(|(name, _, depth)| (name.as_str(), *depth)).collect();
        innermost == [("mix", 2), ("digest", 1), ("checksum", 0)]
    };
    assert!(stacks.iter().any(inlined));
}

#[test]
fn firefox_has_times_and_cpus() {
    let firefox = Firefox::of(CONVOY, &["-e", "sched:sched_switch"]);
    assert!(firefox.threads().iter().any(|t| t["samples"]["length"].as_u64().unwrap() > 20));
    let trace = recording(CONVOY).display().to_string();
    let events = run(&["events", "-j", "-e", "sched:sched_switch", &trace]);
    let mut expected: BTreeMap<String, Vec<(f64, u64)>> = BTreeMap::new();
    let start = json(CONVOY, &[])["trace"]["start_ns"].as_u64().unwrap();
    for line in String::from_utf8(events.stdout).unwrap().lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let time = (event["ts_ns"].as_u64().unwrap() - start) as f64 / 1e6;
        let cpu = event["cpu"].as_u64().unwrap();
        expected.entry(event["tid"].to_string()).or_default().push((time, cpu));
    }
    for thread in firefox.threads() {
        let (samples, markers) = (&thread["samples"], &thread["markers"]);
        let events = &expected[thread["tid"].as_str().unwrap()];
        let times: Vec<f64> = events.iter().map(|e| e.0).collect();
        assert_eq!(samples["time"], Value::from(times));
        assert!(samples.get("threadCPUDelta").is_none(), "switches count no CPU time");
        let mut stays: Vec<(f64, f64, u64)> = Vec::new();
        for &(time, cpu) in events {
            match stays.last_mut().filter(|stay| stay.2 == cpu) {
                Some(stay) => stay.1 = time,
                None => stays.push((time, time, cpu)),
            }
        }
        for (i, (first, last, cpu)) in stays.iter().enumerate() {
            assert_eq!(markers["startTime"][i], *first);
            assert_eq!(markers["endTime"][i], *last);
            assert_eq!(markers["data"][i]["cpu"], *cpu);
        }
        assert_eq!(markers["length"], stays.len());
    }
    let deltas = Firefox::of(CONVOY, &[]);
    assert_eq!(deltas.0["meta"]["sampleUnits"]["threadCPUDelta"], "ns");
    assert!(deltas.threads()[0]["samples"]["threadCPUDelta"][0].as_u64().unwrap() > 1_000_000);
}

/// The profiler's own reader, which turns older versions of the format into its own.
#[needs(profiler_cli)]
#[test]
fn the_firefox_profiler_opens_it_and_counts_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("profile.json");
    std::fs::write(&file, written(INLINE, &["--firefox", "-"])).unwrap();
    let session = format!("holdup-{}", std::process::id());
    let cli = |args: &[&str]| {
        let tool = crate::support::root().join("target/ci-node/node_modules/.bin/profiler-cli");
        Command::new(tool).args(args).args(["--session", &session]).output().unwrap()
    };
    let loaded = cli(&["load", file.to_str().unwrap()]);
    let functions = cli(&["thread", "functions", "--json", "--include-idle", "--limit", "0"]);
    cli(&["stop", &session]);
    let complaint = String::from_utf8_lossy(&loaded.stderr).into_owned();
    let functions: Value = serde_json::from_slice(&functions.stdout).expect(&complaint);
    assert_eq!(functions["friendlyThreadName"], "inline");
    // By name: samples of its own, and of it and what it called.
    let mut theirs: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for row in functions["functions"].as_array().unwrap() {
        let number = |key: &str| row[key].as_u64().unwrap();
        let name = row["name"].as_str().unwrap().to_owned();
        theirs.insert(name, (number("selfSamples"), number("totalSamples")));
    }
    let mut ours: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in profile(INLINE, &["--folded"]).lines() {
        let (chain, n) = line.rsplit_once(' ').unwrap();
        let n: u64 = n.parse().unwrap();
        let functions: Vec<&str> = chain.split(';').skip(1).collect();
        for name in functions.iter().collect::<std::collections::BTreeSet<_>>() {
            ours.entry(name.to_string()).or_default().1 += n;
        }
        ours.entry(functions.last().unwrap().to_string()).or_default().0 += n;
    }
    assert_eq!(theirs, ours);
}

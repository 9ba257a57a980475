//! Programs in five languages whose threads contend for one lock: the function that takes it is
//! named. Each was recorded with `holdup record -g`; `fixtures/code/README.md` says how.

use crate::support::{fixture, run, stdout};
use serde_json::Value;

/// A program, and what is to be said of it.
struct Case {
    /// The folder below `fixtures/code`.
    name: &'static str,
    /// The process, by the name of a thread of it.
    comm: &'static str,
    /// The function that takes the lock, as the fixture's source has it and the runtime spells it.
    function: &'static str,
    /// Whether chains of those who wait show it; else only those of who lets go do.
    waits: bool,
    /// The verdict of who has no names: of a runtime that schedules threads of its own the kernel
    /// sees no more than that there is too little work.
    nameless: &'static str,
}

const TURNS: &str = "thread-serialization";

const CASES: [Case; 7] = [
    Case {
        name: "cpp",
        comm: "orders",
        function: "OrderBook::match",
        waits: true,
        nameless: TURNS,
    },
    Case {
        name: "rust",
        comm: "stock",
        function: "stock::Stock::reserve",
        waits: true,
        nameless: TURNS,
    },
    Case {
        name: "go",
        comm: "routes",
        function: "main.(*Table).Lookup",
        waits: false,
        nameless: TURNS,
    },
    Case {
        name: "java",
        comm: "writer-",
        function: "void Journal.append(long)",
        waits: true,
        nameless: TURNS,
    },
    Case {
        name: "java_lock",
        comm: "writer-",
        function: "void Journal.seal(long)",
        waits: true,
        nameless: TURNS,
    },
    Case {
        name: "python",
        comm: "ld-linux",
        function: "py::Ledger.settle:",
        waits: true,
        nameless: TURNS,
    },
    Case {
        name: "python_gil",
        comm: "ld-linux",
        function: "py::parse_rows:",
        waits: true,
        nameless: TURNS,
    },
];

impl Case {
    fn trace(&self) -> String {
        fixture("code").join(self.name).join("perf.data.zst").display().to_string()
    }

    /// The answer as JSON, with the names that the fixture has, or with none.
    fn json(&self, args: &[&str], names: bool) -> Value {
        let root = fixture("code").join(self.name).join("root").display().to_string();
        let symbols = if names { vec!["--symfs", &root] } else { vec!["--no-symbols"] };
        let trace = self.trace();
        // Exit code 4 says that the evidence is not enough for a verdict.
        let out = run(&[args, &symbols[..], &["-j", &trace]].concat());
        serde_json::from_slice(&out.stdout).unwrap()
    }

    /// Rows of waits by the code that waits.
    fn waits(&self, names: bool) -> Vec<Value> {
        let answer = self.json(&["waits", "--by", "caller", "-n", "0"], names);
        answer["rows"].as_array().unwrap().clone()
    }

    fn is_it(&self, function: &Value) -> bool {
        function.as_str().is_some_and(|name| name.starts_with(self.function))
    }
}

#[test]
fn waits_are_told_by_the_function_that_takes_the_lock() {
    for case in CASES {
        // The three threads of the program wait in one function most of all.
        let is_programs =
            |r: &&Value| r["comm"].as_str().unwrap().starts_with(case.comm) && r["waiters"] == 3;
        let rows = case.waits(true);
        let named = rows.iter().filter(is_programs).find(|r| !r["caller"].is_null());
        match case.waits {
            true => {
                let row = named.unwrap_or_else(|| panic!("{}: {rows:#?}", case.name));
                assert!(case.is_it(&row["caller"]), "{}: {row:#}", case.name);
                assert!(row["waits"].as_u64().unwrap() > 50, "{}: {row:#}", case.name);
                assert!(row["through"].is_string(), "{}: {row:#}", case.name);
            }
            // Threads of Go's scheduler sleep on stacks of their own.
            false => assert!(named.is_none(), "{}: {named:?}", case.name),
        }
    }
}

#[test]
fn of_go_the_chains_of_wake_ups_show_who_lets_go() {
    let go = &CASES[2];
    let root = fixture("code").join(go.name).join("root").display().to_string();
    let args = ["profile", "--folded", "-e", "sched:sched_waking", "--symfs", &root, &go.trace()];
    let chain = format!(";{};internal/sync.(*Mutex).unlockSlow;", go.function);
    assert!(stdout(&args).lines().filter(|line| line.contains(&chain)).count() > 0);
}

#[test]
fn without_names_nobody_is_the_caller() {
    for case in CASES {
        let (rows, named) = (case.waits(false), case.waits(true));
        assert!(rows.iter().all(|r| r["caller"].is_null()), "{}: {rows:#?}", case.name);
        let sum = |rows: &[Value]| -> u64 {
            rows.iter().map(|r| r["wait_total_ns"].as_u64().unwrap()).sum()
        };
        assert_eq!(sum(&rows), sum(&named), "{}: every sleep is in one row", case.name);
    }
}

#[test]
fn verdicts_name_the_function() {
    for case in &CASES {
        let name = case.name;
        let answer = case.json(&["diagnose"], true);
        let verdict = &answer["verdict"];
        assert_eq!(verdict["class"], TURNS, "{name}: {verdict}");
        let summary = verdict["summary"].as_str().unwrap();
        let words = format!("in {}", case.function);
        assert!(summary.contains(&words), "{name}: {summary}");
        let functions = |answer: &Value| -> Vec<Value> {
            let findings = answer["findings"].as_array().unwrap().iter();
            let turns = findings.filter(|f| f["class"] == "thread-serialization");
            let culprits = turns.flat_map(|f| f["culprits"].as_array().unwrap());
            let side = if case.waits { "waits" } else { "wakes" };
            culprits.map(|c| c["code"][side][0]["function"].clone()).collect()
        };
        let named = functions(&answer);
        assert!(case.is_it(&named[0]), "{name}: {named:?}");
        let nameless = case.json(&["diagnose"], false);
        assert!(functions(&nameless).iter().all(Value::is_null), "{name}");
        assert_eq!(nameless["verdict"]["class"], case.nameless, "{name}");
    }
}

#[test]
fn copies_of_stacks_are_not_followed_and_a_note_names_the_flag() {
    let trace = fixture("code").join("copied_stacks/perf.data.zst").display().to_string();
    let answer: Value =
        serde_json::from_str(&stdout(&["waits", "--by", "caller", "-j", &trace])).unwrap();
    let rows = answer["rows"].as_array().unwrap();
    assert!(rows.iter().any(|r| r["comm"] == "orders"), "{rows:#?}");
    assert!(rows.iter().all(|r| r["caller"].is_null() && r["dso"].is_null()), "{rows:#?}");
    let quality = answer["quality"].as_array().unwrap();
    let note = quality.iter().find(|q| q["code"] == "copied-stacks").expect("a note");
    assert!(note["message"].as_str().unwrap().contains("-g (frame pointers)"), "{note}");
}

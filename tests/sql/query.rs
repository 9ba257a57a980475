//! `holdup query`: what it answers is what the verbs say; what it cannot do it says.

use crate::support::{run, stdout};

/// What an unhappy run says.
#[track_caller]
fn refused(args: &[&str]) -> (i32, String) {
    let out = run(args);
    assert!(out.stdout.is_empty(), "{args:?}");
    (out.status.code().unwrap(), String::from_utf8(out.stderr).unwrap())
}

#[test]
fn the_list_names_every_table_and_column() {
    let list = stdout(&["query", "--list", "--format", "csv"]);
    assert!(list.starts_with("table,column,type,unit,meaning\n"), "{list}");
    for known in
        ["\nsyscalls,duration_ns,int64,", "\nruns,cpu,uint32,", "\nby_syscall,name,string,"]
    {
        assert!(list.contains(known), "{known:?}: {list}");
    }
}

#[test]
fn examples_are_printed_as_sql() {
    let text = stdout(&["query", "--examples"]);
    assert!(text.matches("-- ").count() >= 12, "{text}");
    assert!(text.lines().all(|l| l.is_empty() || l.starts_with("--") || l.contains("SELECT")));
}

#[test]
fn words_that_are_neither_file_nor_query_are_named() {
    let (code, said) = refused(&["query", "no-such.data", "SELECT count(*) FROM runs"]);
    assert_eq!(code, 2);
    #[cfg(feature = "tables")]
    assert!(said.contains("no-such.data: no such file"), "{said}");
    #[cfg(not(feature = "tables"))]
    assert!(said.contains("--features tables"), "{said}");
}

#[cfg(not(feature = "tables"))]
#[test]
fn without_sql_it_says_how_to_get_it_and_what_works_without() {
    let (code, said) =
        refused(&["query", "fixtures/imb_server_c4/perf.data", "SELECT 1 FROM runs"]);
    assert_eq!(code, 2);
    for part in ["cargo install --path . --features tables", "holdup export TRACE --to DIR"] {
        assert!(said.contains(part), "{said}");
    }
}

#[cfg(feature = "tables")]
mod answers {
    use super::refused;
    use crate::support::{holdup, recording, root, stdout};
    use serde_json::Value;
    use std::io::Write;
    use std::path::Path;
    use std::process::Stdio;

    fn traces() -> Vec<String> {
        ["imb_server_c4", "order_stages_c4", "io_disk_perf_c4"]
            .map(|name| recording(name).to_str().unwrap().to_owned())
            .to_vec()
    }

    #[track_caller]
    fn json(args: &[&str]) -> Vec<Value> {
        let text = stdout(&[args, &["--format", "json"]].concat());
        let value: Value = serde_json::from_str(&text).unwrap();
        value["rows"].as_array().unwrap_or_else(|| panic!("{text}")).clone()
    }

    /// The values of some columns, as rows in order.
    fn picked(rows: &[Value], columns: &[&str]) -> Vec<String> {
        let one = |row: &Value| columns.iter().map(|c| row[*c].to_string()).collect::<Vec<_>>();
        let mut picked: Vec<String> = rows.iter().map(|row| one(row).join(" ")).collect();
        picked.sort();
        picked
    }

    #[test]
    fn sums_over_calls_are_those_of_the_verb_syscalls() {
        for trace in traces() {
            let mut verb = json(&["syscalls", &trace]);
            // Calls that never returned are rows of the verb, but no facts.
            verb.retain(|row| row["count"] != 0);
            let sql = "SELECT name, count(*) AS count FROM syscalls GROUP BY name";
            let ours = json(&["query", &trace, sql]);
            assert!(!ours.is_empty(), "{trace}");
            assert_eq!(picked(&ours, &["name", "count"]), picked(&verb, &["name", "count"]));
        }
    }

    #[test]
    fn summary_tables_are_the_rows_of_the_verbs() {
        for trace in traces() {
            for (table, verb) in [
                ("by_syscall", &["syscalls"][..]),
                ("by_thread", &["procs"]),
                ("by_cpu", &["cpus"]),
                ("by_object", &["waits"]),
            ] {
                let verb = json(&[verb, &[trace.as_str()][..]].concat());
                let Some(first) = verb.first() else { continue };
                let columns: Vec<&str> = first
                    .as_object()
                    .unwrap()
                    .iter()
                    .filter(|(_, v)| !v.is_array() && !v.is_object())
                    .map(|(k, _)| k.as_str())
                    .collect();
                let ours = json(&["query", &trace, &format!("SELECT * FROM {table}")]);
                assert_eq!(picked(&ours, &columns), picked(&verb, &columns), "{table} of {trace}");
            }
        }
    }

    #[test]
    fn stays_on_cpus_add_up_to_the_time_of_threads() {
        for trace in traces() {
            let sql = "SELECT tid, sum(combined_ns) AS combined_ns FROM runs GROUP BY tid";
            let ours = json(&["query", &trace, sql]);
            let sql = "SELECT tid, sum(combined_ns) AS combined_ns FROM by_thread \
                       WHERE combined_ns > 0 GROUP BY tid";
            let theirs = json(&["query", &trace, sql]);
            let busy: Vec<Value> = ours.into_iter().filter(|r| r["combined_ns"] != 0).collect();
            let columns = ["tid", "combined_ns"];
            assert_eq!(picked(&busy, &columns), picked(&theirs, &columns), "{trace}");
        }
    }

    #[test]
    fn every_example_is_answered() {
        let trace = &traces()[0];
        let text = stdout(&["query", "--examples", "--format", "json"]);
        let examples: Value = serde_json::from_str(&text).unwrap();
        let examples = examples["rows"].as_array().unwrap();
        assert!(examples.len() >= 12);
        let folder = exported(Path::new(trace));
        for example in examples {
            let sql = example["sql"].as_str().unwrap();
            stdout(&["query", folder.path().to_str().unwrap(), sql]);
        }
    }

    fn exported(trace: &Path) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        stdout(&["export", trace.to_str().unwrap(), "--to", folder.path().to_str().unwrap(), "-q"]);
        folder
    }

    #[test]
    fn frames_have_the_columns_and_types_that_the_export_describes() {
        use holdup_export::Type;
        use holdup_tables::{DataType, Frames, Source};
        let folder = exported(Path::new(&traces()[0]));
        let frames = Frames::open(&Source::find(folder.path()).unwrap()).unwrap();
        let definitions = holdup_export::definitions();
        assert!(definitions.len() > 20);
        for table in definitions.iter().filter(|t| t.name != holdup_export::PATH) {
            let kind = |ty| match ty {
                Type::Int | Type::Id => DataType::Int64,
                Type::Address => DataType::UInt64,
                Type::Float => DataType::Float64,
                Type::Flag => DataType::Boolean,
                Type::Words => DataType::String,
            };
            let described: Vec<(String, DataType)> =
                table.columns.iter().map(|c| (c.name.to_owned(), kind(c.ty))).collect();
            let schema = frames.schema(table.name).unwrap_or_else(|| panic!("{}", table.name));
            let opened: Vec<(String, DataType)> =
                schema.iter().map(|(name, kind)| (name.to_string(), kind.clone())).collect();
            assert_eq!(opened, described, "{}", table.name);
        }
    }

    /// The document names every function that may be called.
    #[test]
    fn the_document_lists_the_functions_that_there_are() {
        let document = std::fs::read_to_string(root().join("docs/query.md")).unwrap();
        let (code, said) = refused(&["query", &traces()[0], "SELECT zzzzzzzzz(tid) FROM runs"]);
        assert_eq!(code, 2);
        let (_, list) = said.trim().split_once("the functions are ").unwrap();
        for function in list.split(", ") {
            assert!(document.contains(&format!("`{function}`")), "docs/query.md lacks {function}");
        }
    }

    #[test]
    fn several_traces_get_a_column_that_tells_them_apart() {
        let traces = traces();
        let sql = "SELECT trace, count(*) AS runs FROM runs GROUP BY trace";
        let rows = json(&["query", &traces[0], &traces[1], sql]);
        assert_eq!(rows.len(), 2);
        for (row, trace) in picked(&rows, &["trace"]).iter().zip(&traces[..2]) {
            assert!(traces.iter().any(|t| row.contains(t.as_str())), "{row} {trace}");
        }
    }

    #[test]
    fn a_folder_of_exports_is_asked_like_a_trace() {
        let trace = &traces()[0];
        let folder = exported(Path::new(trace));
        let sql = "SELECT comm, sum(duration_ns) AS ns FROM runs GROUP BY comm ORDER BY ns DESC";
        let path = folder.path().to_str().unwrap();
        assert_eq!(stdout(&["query", path, sql]), stdout(&["query", trace, sql]));
    }

    #[test]
    fn standard_input_may_hold_the_query() {
        let mut child = holdup()
            .args(["query", &traces()[0], "--format", "csv"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"SELECT count(*) AS n\nFROM runs;\n").unwrap();
        let out = child.wait_with_output().unwrap();
        assert!(String::from_utf8(out.stdout).unwrap().starts_with("n\n"));
    }

    #[test]
    fn mistakes_are_named_with_their_place_and_what_was_meant() {
        let trace = &traces()[0];
        for (sql, said) in [
            ("SELECT nam FROM syscalls", "column 8: no column nam; did you mean name?"),
            ("SELECT name FROM syscall", "no table syscall; did you mean syscalls?"),
            ("SELECT name,\n  FROM", "expected"),
            ("SELECT coun(*) FROM runs", "no function coun; did you mean count?"),
            ("SELECT name, max(nr) FROM syscalls", "name has many values in a group"),
            ("SELECT * FROM read_parquet('/etc/passwd')", "no table read_parquet"),
            ("DROP TABLE runs", "cannot be changed"),
            ("SELECT tid FROM runs; SELECT tid FROM runs", "only one query at a time"),
        ] {
            let (code, message) = refused(&["query", trace, sql]);
            assert_eq!(code, 2, "{sql}");
            assert!(message.contains(said), "{sql}: {message}");
        }
    }
}

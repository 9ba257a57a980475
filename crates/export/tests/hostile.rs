//! Unusual names that a trace may contain survive in every format.

use holdup_attribution::{Attribution, Thresholds, analyze};
use holdup_diagnose::phases::{Judged, PhaseRow};
use holdup_diagnose::{Extras, diagnose_with_extras};
use holdup_export::{Choice, Request, TableFormat};
use holdup_passes::{Detail, Options};
use holdup_testkit::TraceBuilder;
use holdup_trace::Reader;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn names() -> Vec<String> {
    vec![
        "\u{1}\u{2}\u{1b}[31m\t".to_owned(),
        "a,\"b\"\r\nc".to_owned(),
        "</script><script>alert(1)</script>".to_owned(),
        "{\"ph\":\"X\"}]\\".to_owned(),
        "\u{fffd}\u{202e}gnp\u{1f980}".to_owned(),
        "x".repeat(10_000),
    ]
}

/// A trace in which a thread of each name runs and calls.
fn trace() -> impl Reader {
    let mut trace = TraceBuilder::new(1);
    for (i, name) in names().iter().enumerate() {
        let tid = 100 + i as u32;
        trace = trace.task(tid, tid, Some(1), name);
    }
    for i in 0..names().len() as u32 {
        let (tid, at) = (100 + i, u64::from(i) * 10_000);
        trace = trace
            .switch(at, 0, 0, tid, "R")
            .sys_enter(at + 1_000, 0, tid, 0)
            .sys_exit(at + 5_000, 0, tid, 0, -4)
            .switch(at + 9_000, 0, tid, 0, "S");
    }
    trace.build()
}

fn export(form: &str, to: &Path) {
    let trace = trace();
    let options = Options { detail: Detail::Intervals, ..Options::default() };
    let analysis = analyze(&trace, &options).unwrap();
    let limits = Thresholds::default();
    let rows = PhaseRow::of(&holdup_attribution::phases(&analysis, &limits));
    let judged = Judged::of_all(analysis, Vec::new());
    let diagnosis = diagnose_with_extras(trace.info(), &judged, Extras::default(), limits);
    let request = Request {
        reader: &trace,
        info: trace.info(),
        judged: &Attribution::from(&judged.analysis),
        diagnosis: &diagnosis,
        phases: &rows,
        quality: &judged.analysis.quality.entries(),
        bytes: None,
        missing: &|_| None,
    };
    let format = match form {
        "parquet" => TableFormat::Parquet,
        "arrow" => TableFormat::Arrow,
        "csv" => TableFormat::Csv,
        "ndjson" => TableFormat::Ndjson,
        "chrome" => {
            holdup_export::chrome(&request, to).unwrap();
            return;
        }
        _ => return holdup_export::lami(&request, to).unwrap(),
    };
    let choice = Choice { format, names: Vec::new() };
    holdup_export::tables(&request, &choice, to).unwrap();
}

/// The fields of CSV text, according to RFC 4180.
fn fields(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            c => field.push(c),
        }
    }
    rows
}

#[test]
fn names_come_through_lines_of_json_and_csv_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    export("ndjson", folder.path());
    export("csv", folder.path());
    let text = fs::read_to_string(folder.path().join("runs.ndjson")).unwrap();
    let rows = text.lines().map(|l| serde_json::from_str::<Value>(l).unwrap());
    let found: Vec<String> = rows.map(|r| r["comm"].as_str().unwrap().to_owned()).collect();
    assert_eq!(found, names());
    let rows = fields(&fs::read_to_string(folder.path().join("runs.csv")).unwrap());
    let comm = rows[0].iter().position(|name| name == "comm").unwrap();
    let found: Vec<&String> = rows[1..].iter().map(|row| &row[comm]).collect();
    assert_eq!(found, names().iter().collect::<Vec<_>>());
}

#[test]
fn names_come_through_parquet_and_arrow_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    for form in ["parquet", "arrow"] {
        export(form, folder.path());
        let bytes = fs::read(folder.path().join(format!("by_thread.{form}"))).unwrap();
        // Pages may be compressed; the beginning and end of the file are not.
        assert!(bytes.starts_with(if form == "parquet" { b"PAR1" } else { b"ARROW1" }));
    }
    let file = fs::File::open(folder.path().join("runs.arrow")).unwrap();
    let batches = arrow_ipc::reader::FileReader::try_new(file, None).unwrap();
    let mut found = Vec::new();
    for batch in batches {
        let column = batch.unwrap().column_by_name("comm").unwrap().clone();
        let words = column
            .as_any()
            .downcast_ref::<arrow_array::DictionaryArray<arrow_array::types::Int32Type>>()
            .unwrap()
            .downcast_dict::<arrow_array::StringArray>()
            .unwrap();
        found.extend(words.into_iter().map(|word| word.unwrap().to_owned()));
    }
    assert_eq!(found, names());
}

#[test]
fn names_cannot_break_json() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.json");
    export("chrome", &file);
    let json: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let runs = events
        .iter()
        .filter(|e| e["cat"] == "run" && !e["name"].as_str().unwrap().starts_with("on CPU"));
    let found: Vec<&str> = runs.map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(found, names());
    export("lami", folder.path());
    let text = fs::read_to_string(folder.path().join("results.json")).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let cells = json["results"].to_string();
    assert!(names().iter().all(|name| cells.contains(&serde_json::to_string(name).unwrap())));
}

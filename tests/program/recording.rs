//! `docs/recording.md`: its tables are those of the lists, its shell finds the events that the
//! recorder would take, and it names everything that doctor looks at.
//! `HOLDUP_BLESS=1 cargo test --test program recording` writes the tables.

use crate::support::root;
use holdup_host::tracefs::Tracefs;
use holdup_record::choice::{Choice, EVENTS, Wanted};
use holdup_record::trigger::{SPELLINGS, Trigger};
use holdup_syscalls::{FAMILIES, Preset};
use holdup_testkit::needs;
use holdup_trace::Capabilities;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const DOCUMENT: &str = "docs/recording.md";

fn document() -> String {
    std::fs::read_to_string(root().join(DOCUMENT)).unwrap()
}

/// The part between the marks of this name must be `made`.
#[track_caller]
fn is_written(name: &str, made: &str) {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    crate::support::is_written(DOCUMENT, (&begin, &end), made);
}

fn name(preset: Preset) -> &'static str {
    match preset {
        Preset::Sched => "sched",
        Preset::Locks => "locks",
        Preset::Full => "full",
    }
}

/// The tables of events and of calls.
fn presets() -> String {
    let mut text = "| preset | events | what they show |\n|---|---|---|\n".to_owned();
    for (preset, kinds) in EVENTS {
        let events: Vec<String> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
        let shown = |(_, _, names): &(&str, bool, &str)| {
            names.split(',').any(|n| kinds.iter().any(|kind| kind.to_string() == n))
        };
        let list = Capabilities::default().list();
        let shown: Vec<_> =
            list.iter().filter(|c| shown(c)).map(|c| Capabilities::purpose(c.0)).collect();
        writeln!(text, "| `{}` | {} | {} |", name(*preset), events.join(", "), shown.join("; "))
            .unwrap();
    }
    text += "\n| preset | system calls | why |\n|---|---|---|\n";
    for family in FAMILIES {
        let calls: Vec<String> = family.calls.iter().map(|call| format!("`{call}`")).collect();
        writeln!(text, "| `{}` | {} | {} |", name(family.preset), calls.join(", "), family.why)
            .unwrap();
    }
    text
}

/// Words of a shell on lines that are not too long.
fn lines(words: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    let mut line = String::from("   ");
    for word in words {
        if line.len() + word.len() > 110 {
            writeln!(text, "{line} \\").unwrap();
            line = String::from("   ");
        }
        line += " ";
        line += &word;
    }
    text + &line
}

/// Shell that puts the events of the default preset, as far as the kernel has them, into
/// `$events`.
fn shell() -> String {
    let kinds = EVENTS.iter().flat_map(|(_, kinds)| kinds.iter());
    let events = lines(kinds.map(|kind| kind.to_string().replace(':', "/")));
    let calls = lines(Preset::Full.calls().map(str::to_owned));
    format!(
        "```sh\ncalls=$(echo \\\n{calls})\n\
         events=$(cd /sys/kernel/tracing/events 2> /dev/null ||\n    \
         cd /sys/kernel/debug/tracing/events; ls -d \\\n{events} \\\n    \
         $(for call in $calls; do echo syscalls/sys_{{enter,exit}}_$call; done) \
         2> /dev/null |\n    tr / : | paste -sd ,)\n```\n"
    )
}

#[test]
fn the_tables_are_those_of_the_lists() {
    is_written("presets", &presets());
    is_written("events", &shell());
}

#[needs(tracepoints, bash, root)]
#[test]
fn the_shell_finds_the_events_that_the_recorder_takes() {
    let script = shell().replace("```sh", "").replace("```", "") + "\necho \"$events\"";
    let out = Command::new("bash").args(["-c", &script]).output().unwrap();
    let found = String::from_utf8(out.stdout).unwrap();
    let found: BTreeSet<String> = found.trim().split(',').map(str::to_owned).collect();
    let wanted = Wanted { preset: Preset::Full, all_syscalls: false, extra: Vec::new() };
    let choice = Choice::of(&wanted, &Tracefs::find().unwrap()).unwrap();
    let taken: BTreeSet<String> =
        choice.tracepoints.iter().map(|t| format!("{}:{}", t.system, t.name)).collect();
    let different: Vec<_> = found.symmetric_difference(&taken).collect();
    assert!(different.is_empty() && found.len() > 10, "{different:?}");
}

#[test]
fn everything_that_doctor_looks_at_is_in_the_table() {
    let out = crate::support::run(&["doctor", "-j"]);
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    let names = json["rows"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|row| row["name"].as_str().unwrap()).collect();
    let text = document();
    let table = text.split("## What a host allows").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    assert_eq!(rows, names);
}

#[test]
fn every_trigger_is_in_the_table_and_spelled_as_it_is_read() {
    let text = document();
    let table =
        text.split("| trigger | fires when |").nth(1).unwrap().split("\n\n").next().unwrap();
    let rows: Vec<&str> =
        table.lines().filter_map(|l| l.strip_prefix("| `")?.split('`').next()).collect();
    let words = SPELLINGS.replace(" or ", ", ");
    assert_eq!(rows, words.split(", ").collect::<Vec<_>>());
    for row in rows {
        assert!(row.replace('X', "1").parse::<Trigger>().is_ok(), "{row}");
    }
}

/// As the document says of what a recording reveals.
#[needs(tracepoints)]
#[test]
fn a_recording_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    crate::support::stdout(&[
        "record",
        "-q",
        "--preset",
        "sched",
        "-o",
        file.to_str().unwrap(),
        "--",
        "true",
    ]);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

//! `docs/cases` and the pages for readers: what their commands print. `HOLDUP_BLESS=1 cargo test
//! --test program cases` writes it.
//!
//! A command that reads a fixture is run, and its output must be what stands below it. A command
//! that runs or records something is one that holdup knows.

use crate::support::{root, stdout};
use std::fs;
use std::path::PathBuf;

/// A lesson that is longer is not read.
const LINES: usize = 120;

fn lessons() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("docs/cases")).unwrap();
    let mut all: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.extension().is_some_and(|e| e == "md"));
    all.sort();
    all
}

/// The pages for those who begin, each of whom has another question.
const PAGES: [&str; 2] = ["docs/handed-a-trace.md", "docs/tuning.md"];

/// What a command line prints, such as `holdup waits FILE | head -12`; `tail` and `grep -A` too.
fn printed(line: &str) -> String {
    let (command, filter) = line.split_once(" | ").unwrap_or((line, "head -1000"));
    let words: Vec<&str> = command.split_whitespace().collect();
    assert_eq!(words.first(), Some(&"holdup"), "{line}");
    let text = stdout(&words[1..]);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let lines_of = |number: &str| number.parse::<usize>().expect("a number of lines");
    let (from, most) = match filter.split_once(" -").expect("a filter") {
        ("head", number) => (0, lines_of(number)),
        ("tail", number) => (lines.len() - lines_of(number), lines.len()),
        ("grep", after) => {
            let (after, pattern) = after.strip_prefix('A').unwrap().split_once(' ').unwrap();
            let is_it = |l: &&str| l.contains(pattern.trim_matches('"'));
            (lines.iter().position(is_it).expect(pattern), 1 + lines_of(after))
        }
        _ => panic!("{line}"),
    };
    lines[from..].iter().take(most).map(|line| format!("{line}\n")).collect()
}

/// The text with what each command prints that reads a fixture.
fn filled(text: &str) -> String {
    let mut filled = String::new();
    let mut lines = text.lines().peekable();
    let mut in_block = false;
    while let Some(line) = lines.next() {
        filled += line;
        filled += "\n";
        if line.starts_with("```") {
            in_block = line == "```console";
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| in_block) else { continue };
        let reads_all = command.contains("fixtures/") || command.starts_with("holdup scale ");
        if !reads_all || !command.starts_with("holdup ") {
            continue;
        }
        while lines.peek().is_some_and(|l| !l.starts_with("```") && !l.starts_with("$ ")) {
            lines.next();
        }
        filled += &printed(command);
    }
    filled
}

#[test]
fn lessons_and_pages_show_what_the_commands_print() {
    let lessons = lessons();
    assert!(lessons.len() >= 6, "{lessons:?}");
    let mut commands = 0;
    for path in lessons.into_iter().chain(PAGES.map(|page| root().join(page))) {
        let old = fs::read_to_string(&path).unwrap();
        let new = filled(&old);
        commands += new.lines().filter(|l| l.starts_with("$ holdup")).count();
        if std::env::var_os("HOLDUP_BLESS").is_some() {
            fs::write(&path, &new).unwrap();
        } else {
            assert_eq!(old, new, "{}: HOLDUP_BLESS=1 writes it", path.display());
        }
    }
    assert!(commands >= 6);
}

#[test]
fn lessons_are_short() {
    for path in lessons() {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines < LINES, "{}: {lines} lines", path.display());
    }
}

#[test]
fn the_lessons_are_listed_and_no_fixture_is_there_for_nothing() {
    let all: String = lessons().iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let index = fs::read_to_string(root().join("docs/lab.md")).unwrap();
    for path in lessons() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(index.contains(&format!("(cases/{name})")), "docs/lab.md does not list {name}");
    }
    for entry in fs::read_dir(root().join("fixtures/lab")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        let used = name == "README.md" || all.contains(&format!("fixtures/lab/{name}"));
        assert!(used, "no lesson shows fixtures/lab/{name}");
    }
}

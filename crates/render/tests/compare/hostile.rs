//! Names from traces that try to attack the tools that read the output.

use crate::others::everything;
use crate::values::{self, number, row};
use crate::{ci, csv, text, write};
use holdup_gate::judge::Finding;
use holdup_gate::policy::Waiver;
use holdup_gate::verdict::{Outcome, Problem};
use holdup_gate::why::Reason;
use holdup_render::Format;
use holdup_render::compare::{Comparison, GateReport, annotations, junit, sarif};

/// A hostile command name: a line break, terminal codes, the ends of CDATA, a workflow command,
/// HTML, a table's border, quotes, a mention, an address, characters invalid in XML.
const EVIL: &str = "a\r\n::error::x\n\x1b[2J]]></details></testcase><script>&amp;|`'\"\\ %0A @all \
                    https://e.x www.e.x\u{202e}\u{ffff}\u{0}";

/// A regression in which every name is hostile.
pub(crate) fn gate() -> GateReport {
    let quoted = EVIL.replace('\\', "\\\\").replace('"', "\\\"");
    let name = format!("waits[\"{quoted}\"].per_work");
    let mut report = values::gate(Outcome::Regressed, number(&name, 3e6, 4e6, Finding::Worse));
    let evil = || EVIL.to_owned();
    report.a.file = Some(evil());
    report.b.runs = vec![evil()];
    (report.b.host, report.b.kernel) = (Some(evil()), Some(evil()));
    report.baseline = Some(evil());
    let verdict = &mut report.verdict;
    verdict.inform.push(number(&name, 3e6, 4e6, Finding::Worse));
    verdict.problems = vec![Problem { code: "background-load", words: evil(), remedy: evil() }];
    verdict.why = vec![Reason { row: row(&name, Some(1.0), Some(2.0)), threads: Some(evil()) }];
    verdict.set_aside = vec![evil()];
    verdict.expired = vec![Waiver { metric: evil(), until: evil(), until_day: 0, reason: evil() }];
    report
}

fn all() -> Vec<Comparison> {
    let mut all = everything();
    for comparison in &mut all {
        let evil = || EVIL.to_owned();
        match comparison {
            Comparison::Diff(report) => {
                report.a.file = Some(evil());
                for row in &mut report.rows {
                    row.figure.key = evil();
                }
            }
            Comparison::History(report) => {
                report.course.points.iter_mut().for_each(|p| p.label = evil());
            }
            Comparison::SelfTest(report) => report.baseline = evil(),
            Comparison::Baseline(report) => {
                report.file = evil();
                report.runs.iter_mut().for_each(|r| r.name = evil());
                report.settings.iter_mut().for_each(|s| s.host = Some(evil()));
            }
            Comparison::Scale(report) => {
                report.scaling.leaves.iter_mut().for_each(|l| l.path = evil());
                report.scaling.calls.iter_mut().for_each(|c| c.name = Some(evil()));
            }
            Comparison::Gate(_) => {}
        }
    }
    all.push(crate::gate(&gate()));
    all
}

fn steers(c: char) -> bool {
    c.is_control() && c != '\n' || c == '\u{202e}'
}

/// GitHub looks for commands in everything that a job prints, after blanks too; for old ones
/// anywhere.
#[test]
fn text_holds_no_command_for_the_job_that_prints_it() {
    for evil in ["::stop-commands::x", "##[error]x", &format!("{} ::error::x", "y".repeat(90))] {
        let mut comparisons = everything();
        for comparison in &mut comparisons {
            match comparison {
                Comparison::History(report) => report.course.points[0].label = evil.to_owned(),
                Comparison::Baseline(report) => report.runs[0].name = evil.to_owned(),
                _ => {}
            }
        }
        let mut report = values::regressed();
        report.verdict.problems = vec![Problem {
            code: "background-load",
            words: evil.to_owned(),
            remedy: evil.to_owned(),
        }];
        comparisons.push(crate::gate(&report));
        for comparison in comparisons {
            let words = text(&comparison);
            assert!(!words.lines().any(|l| l.trim_start().starts_with("::")), "{words}");
            assert!(!words.contains("##["), "{words}");
        }
    }
}

#[test]
fn text_cannot_be_steered() {
    for comparison in all() {
        let words = text(&comparison);
        assert!(!words.contains(steers), "{words:?}");
        assert!(!words.lines().any(|l| l.starts_with("::")), "{words}");
    }
}

#[test]
fn markdown_cannot_be_broken() {
    for comparison in all() {
        let words = write(&comparison, &Format::Markdown);
        assert!(!words.contains(steers), "{words:?}");
        assert_eq!(words.matches("<details>").count(), words.matches("</details>").count());
        for bare in ["<script", "]></", "@all", "https://", " www.e"] {
            let at = words.match_indices(bare).find(|(at, _)| !words[..*at].ends_with('\\'));
            assert!(at.is_none(), "{bare}: {words}");
        }
        // Every row of a table has as many cells as its heading.
        let mut cells = None;
        for line in words.lines() {
            let bars = line.replace("\\\\", "").replace("\\|", "").matches('|').count();
            match cells {
                _ if !line.starts_with('|') => cells = None,
                None => cells = Some(bars),
                Some(n) => assert_eq!(bars, n, "{line}"),
            }
        }
    }
}

#[test]
fn junit_cannot_be_broken() {
    let xml = ci(&gate(), junit::write);
    assert_eq!(xml.matches("<testcase ").count(), xml.matches("</testcase>").count());
    assert!(!xml.contains(steers) && !xml.contains("]]>") && !xml.contains('\u{ffff}'), "{xml:?}");
}

#[test]
fn an_annotation_stays_on_its_line() {
    let lines = ci(&gate(), annotations::write);
    assert_eq!(lines.lines().count(), 3, "{lines}");
    for line in lines.lines() {
        assert!(
            line.starts_with("::error title=holdup%3A ") || line.starts_with("::warning title=")
        );
        // The command ends at the second `::`; the title must not reach beyond it.
        let title = line.split("::").nth(1).unwrap();
        assert!(!title["error title=".len()..].contains([':', ',']), "{line}");
        assert!(!line.contains(steers), "{line:?}");
    }
}

#[test]
fn a_sarif_message_links_nowhere() {
    let mut report = gate();
    report.verdict.problems[0].words = "[here](https://e.x) {0}".to_owned();
    let log: serde_json::Value = serde_json::from_str(&ci(&report, sarif::write)).unwrap();
    let notes = &log["runs"][0]["invocations"][0]["toolExecutionNotifications"];
    let words = notes[0]["message"]["text"].as_str().unwrap();
    assert!(words.starts_with("\\[here\\](https://e.x) {{0}}"), "{words}");
}

/// JSON keeps names unchanged: its readers unescape them.
#[test]
fn json_gives_names_back() {
    let value: serde_json::Value =
        serde_json::from_str(&write(&crate::gate(&gate()), &Format::Json)).unwrap();
    assert_eq!(value["problems"][0]["words"], EVIL);
    let log: serde_json::Value = serde_json::from_str(&ci(&gate(), sarif::write)).unwrap();
    let location = &log["runs"][0]["results"][0]["locations"][0];
    assert_eq!(location["logicalLocations"][0]["name"], EVIL);
    let uri = location["physicalLocation"]["artifactLocation"]["uri"].as_str().unwrap();
    assert!(uri.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~/%".contains(&b)), "{uri}");
}

#[test]
fn csv_quotes_what_would_part_it() {
    for comparison in all() {
        let words = write(&comparison, &csv());
        // Like a reader of RFC 4180, count commas and line breaks outside of quotes.
        let (mut quoted, mut commas, mut rows) = (false, 0, Vec::new());
        for c in words.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => commas += 1,
                '\n' if !quoted => rows.push(std::mem::take(&mut commas)),
                _ => {}
            }
        }
        assert!(rows.iter().all(|n| *n == rows[0]), "{rows:?}: {words}");
    }
}

//! Comparisons in every form, on values made by hand: every outcome, hostile names, empty input.

mod hostile;
mod others;
mod validity;
mod values;

use holdup_render::compare::{self, Comparison, GateReport, annotations, junit, sarif};
use holdup_render::{Format, TextOptions};
use values::all;

pub(crate) fn write(comparison: &Comparison, format: &Format) -> String {
    let mut out = Vec::new();
    compare::write(comparison, format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

pub(crate) fn text(comparison: &Comparison) -> String {
    write(comparison, &Format::Text(TextOptions::default()))
}

pub(crate) fn csv() -> Format {
    Format::Csv { separator: ",".to_owned() }
}

pub(crate) fn gate(report: &GateReport) -> Comparison {
    Comparison::Gate(Box::new(report.clone()))
}

/// The forms that only a gate has.
pub(crate) fn ci(
    report: &GateReport,
    form: fn(&GateReport, &mut dyn std::io::Write) -> std::io::Result<()>,
) -> String {
    let mut out = Vec::new();
    form(report, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn every_outcome_says_in_its_first_line_what_it_is() {
    let lines = all().into_iter().map(|(name, report)| {
        let text = text(&gate(&report));
        let head: Vec<&str> = text.lines().take_while(|l| !l.starts_with("  10")).collect();
        format!("{name}\n  {}", head.join("\n  "))
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n\n"));
}

fn of(name: &str) -> GateReport {
    all().into_iter().find(|(n, _)| *n == name).unwrap().1
}

#[test]
fn a_gate_as_text() {
    insta::assert_snapshot!("text_regressed", text(&gate(&of("regressed"))));
    insta::assert_snapshot!("text_background", text(&gate(&of("background-load"))));
    insta::assert_snapshot!("text_expired", text(&gate(&of("expired"))));
    let quiet = Format::Text(TextOptions { quiet: true, ..TextOptions::default() });
    assert_eq!(write(&gate(&of("passed")), &quiet).lines().count(), 2);
}

#[test]
fn colours_are_those_of_the_outcome() {
    let format = Format::Text(TextOptions { color: true, ..TextOptions::default() });
    for (name, colour) in [("regressed", "\x1b[1m\x1b[31m"), ("background-load", "\x1b[1m\x1b[33m")]
    {
        let text = write(&gate(&of(name)), &format);
        assert!(text.starts_with(colour), "{text:?}");
    }
}

#[test]
fn a_gate_as_markdown() {
    insta::assert_snapshot!("md_regressed", write(&gate(&of("regressed")), &Format::Markdown));
    insta::assert_snapshot!(
        "md_background",
        write(&gate(&of("background-load")), &Format::Markdown)
    );
    insta::assert_snapshot!("md_waived", write(&gate(&of("waived")), &Format::Markdown));
}

#[test]
fn a_gate_as_json() {
    insta::assert_snapshot!("json_regressed", write(&gate(&of("regressed")), &Format::Json));
    insta::assert_snapshot!("json_no_value", write(&gate(&of("no-value")), &Format::Json));
}

#[test]
fn a_gate_as_csv() {
    insta::assert_snapshot!(write(&gate(&of("regressed")), &csv()));
}

#[test]
fn a_gate_as_junit_xml() {
    insta::assert_snapshot!("junit_regressed", ci(&of("regressed"), junit::write));
    insta::assert_snapshot!("junit_too_few_runs", ci(&of("too-few-runs"), junit::write));
}

#[test]
fn a_gate_as_sarif() {
    insta::assert_snapshot!("sarif_expired", ci(&of("expired"), sarif::write));
}

#[test]
fn a_gate_as_annotations() {
    let all = all().into_iter().map(|(_, report)| ci(&report, annotations::write));
    insta::assert_snapshot!(all.collect::<String>());
}

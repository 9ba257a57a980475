//! Output for CI servers is valid by the schemas of its formats.

use crate::hostile;
use crate::values::all;
use crate::{ci, others};
use holdup_needs::needs;
use holdup_render::compare::{GateReport, junit, sarif};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

fn reports() -> Vec<(&'static str, GateReport)> {
    let mut reports = all();
    reports.push(("hostile", hostile::gate()));
    reports
}

/// The schema of the OASIS committee; `tests/schemas/README.md` says where it comes from.
#[test]
fn sarif_conforms_to_the_schema_of_2_1_0() {
    let schema = include_str!("../schemas/sarif-2.1.0-rtm.5.json");
    let mut schema: Value = serde_json::from_str(schema).unwrap();
    // This pattern has a bracket too many and is no valid regular expression; the final edition of
    // the standard contains it, too.
    for place in ["run", "toolComponent"] {
        let place = format!("/definitions/{place}/properties/language/pattern");
        let language = schema.pointer_mut(&place).unwrap();
        assert_eq!(*language, "^[a-zA-Z]{2}|^[a-zA-Z]{2}-[a-zA-Z]{2}]?$");
        *language = "^[a-zA-Z]{2}(-[a-zA-Z]{2})?$".into();
    }
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (name, report) in reports() {
        let log: Value = serde_json::from_str(&ci(&report, sarif::write)).unwrap();
        let wrong: Vec<String> = validator.iter_errors(&log).map(|e| e.to_string()).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        // Not covered by the schema: rules are numbered from 0, and each result refers to its own
        // rule.
        let run = &log["runs"][0];
        for result in run["results"].as_array().unwrap() {
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"], "{name}");
        }
    }
    // The schema can reject.
    let (_, report) = reports().remove(0);
    let mut log: Value = serde_json::from_str(&ci(&report, sarif::write)).unwrap();
    log["runs"][0]["results"][0]["level"] = "fatal".into();
    assert!(!validator.is_valid(&log));
}

/// Whether xmllint accepts `xml` by the schema, and its messages.
fn accepted(xml: &str) -> (bool, String) {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas/junit-10.xsd");
    let mut lint = Command::new("xmllint")
        .args(["--noout", "--nonet", "--schema"])
        .arg(schema)
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    lint.stdin.take().unwrap().write_all(xml.as_bytes()).unwrap();
    let out = lint.wait_with_output().unwrap();
    (out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned())
}

#[needs(xmllint)]
#[test]
fn junit_xml_conforms_to_the_schema_of_jenkins() {
    for (name, report) in reports() {
        let xml = ci(&report, junit::write);
        let (valid, words) = accepted(&xml);
        assert!(valid, "{name}: {words}\n{xml}");
    }
    let xml = ci(&reports()[0].1, junit::write).replace("testcase", "testkase");
    assert!(!accepted(&xml).0, "the schema refuses nothing");
}

/// The outcome determines the state of the primary metric's test case.
#[test]
fn junit_fails_only_what_regressed() {
    for (name, report) in all() {
        let xml = ci(&report, junit::write);
        let regressed = matches!(name, "regressed" | "hard" | "expired");
        assert_eq!(xml.contains("<failure "), regressed, "{name}");
        assert!(xml.contains(&format!("failures=\"{}\"", u8::from(regressed))), "{name}");
        let case = xml.split("<testcase").nth(1).unwrap();
        let unclear = matches!(
            name,
            "looks-worse" | "could-hide" | "too-few-runs" | "no-value" | "background-load"
        );
        assert_eq!(case.contains("<skipped "), unclear, "{name}");
    }
}

/// `tests/program/schema.rs` tests the JSON by the schema of its types; this tests that the output
/// is JSON and names its command.
#[test]
fn json_names_its_verb() {
    for comparison in others::everything() {
        let text = crate::write(&comparison, &holdup_render::Format::Json);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["schema"], "holdup/1");
        assert!(
            ["diff", "gate", "history", "baseline", "scale"]
                .contains(&value["command"].as_str().unwrap())
        );
    }
}

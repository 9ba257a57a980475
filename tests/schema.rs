//! Real outputs and real figures against the JSON Schemas in `docs/schema/`.
//!
//! The schemas use few words of the language; this checks those, and fails at any other.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn schema(name: &str) -> Value {
    let path = root().join("docs/schema").join(name);
    serde_json::from_slice(&std::fs::read(&path).unwrap())
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        other => panic!("the schema has the type {other}"),
    }
}

/// The first thing wrong with `value`.
fn check(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let wrong = |what: String| Err(format!("{at}: {what}"));
    for (word, rule) in schema.as_object().unwrap() {
        match word.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" => {}
            "$ref" => {
                let target = root
                    .pointer(rule.as_str().unwrap().trim_start_matches('#'))
                    .unwrap_or_else(|| panic!("{rule} leads nowhere"));
                check(root, target, value, at)?;
            }
            "type" => {
                let names: Vec<&str> = rule.as_array().map_or_else(
                    || vec![rule.as_str().unwrap()],
                    |l| l.iter().filter_map(Value::as_str).collect(),
                );
                if !names.iter().any(|n| has_type(value, n)) {
                    return wrong(format!("{value} is no {names:?}"));
                }
            }
            "const" if rule != value => return wrong(format!("{value} is not {rule}")),
            "const" => {}
            "enum" if !rule.as_array().unwrap().contains(value) => {
                return wrong(format!("{value} is none of {rule}"));
            }
            "enum" => {}
            "minimum" | "maximum" => {
                let (limit, number) = (rule.as_f64().unwrap(), value.as_f64());
                if number.is_some_and(|n| if word == "minimum" { n < limit } else { n > limit }) {
                    return wrong(format!("{value} is beyond {limit}"));
                }
            }
            "required" => {
                for key in rule.as_array().unwrap() {
                    if value.is_object() && value.get(key.as_str().unwrap()).is_none() {
                        return wrong(format!("lacks {key}"));
                    }
                }
            }
            "properties" => {
                for (key, rule) in rule.as_object().unwrap() {
                    if let Some(v) = value.get(key) {
                        check(root, rule, v, &format!("{at}.{key}"))?;
                    }
                }
            }
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Value::as_object);
                for (key, v) in value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(k, _)| known.is_none_or(|p| !p.contains_key(*k)))
                {
                    match rule {
                        Value::Bool(false) => return wrong(format!("has an unknown key {key}")),
                        rule => check(root, rule, v, &format!("{at}.{key}"))?,
                    }
                }
            }
            "items" => {
                for (i, v) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, v, &format!("{at}[{i}]"))?;
                }
            }
            "anyOf" | "oneOf" => {
                let fits = rule
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|r| check(root, r, value, at).is_ok())
                    .count();
                if fits == 0 || (word == "oneOf" && fits > 1) {
                    return wrong(format!("fits {fits} of {word}"));
                }
            }
            other => panic!("the schema uses '{other}', which this test does not know"),
        }
    }
    Ok(())
}

fn output(args: &[&str]) -> Value {
    let out =
        Command::new(env!("CARGO_BIN_EXE_holdup")).current_dir(root()).args(args).output().unwrap();
    serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|e| panic!("{args:?}: {e}\n{}", String::from_utf8_lossy(&out.stderr)))
}

/// `args` with a verb first print what the schema says of that verb.
#[track_caller]
fn conforms(schema: &Value, args: &[&str]) {
    let value = output(args);
    let own = schema
        .pointer(&format!("/$defs/output-{}", args[0]))
        .unwrap_or_else(|| panic!("the schema does not know {}", args[0]));
    // First by itself, for a message that says where.
    check(schema, own, &value, args[0]).unwrap_or_else(|e| panic!("{args:?}: {e}"));
    check(schema, schema, &value, args[0]).unwrap_or_else(|e| panic!("{args:?}: {e}"));
}

#[test]
fn outputs_of_every_verb_conform() {
    let schema = schema("holdup-1.json");
    for trace in [
        "fixtures/thr_mutex_perfz_c8/perf.data",
        "fixtures/lost_sysloop_n2/perf.data",
        "fixtures/host_falseshare_n2/perf.data",
    ] {
        let verbs = [
            "syscalls", "procs", "cpus", "switches", "irqs", "locks", "waits", "path", "ledger",
            "info", "summary", "diagnose", "guide",
        ];
        for verb in verbs {
            conforms(&schema, &[verb, "-j", trace]);
        }
        for by in ["process", "thread"] {
            conforms(&schema, &["syscalls", "--by", by, "-j", trace]);
            conforms(&schema, &["procs", "--by", by, "-j", trace]);
        }
        conforms(&schema, &["procs", "--by", "command", "-j", trace]);
        conforms(&schema, &["irqs", "--by", "total", "-j", trace]);
        conforms(&schema, &["waits", "--by", "thread", "-j", trace]);
        conforms(&schema, &["waits", "--graph", "json", trace]);
        conforms(&schema, &["locks", "--by", "task", "-j", trace]);
        conforms(&schema, &["summary", "--per-cpu", "-j", trace]);
    }
}

#[test]
fn diagnoses_of_every_fixture_conform() {
    let schema = schema("holdup-1.json");
    for entry in std::fs::read_dir(root().join("fixtures")).unwrap() {
        let trace = entry.unwrap().path().join("perf.data");
        if trace.exists() {
            conforms(&schema, &["diagnose", "-j", trace.to_str().unwrap()]);
        }
    }
    for case in 1..=4 {
        conforms(
            &schema,
            &["diagnose", "-j", "--metrics", &format!("fixtures/published/aix-case-{case}.toml")],
        );
    }
    conforms(&schema, &["rules", "-j"]);
    conforms(&schema, &["rules", "-j", "io-bound"]);
}

#[test]
fn the_schema_refuses_what_is_not_so() {
    let schema = schema("holdup-1.json");
    let good = output(&["diagnose", "-j", "fixtures/imb_server_c4/perf.data"]);
    let bad = |change: &dyn Fn(&mut Value)| {
        let mut value = good.clone();
        change(&mut value);
        assert!(check(&schema, &schema, &value, "").is_err());
    };
    bad(&|v| v["verdict"]["class"] = "slow".into());
    bad(&|v| v["trace"]["cpus"] = (-1).into());
    bad(&|v| v["findings"][0]["moon"] = 1.into());
    bad(&|v| drop(v.as_object_mut().unwrap().remove("next")));
    bad(&|v| v["schema"] = "holdup/2".into());
}

#[test]
fn published_figures_conform() {
    let schema = schema("metrics.json");
    let mut seen = 0;
    for folder in ["fixtures/published", "fixtures/figures"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "toml") {
                let table: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
                check(&schema, &schema, &serde_json::to_value(table).unwrap(), "")
                    .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                seen += 1;
            }
        }
    }
    assert!(seen >= 7);
}

#[test]
fn the_schema_of_figures_has_every_key() {
    let schema = schema("metrics.json");
    let figures = serde_json::to_value(holdup_diagnose::metrics::Figures::default()).unwrap();
    let sar = serde_json::to_value(holdup_diagnose::metrics::Sar::default()).unwrap();
    for (name, value) in [("Figures", figures), ("Sar", sar)] {
        let known = schema
            .pointer(&format!("/$defs/{name}/properties"))
            .and_then(Value::as_object)
            .unwrap();
        let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert!(
            keys.iter().all(|k| known.contains_key(*k)) && keys.len() == known.len(),
            "{name}: {keys:?}"
        );
    }
    assert!(Path::new(&root().join("docs/metrics.md")).exists());
}

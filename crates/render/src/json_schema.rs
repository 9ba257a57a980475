//! The JSON Schema of `--format json`, generated from the printed types.
//!
//! Only tests need it: they keep `docs/schema/` up to date and compare real output with it. Tables
//! print cells, not rows, so the schema (from the row types) and the output (from the columns)
//! check each other.

use crate::WhatifRow;
use crate::compare;
use crate::compare::json::{Baseline, Diff, Gate, History, Scale, SelfTest};
use crate::doctor::Doctor;
use crate::fleet::{CostRow, FailedRow, Fleet, ServiceRow, VerdictRow};
use crate::json::{
    Envelope, Guide, NotedRows, OnlyGraph, OnlyInfo, OnlyLedger, PathRows, Rows, WhatifRows,
};
use crate::report::SCHEMA;
use crate::schema::{self, Verb};
use holdup_attribution::{HoldingRow, Ledger, PathRow};
use holdup_diagnose::predict::PredictRow;
use holdup_diagnose::rules::Page;
use holdup_diagnose::{Diagnosis, PhaseRow};
use holdup_passes::{CpuRow, IrqRow, LockRow, ProcRow, SarRow, SwitchRow, SyscallRow};
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Where the schemas are published.
const HOME: &str = "https://github.com/holdup/holdup/docs/schema";

/// The tables of a summary; tables that a recording may lack are optional.
#[derive(Serialize, JsonSchema)]
struct Tables {
    sar: Rows<Vec<SarRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Rows<Vec<PhaseRow>>")]
    phases: Option<Rows<Vec<PhaseRow>>>,
    ledger: Ledger,
    cpus: Rows<Vec<CpuRow>>,
    procs: Rows<Vec<ProcRow>>,
    syscalls: Rows<Vec<SyscallRow>>,
    switches: Rows<Vec<SwitchRow>>,
    irqs: Rows<Vec<IrqRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Rows<Vec<LockRow>>")]
    locks: Option<Rows<Vec<LockRow>>>,
}

/// The rankings of a fleet.
type Ranked = Fleet<Vec<VerdictRow>, Vec<CostRow>, Vec<ServiceRow>, Vec<FailedRow>>;

/// Every table by its name.
#[derive(Serialize, JsonSchema)]
struct Summary {
    summary: Tables,
}

/// The manual pages of the rules; they are not about a trace.
#[derive(Serialize, JsonSchema)]
struct Rules {
    /// Version of this format.
    schema: &'static str,
    /// The verb.
    command: &'static str,
    rows: Vec<Page>,
}

/// `docs/schema/holdup-1.json`.
pub fn outputs() -> Value {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let g = &mut generator;
    let verbs = [
        ("syscalls", vec![table(g, &schema::syscalls::VERB), noted(g, &schema::calls::VERB)]),
        ("procs", vec![table(g, &schema::procs::VERB)]),
        ("profile", vec![noted(g, &schema::profile::VERB), noted(g, &schema::profile::TREE)]),
        ("cpus", vec![table(g, &schema::cpus::VERB)]),
        ("switches", vec![table(g, &schema::switches::VERB)]),
        ("latency", vec![table(g, &schema::latency::VERB)]),
        ("irqs", vec![table(g, &schema::irqs::VERB)]),
        ("locks", vec![table(g, &schema::locks::VERB), table(g, &schema::hist::VERB)]),
        (
            "waits",
            vec![
                table(g, &schema::waits::VERB),
                noted(g, &schema::callers::VERB),
                enveloped::<OnlyGraph<'static>>(g),
                table(g, &schema::hist::VERB),
            ],
        ),
        ("phases", vec![table(g, &schema::phases::VERB)]),
        ("path", vec![enveloped::<PathRows<'static, Vec<PathRow>>>(g)]),
        ("predict", vec![enveloped::<NotedRows<'static, Vec<PredictRow>>>(g)]),
        ("whatif", vec![enveloped::<WhatifRows<'static, Vec<WhatifRow>>>(g)]),
        ("ledger", vec![enveloped::<OnlyLedger<'static>>(g), table(g, &schema::cgroups::VERB)]),
        ("info", vec![enveloped::<OnlyInfo<'static>>(g)]),
        ("summary", vec![enveloped::<Summary>(g)]),
        ("diagnose", vec![enveloped::<&'static Diagnosis>(g)]),
        ("guide", vec![enveloped::<Guide<'static>>(g)]),
        ("rules", vec![Rules::json_schema(g)]),
        ("doctor", vec![Doctor::json_schema(g)]),
        ("fleet", vec![Ranked::json_schema(g)]),
        ("query", vec![crate::answer::Envelope::json_schema(g)]),
        ("diff", vec![compared::<Diff<'static>>(g)]),
        ("gate", vec![compared::<Gate<'static>>(g), compared::<SelfTest<'static>>(g)]),
        ("history", vec![compared::<History<'static>>(g)]),
        ("baseline", vec![compared::<Baseline<'static>>(g)]),
        ("scale", vec![compared::<Scale<'static>>(g)]),
    ];
    // The rows of a table that only exports have.
    g.subschema_for::<HoldingRow>();
    let mut defs = Map::new();
    let mut names = Vec::new();
    for (verb, forms) in verbs {
        names.push(json!({ "$ref": format!("#/$defs/output-{verb}") }));
        let mut forms: Vec<Value> = forms.into_iter().map(|f| of_verb(f, verb)).collect();
        // Not oneOf: without rows two tables look the same.
        let schema =
            if forms.len() == 1 { forms.remove(0) } else { json!({ "anyOf": Value::from(forms) }) };
        defs.insert(format!("output-{verb}"), schema);
    }
    for (name, schema) in generator.take_definitions(true) {
        defs.insert(name, tidied(schema, Numbers::AsTyped));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("{HOME}/holdup-1.json"),
        "title": SCHEMA,
        "description": "What holdup prints with --format json. Times (keys that end in _ns) are \
                        integer nanoseconds; null means that the trace does not contain the value. \
                        The verb events prints one object per event, without this envelope.",
        "oneOf": names,
        "$defs": defs,
    })
}

/// `docs/schema/metrics.json`: a file of figures for `diagnose --metrics`.
pub fn figures() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let file = holdup_diagnose::metrics::file_schema(&mut generator);
    let Value::Object(mut root) = tidied(file.into(), Numbers::Figures) else {
        unreachable!("a struct is an object")
    };
    root.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
    root.insert("$id".to_owned(), format!("{HOME}/metrics.json").into());
    root.insert("title".to_owned(), "Figures for holdup diagnose --metrics".into());
    let defs: Map<String, Value> = generator
        .take_definitions(true)
        .into_iter()
        .map(|(name, schema)| (name, tidied(schema, Numbers::Figures)))
        .collect();
    root.insert("$defs".to_owned(), defs.into());
    Value::Object(root)
}

/// The output of a command that prints its table. Columns that some grouping lacks may be absent.
fn table<R: JsonSchema>(generator: &mut SchemaGenerator, verb: &Verb<R>) -> Schema {
    let schema = enveloped::<Rows<Vec<R>>>(generator);
    allow_missing(generator, verb);
    schema
}

/// The output of a command whose table has notes.
fn noted<R: JsonSchema>(generator: &mut SchemaGenerator, verb: &Verb<R>) -> Schema {
    let schema = enveloped::<NotedRows<'static, Vec<R>>>(generator);
    allow_missing(generator, verb);
    schema
}

/// Make columns optional that some grouping lacks.
fn allow_missing<R: JsonSchema>(generator: &mut SchemaGenerator, verb: &Verb<R>) {
    let row = generator.definitions_mut().get_mut(&*R::schema_name());
    if let Some(required) = row.and_then(|r| r["required"].as_array_mut()) {
        required.retain(|key| !verb.may_lack(key.as_str().unwrap_or_default()));
    }
}

fn enveloped<B: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    Envelope::<'static, B>::json_schema(generator)
}

/// The output of a command that compares recordings: it names several, not one.
fn compared<B: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    compare::json::Envelope::<B>::json_schema(generator)
}

/// Restrict `schema` to the output of `verb`, by name.
fn of_verb(mut schema: Schema, verb: &str) -> Value {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("schema".to_owned(), json!({ "const": SCHEMA }));
        properties.insert("command".to_owned(), json!({ "const": verb }));
    }
    // The command gives the name; the title would be the Rust type's.
    schema.remove("title");
    tidied(schema.into(), Numbers::AsTyped)
}

/// The ranges of numbers.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    /// The range of their type.
    AsTyped,
    /// The range that the reader of figures checks: not negative, percentages up to 100.5.
    Figures,
}

/// `schema` without what only concerns Rust (formats, defaults), and closed: an object has only the
/// listed keys.
fn tidied(schema: Value, numbers: Numbers) -> Value {
    let mut schema = Schema::try_from(schema).unwrap_or_default();
    tidy(&mut schema, numbers);
    schema.into()
}

fn tidy(schema: &mut Schema, numbers: Numbers) {
    schema.remove("format");
    schema.remove("default");
    if let Some(Value::String(words)) = schema.get_mut("description") {
        // Doc comments are wrapped and have links; make them plain text.
        *words = words.replace("\n\n", "\r").replace('\n', " ").replace('\r', "\n");
        *words = words.replace("[`", "`").replace("`]", "`");
    }
    if schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
        schema.insert("additionalProperties".to_owned(), false.into());
        schema.remove("unevaluatedProperties");
    }
    if numbers == Numbers::Figures
        && let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut)
    {
        for (key, property) in properties {
            let Some(property) = property.as_object_mut() else { continue };
            let is = |word: &str| match property.get("type") {
                Some(Value::String(name)) => name == word,
                Some(Value::Array(names)) => names.iter().any(|n| n == word),
                _ => false,
            };
            if is("number") || is("integer") {
                property.entry("minimum").or_insert(0.into());
                if holdup_diagnose::metrics::is_percent(key) {
                    property.insert("maximum".to_owned(), 100.5.into());
                }
            }
        }
    }
    transform_subschemas(&mut |s: &mut Schema| tidy(s, numbers), schema);
}

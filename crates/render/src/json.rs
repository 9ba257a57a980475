//! JSON: the envelope of schema `holdup/1`, pretty-printed, keys in a fixed order.
//!
//! The types here define the shape of the output: `Serialize` writes it and, with the feature
//! `schema`, `json_schema` derives `docs/schema/holdup-1.json` from them.

use crate::WhatifHead;
use crate::report::{Body, PathHead, Report, SCHEMA, Section};
use crate::table::{JsonRows, Table};
use crate::trace_head::Head;
use holdup_attribution::{Graph, Ledger};
use holdup_diagnose::guide::{Question, Walk};
use holdup_diagnose::{Class, Diagnosis};
use holdup_trace::QualityEntry;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// Write `report` as JSON, with a final newline.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    out.write_all(b"\n")
}

/// The JSON envelope of every verb.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Envelope<'a, B> {
    /// Version of this format.
    schema: &'static str,
    /// The verb.
    command: &'static str,
    /// The trace that was read.
    trace: Head<'a>,
    /// Defects of the trace that were found while reading, the worst first.
    quality: &'a [QualityEntry],
    #[serde(flatten)]
    body: B,
}

/// A table.
#[derive(Serialize, schemars::JsonSchema)]
#[schemars(inline)]
pub(crate) struct Rows<R> {
    rows: R,
}

/// The path of a thread.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct PathRows<'a, R> {
    /// The thread whose path it is.
    path: &'a PathHead,
    rows: R,
}

/// A table, and what its rows rest on.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct NotedRows<'a, R> {
    /// Notes about the rows.
    notes: &'a [String],
    rows: R,
}

impl<'a> NotedRows<'a, JsonRows<'a>> {
    fn of(table: &'a Table) -> Self {
        NotedRows { notes: &table.notes, rows: table.json_rows() }
    }
}

/// What changes would make of the work.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct WhatifRows<'a, R> {
    #[serde(flatten)]
    head: &'a WhatifHead,
    rows: R,
}

/// One value under its own name.
macro_rules! single {
    ($($name:ident { $key:ident: $type:ty })+) => {
        $(#[derive(Serialize, schemars::JsonSchema)]
        pub(crate) struct $name<'a> {
            $key: &'a $type,
        })+
    };
}

single! {
    OnlyLedger { ledger: Ledger }
    OnlyGraph { graph: Graph }
    OnlyInfo { info: crate::Info }
}

/// Every table of a summary by its name.
#[derive(Serialize)]
struct Summary<'a> {
    summary: Sections<'a>,
}

/// The verdict with the way to it.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Guide<'a> {
    /// All questions of the guide, the first question first.
    questions: &'a [Question],
    /// Ids of the questions on the recommended way.
    way: Vec<&'static str>,
    /// Class to which the recommended way leads.
    ends_at: Class,
    #[serde(flatten)]
    diagnosis: &'a Diagnosis,
}

impl<'a> Guide<'a> {
    fn of(walk: &'a Walk) -> Guide<'a> {
        let (way, ends_at) = walk.recommended();
        Guide {
            questions: &walk.questions,
            way: way.iter().map(|q| q.id).collect(),
            ends_at,
            diagnosis: &walk.diagnosis,
        }
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match &self.body {
            Body::Table(table) => self.around(Rows { rows: table.json_rows() }, s),
            Body::Noted(table) => self.around(NotedRows::of(table), s),
            Body::Ledger(ledger) => self.around(OnlyLedger { ledger }, s),
            Body::Diagnosis(diagnosis) => self.around(diagnosis, s),
            Body::Guide(walk) => self.around(Guide::of(walk), s),
            Body::Path(path) => {
                self.around(PathRows { path: &path.head, rows: path.table.json_rows() }, s)
            }
            Body::Predict(predict) => self.around(NotedRows::of(&predict.table), s),
            Body::Whatif(whatif) => {
                self.around(WhatifRows { head: &whatif.head, rows: whatif.table.json_rows() }, s)
            }
            Body::Graph(graph) => self.around(OnlyGraph { graph: &graph.graph }, s),
            Body::Info(info) => self.around(OnlyInfo { info }, s),
            Body::Summary(sections) => self.around(Summary { summary: Sections(sections) }, s),
        }
    }
}

impl Report {
    fn around<B: Serialize, S: Serializer>(&self, body: B, s: S) -> Result<S::Ok, S::Error> {
        let trace = Head::of(&self.trace);
        let quality = &self.quality;
        Envelope { schema: SCHEMA, command: self.command, trace, quality, body }.serialize(s)
    }
}

struct Sections<'a>(&'a [Section]);

impl Serialize for Sections<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        for section in self.0 {
            match section {
                Section::Table(table) => {
                    map.serialize_entry(table.name, &Rows { rows: table.json_rows() })?
                }
                Section::Ledger(ledger) => map.serialize_entry("ledger", ledger)?,
                Section::Phases(rows) => map.serialize_entry("phases", &Rows { rows })?,
                Section::Busy(_) => {}
            }
        }
        map.end()
    }
}

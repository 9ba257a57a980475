//! JSON: the envelope of schema `holdup/1`, pretty-printed, keys in a fixed order.

use crate::report::{Body, Report, SCHEMA, Section};
use holdup_diagnose::Diagnosis;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Write `report` as JSON, with a final newline.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    out.write_all(b"\n")
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("schema", SCHEMA)?;
        map.serialize_entry("command", self.command)?;
        if self.trace.is_dump() {
            map.serialize_entry(
                "trace",
                &BTreeMap::from([("path", &self.trace.path), ("format", &self.trace.format)]),
            )?;
        } else {
            map.serialize_entry("trace", &self.trace)?;
        }
        map.serialize_entry("quality", &self.quality)?;
        match &self.body {
            Body::Table(table) => map.serialize_entry("rows", &table.json_rows())?,
            Body::Ledger(ledger) => map.serialize_entry("ledger", ledger)?,
            Body::Diagnosis(d) => diagnosis(d, &mut map)?,
            Body::Guide(walk) => {
                map.serialize_entry("questions", &walk.questions)?;
                let (way, class) = walk.recommended();
                map.serialize_entry("way", &way.iter().map(|q| q.id).collect::<Vec<_>>())?;
                map.serialize_entry("ends_at", &class)?;
                diagnosis(&walk.diagnosis, &mut map)?;
            }
            Body::Path(path) => {
                map.serialize_entry("path", &path.head)?;
                map.serialize_entry("rows", &path.table.json_rows())?;
            }
            Body::Graph(graph) => map.serialize_entry("graph", &graph.graph)?,
            Body::Info(info) => map.serialize_entry("info", info)?,
            Body::Summary(sections) => map.serialize_entry("summary", &Sections(sections))?,
        }
        map.end()
    }
}

fn diagnosis<M: SerializeMap>(d: &Diagnosis, map: &mut M) -> Result<(), M::Error> {
    map.serialize_entry("verdict", &d.verdict)?;
    map.serialize_entry("ledger", &d.ledger)?;
    map.serialize_entry("findings", &d.findings)?;
    map.serialize_entry("next", &d.next)?;
    map.serialize_entry("thresholds", &d.thresholds)?;
    match &d.source {
        Some(source) => map.serialize_entry("source", source),
        None => Ok(()),
    }
}

struct Sections<'a>(&'a [Section]);

impl Serialize for Sections<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Rows<T> {
            rows: T,
        }
        let mut map = s.serialize_map(None)?;
        for section in self.0 {
            match section {
                Section::Table(table) => {
                    map.serialize_entry(table.name, &Rows { rows: table.json_rows() })?
                }
                Section::Ledger(ledger) => map.serialize_entry("ledger", ledger)?,
            }
        }
        map.end()
    }
}

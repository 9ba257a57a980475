//! The rows of one trace, by the names of their columns.

use holdup_export::TableDef;
use serde_json::Value as Json;

/// The trace to which rows belong.
pub(crate) struct Seen<'a> {
    pub(crate) ns: i64,
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
}

/// The sum of the known values.
pub(crate) fn plus(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

/// A row of a record by the names of its columns.
pub(crate) struct Named<'a> {
    pub(crate) table: &'a TableDef,
    pub(crate) row: &'a [Json],
}

impl<'a> Named<'a> {
    pub(crate) fn get(&self, name: &str) -> Option<&'a Json> {
        let at = self.table.columns.iter().position(|c| c.name == name);
        debug_assert!(at.is_some(), "{} has no column {name}", self.table.name);
        // A partition's columns come after the key, before all that is looked up here.
        let added = self.row.len() - self.table.columns.len();
        self.row.get(at? + added)
    }

    pub(crate) fn words(&self, name: &str) -> Option<&'a str> {
        self.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.as_u64()
    }
}

//! Tables as rows of JSON by their keys: what two answers are compared by.

use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Rows by table and key.
pub(crate) type Tables = BTreeMap<(&'static str, String), Value>;

/// Rows as JSON has them.
pub(crate) fn json<R: Serialize>(rows: Vec<R>) -> Vec<Value> {
    rows.iter().map(|r| serde_json::to_value(r).unwrap()).collect()
}

/// Add the rows of a table, each by what it has in these columns.
pub(crate) fn add(tables: &mut Tables, table: &'static str, keys: &[&str], rows: Vec<Value>) {
    for row in rows {
        let key: Vec<String> = keys.iter().map(|k| row[*k].to_string()).collect();
        tables.insert((table, key.join(" ")), row);
    }
}

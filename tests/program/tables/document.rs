//! docs/tables.md has every table and column; `HOLDUP_BLESS=1` writes it.

use crate::support::root;
use holdup_export::{Column, MADE, TableDef, definitions};
use holdup_render::json_schema;
use serde_json::Value;
use std::fmt::Write;

/// What the schema of the JSON says of a column of a verb, and whether it may be null.
fn documented(schema: &Value, row: &str, column: &str) -> (String, bool) {
    let property = &schema["$defs"][row]["properties"][column];
    let about = property["description"].as_str();
    let about = about.unwrap_or_else(|| panic!("{row}.{column} is not in the schema"));
    let null = |types: &Value| types.as_array().is_some_and(|all| all.contains(&"null".into()));
    let any =
        property["anyOf"].as_array().is_some_and(|all| all.iter().any(|t| t["type"] == "null"));
    (about.replace('\n', " "), null(&property["type"]) || any)
}

fn line(table: &TableDef, column: &Column, schema: &Value) -> String {
    let made = MADE.iter().find(|made| made.name == table.name);
    let (about, nullable) = match made {
        Some(made) => documented(schema, made.row, column.name),
        None => (column.about.trim().to_owned(), column.nullable),
    };
    let (about, unit) = (about.replace('|', "\\|"), column.unit);
    let null = if nullable { "yes" } else { "" };
    format!("| `{}` | {} | {unit} | {null} | {about} |\n", column.name, column.ty.name())
}

/// If an earlier table describes at least this many columns of a table, they are only named there.
const SHARED: usize = 8;

/// A table, with the lines of the columns that are described at that table.
struct Described {
    name: &'static str,
    lines: Vec<String>,
}

impl Described {
    fn shares(&self, lines: &[String]) -> usize {
        lines.iter().filter(|&line| self.lines.contains(line)).count()
    }
}

fn generated() -> String {
    let schema = json_schema::outputs();
    let mut text = include_str!("intro.md").to_owned();
    let mut described: Vec<Described> = Vec::new();
    for table in definitions() {
        let about = table.about.trim();
        write!(text, "\n### {}\n\n{about}\n", table.name).unwrap();
        let lines: Vec<String> =
            table.columns.iter().map(|column| line(&table, column, &schema)).collect();
        let most = described.iter().max_by_key(|of| of.shares(&lines));
        let like = most.filter(|of| of.shares(&lines) >= SHARED);
        let is_shared = |line: &String| like.is_some_and(|of| of.lines.contains(line));
        if let Some(of) = like {
            let shared = table.columns.iter().zip(&lines).filter(|&(_, line)| is_shared(line));
            let names: Vec<String> = shared.map(|(c, _)| format!("`{}`", c.name)).collect();
            write!(text, "\nAs in [{0}](#{0}): {1}.\n", of.name, names.join(", ")).unwrap();
        }
        let own: Vec<String> = lines.iter().filter(|&line| !is_shared(line)).cloned().collect();
        if !own.is_empty() {
            text += "\n| column | type | unit | null | meaning |\n|---|---|---|---|---|\n";
            text += &own.concat();
        }
        described.push(Described { name: table.name, lines: own });
    }
    text
}

#[test]
fn the_tables_are_those_of_the_document() {
    let path = root().join("docs/tables.md");
    let made = generated();
    if std::env::var_os("HOLDUP_BLESS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == made,
        "docs/tables.md is not what the code says; HOLDUP_BLESS=1 cargo test --test program tables \
         writes it"
    );
}

#[test]
fn no_two_tables_and_no_two_columns_of_one_have_one_name() {
    let tables = definitions();
    for (i, table) in tables.iter().enumerate() {
        assert!(tables[..i].iter().all(|other| other.name != table.name), "{}", table.name);
        for (j, column) in table.columns.iter().enumerate() {
            let before = &table.columns[..j];
            assert!(before.iter().all(|c| c.name != column.name), "{}.{}", table.name, column.name);
        }
    }
}

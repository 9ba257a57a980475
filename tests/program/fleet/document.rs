//! docs/fleet.md has every column that an export lacks; `HOLDUP_BLESS=1` writes them.

use crate::support::is_written;
use holdup_export::definitions as exported;
use holdup_fleet::definitions;
use std::fmt::Write;

#[test]
fn the_columns_are_those_of_the_document() {
    let exported = exported();
    let mut made =
        "| table | column | type | unit | null | meaning |\n|---|---|---|---|---|---|\n".to_owned();
    for (i, table) in definitions().iter().enumerate() {
        let known = exported.iter().find(|t| t.name == table.name).unwrap();
        let is_new = |name: &str| known.columns.iter().all(|c| c.name != name);
        for column in table.columns.iter().filter(|c| is_new(c.name)) {
            let name = match (i, column.name) {
                (_, "trace") if i > 0 => continue,
                (_, "trace") => "all",
                _ => table.name,
            };
            let null = if column.nullable { "yes" } else { "" };
            let (ty, unit, about) = (column.ty.name(), column.unit, column.about);
            writeln!(made, "| {name} | `{}` | {ty} | {unit} | {null} | {about} |", column.name)
                .unwrap();
        }
    }
    is_written("docs/fleet.md", ("<!-- begin columns -->\n", "<!-- end columns -->"), &made);
}

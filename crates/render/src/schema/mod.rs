//! One declaration per verb: the columns of its table, and how text lays them out.
//!
//! A `Verb` is made from a row type, whose fields are the columns, in the order of JSON and CSV.
//! Its `Shape`s say which columns a table has for each grouping, and which of them text shows,
//! where, and under which heading. The compiler checks the three for consistency: a field that is
//! not a column does not match the pattern in `columns!`, and `Verb::check` runs while the crate
//! compiles. To add a column, add the field to the row type, the column here, and then either a
//! `Field` in a layout or its key in `data_only`.

pub(crate) mod callers;
pub(crate) mod calls;
pub(crate) mod cgroups;
pub(crate) mod cpus;
pub(crate) mod fleet;
pub(crate) mod hist;
pub(crate) mod holders;
pub(crate) mod irqs;
pub(crate) mod latency;
mod ledger;
pub(crate) mod locks;
pub(crate) mod phases;
pub(crate) mod predict;
pub(crate) mod procs;
pub(crate) mod profile;
pub(crate) mod sar;
pub(crate) mod switches;
pub(crate) mod syscalls;
pub(crate) mod waits;
pub(crate) mod whatif;
pub(crate) mod words;

pub use callers::callers;
pub use calls::calls;
pub use cgroups::cgroups;
pub use cpus::cpus;
pub use fleet::{
    fleet_failed, fleet_locks, fleet_objects, fleet_services, fleet_syscalls, fleet_verdicts,
};
pub use hist::hist;
pub use holders::holding;
pub use irqs::irqs;
pub use latency::latency;
pub use ledger::nodes;
pub use locks::locks;
pub use phases::phases;
pub use predict::predict;
pub use procs::{first_procs, procs};
pub use profile::{profile, profile_tree, stays};
pub use sar::sar;
pub use switches::{first_switches, switches, switches_by_cgroup};
pub use syscalls::syscalls;
pub(crate) use waits::edges;
pub use waits::{path, waits};
pub use whatif::whatif;

use crate::table::Line;
use crate::table::layout::{Layout, Show, has, same};
use crate::table::{Cell, Column, Table};
use std::borrow::Borrow;

/// A column of rows of type `R`.
struct Def<R> {
    column: Column,
    get: fn(&R) -> Cell,
}

/// `FIELD UNIT` for each field of a row type; `FIELD "KEY" UNIT` if the key cannot be a field's
/// name; `FIELD UNIT (FUNCTION)` if the cell is computed from the field.
macro_rules! columns {
    ($row:ident { $($field:ident $($key:literal)? $unit:ident $(($get:expr))?),+ $(,)? }) => {{
        const _: fn(&$row) = |row| {
            // If compilation stops here, a field of the row has no column: add it to `columns!`,
            // not `..`.
            let $row { $($field: _),+ } = row;
        };
        &[$($crate::schema::Def::<$row> {
            column: $crate::table::Column {
                key: $crate::schema::key!($field $($key)?),
                unit: $crate::table::Unit::$unit,
            },
            get: $crate::schema::get!($row $field $($get)?),
        }),+]
    }};
}

macro_rules! key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}

macro_rules! get {
    ($row:ident $field:ident) => {
        |row: &$row| $crate::table::ToCell::to_cell(&row.$field)
    };
    ($row:ident $field:ident $get:expr) => {
        |row: &$row| $crate::table::ToCell::to_cell(&($get)(row))
    };
}

use {columns, get, key};

/// The table of a verb.
pub(crate) struct Verb<R: 'static> {
    /// The verb, and its key in a summary.
    name: &'static str,
    /// The columns in the order of JSON and CSV.
    columns: &'static [Def<R>],
    /// All forms of the table.
    shapes: &'static [&'static Shape],
    /// Columns that only JSON and CSV have.
    data_only: DataOnly,
    /// Keys of the default order; empty to keep the order of the rows.
    sort: &'static str,
}

/// The columns that text does not show.
enum DataOnly {
    /// The columns with these keys.
    These(&'static [&'static str]),
    /// All: text draws the rows in another form than a table.
    All,
}

/// A form of a table, for one grouping of its rows.
struct Shape {
    /// Keys of the columns that mean nothing here.
    without: &'static [&'static str],
    /// The blocks of text that show it, in order.
    text: &'static [Layout],
}

/// All columns, and no layout.
const PLAIN: Shape = Shape { without: &[], text: &[] };

impl<R> Verb<R> {
    /// Checks that every column is shown by some layout or declared to be data only, and that every
    /// key is a column's. To be called in a `const`, so that a mistake fails the build; the message
    /// is the key and what is wrong with it.
    const fn check(&self) {
        let mut i = 0;
        while i < self.columns.len() {
            let key = self.columns[i].column.key;
            let shown = self.shows(key);
            match self.data_only {
                DataOnly::All if shown => {
                    stop(key, "is in a layout, although text shows no column (`DataOnly::All`)")
                }
                DataOnly::These(keys) if shown && has(keys, key) => {
                    stop(key, "is in a layout and in `data_only`: take it out of one")
                }
                DataOnly::These(keys) if !shown && !has(keys, key) => {
                    stop(key, "is in no layout and not in `data_only`: add it to one")
                }
                DataOnly::All | DataOnly::These(_) => {}
            }
            i += 1;
        }
        if let DataOnly::These(keys) = self.data_only {
            self.know(keys);
        }
        let mut i = 0;
        while i < self.shapes.len() {
            self.know(self.shapes[i].without);
            let mut j = 0;
            while j < self.shapes[i].text.len() {
                let fields = self.shapes[i].text[j].fields;
                let mut k = 0;
                while k < fields.len() {
                    match fields[k].show {
                        Show::Key(key) | Show::Share(key) | Show::OfWall(key) => self.know(&[key]),
                        Show::Mean(sum, n) => self.know(&[sum, n]),
                        Show::Words(keys, _) => self.know(keys),
                    }
                    k += 1;
                }
                j += 1;
            }
            i += 1;
        }
    }

    /// Checks that there are columns with these keys.
    const fn know(&self, keys: &[&str]) {
        let mut i = 0;
        while i < keys.len() {
            if !self.has(keys[i]) {
                stop(
                    keys[i],
                    "is named by a layout, `without` or `data_only`, and is not a column",
                );
            }
            i += 1;
        }
    }

    /// Whether there is a column with this key.
    const fn has(&self, key: &str) -> bool {
        let mut i = 0;
        while i < self.columns.len() {
            if same(self.columns[i].column.key, key) {
                return true;
            }
            i += 1;
        }
        false
    }

    /// Whether some layout shows `key`.
    const fn shows(&self, key: &str) -> bool {
        let mut i = 0;
        while i < self.shapes.len() {
            let mut j = 0;
            while j < self.shapes[i].text.len() {
                if self.shapes[i].text[j].shows(key) {
                    return true;
                }
                j += 1;
            }
            i += 1;
        }
        false
    }

    /// Whether some shape lacks `key`.
    pub(crate) fn may_lack(&self, key: &str) -> bool {
        self.shapes.iter().any(|s| s.without.contains(&key))
    }

    /// The table of `rows` in `shape`.
    fn table(&self, rows: &[R], shape: &'static Shape) -> Table {
        self.table_of(rows, shape, None)
    }

    /// The same of rows that are made one by one. Only the first `entries` are kept.
    fn table_of(
        &self,
        rows: impl IntoIterator<Item = impl Borrow<R>>,
        shape: &'static Shape,
        entries: Option<usize>,
    ) -> Table {
        let defs: Vec<&Def<R>> =
            self.columns.iter().filter(|d| !shape.without.contains(&d.column.key)).collect();
        let mut table = Table {
            name: self.name,
            columns: defs.iter().map(|d| d.column).collect(),
            rows: Vec::new(),
            entries,
            not_kept: 0,
            missing: None,
            view: "",
            notes: Vec::new(),
            text: shape.text,
        };
        let most = entries.unwrap_or(usize::MAX);
        for row in rows {
            table.rows.push(defs.iter().map(|d| (d.get)(row.borrow())).collect());
            if table.rows.len() / 2 > most {
                self.sort(&mut table, most);
            }
        }
        self.sort(&mut table, most);
        table
    }

    /// Sort a table in the verb's own order, and leave the first `most` rows.
    fn sort(&self, table: &mut Table, most: usize) {
        if !self.sort.is_empty() {
            let known = table.keep(self.sort, most);
            debug_assert!(known.is_ok(), "{} has no column {}", self.name, self.sort);
        }
    }
}

/// Whether any table has a column `key`: any other key in code is a typo.
pub(crate) fn is_key(key: &str) -> bool {
    [
        callers::VERB.has(key),
        calls::VERB.has(key),
        cgroups::VERB.has(key),
        cpus::VERB.has(key),
        fleet::VERDICTS.has(key),
        fleet::OBJECTS.has(key),
        fleet::SERVICES.has(key),
        fleet::FAILED.has(key),
        holders::VERB.has(key),
        irqs::VERB.has(key),
        latency::VERB.has(key),
        ledger::VERB.has(key),
        locks::VERB.has(key),
        phases::VERB.has(key),
        predict::VERB.has(key),
        procs::VERB.has(key),
        profile::VERB.has(key),
        profile::TREE.has(key),
        sar::VERB.has(key),
        switches::VERB.has(key),
        syscalls::VERB.has(key),
        waits::VERB.has(key),
        waits::PATH_VERB.has(key),
        hist::VERB.has(key),
        waits::EDGES.has(key),
        whatif::VERB.has(key),
    ]
    .contains(&true)
}

/// Stop the build with "KEY WHY". A panic in a `const` can show only one string, so the two are
/// joined.
const fn stop(key: &str, why: &str) -> ! {
    let mut text = [b' '; 160];
    let (key, why) = (key.as_bytes(), why.as_bytes());
    let end = key.len() + 1 + why.len();
    let mut i = 0;
    while i < end {
        if i < key.len() {
            text[i] = key[i];
        } else if i > key.len() {
            text[i] = why[i - key.len() - 1];
        }
        i += 1;
    }
    match std::str::from_utf8(text.split_at(end).0) {
        Ok(text) => panic!("{}", text),
        Err(_) => panic!("a key that is no UTF-8"),
    }
}

#[cfg(test)]
mod tests;

impl<'a> Line<'a> {
    /// The cell, `None` if this table has no such column.
    pub fn get(&self, key: &str) -> Option<&'a Cell> {
        debug_assert!(crate::schema::is_key(key), "no table has a column {key}");
        self.table.column(key).and_then(|i| self.row.get(i))
    }

    /// The text in a cell, empty if there are none.
    pub fn text(&self, key: &str) -> &'a str {
        self.get(key).map_or("", Cell::text)
    }

    /// The whole number in a cell.
    pub fn int(&self, key: &str) -> Option<u64> {
        self.get(key).and_then(Cell::int)
    }
}

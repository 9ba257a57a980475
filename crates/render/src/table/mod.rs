//! A table as plain values: the common input of all renderers.

pub(crate) mod layout;

use layout::{Layout, Show};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The unit of a column; determines how text shows it and how it sorts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Words.
    Text,
    /// A count.
    Count,
    /// A duration in nanoseconds.
    Ns,
    /// A point in time in nanoseconds of the trace's clock.
    Time,
    /// Per cent.
    Percent,
    /// Per second.
    Rate,
    /// A plain ratio or mean.
    Ratio,
    /// An address or number that only identifies something.
    Address,
    /// A CPU, process, thread or system call number.
    Id,
    /// Yes or no.
    Flag,
    /// Counts by name.
    Map,
    /// Records.
    List,
}

impl Unit {
    /// Numbers that measure sort largest first; names and ids smallest first.
    pub fn descends(self) -> bool {
        !matches!(self, Unit::Text | Unit::Address | Unit::Id | Unit::List)
    }

    /// Text is left-aligned, everything else right-aligned.
    pub fn left_aligned(self) -> bool {
        matches!(self, Unit::Text | Unit::Map | Unit::List)
    }
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// The trace cannot give the value.
    Null,
    /// Yes or no.
    Bool(bool),
    /// Any whole number.
    Int(u64),
    /// Any other number.
    Float(f64),
    /// Words, unescaped.
    Text(String),
    /// Counts by name.
    Map(Vec<(String, u64)>),
    /// Records: threads with what they did.
    List(Vec<Vec<(&'static str, Cell)>>),
}

impl Cell {
    /// The value of a whole number.
    pub fn int(&self) -> Option<u64> {
        if let Cell::Int(n) = self { Some(*n) } else { None }
    }

    /// The text, empty for anything else.
    pub fn text(&self) -> &str {
        if let Cell::Text(t) = self { t } else { "" }
    }

    /// Ascending order; [`Cell::Null`] handled by the caller.
    fn cmp(&self, other: &Cell) -> Ordering {
        match (self, other) {
            (Cell::Int(a), Cell::Int(b)) => a.cmp(b),
            (Cell::Float(a), Cell::Float(b)) => a.total_cmp(b),
            (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
            (Cell::Bool(a), Cell::Bool(b)) => a.cmp(b),
            (Cell::Map(a), Cell::Map(b)) => {
                a.iter().map(|e| e.1).sum::<u64>().cmp(&b.iter().map(|e| e.1).sum::<u64>())
            }
            _ => Ordering::Equal,
        }
    }
}

/// A field of a row as a cell.
pub(crate) trait ToCell {
    fn to_cell(&self) -> Cell;
}

macro_rules! cells {
    ($($from:ty: |$v:ident| $cell:expr),+ $(,)?) => {
        $(impl ToCell for $from {
            fn to_cell(&self) -> Cell {
                let $v = self;
                $cell
            }
        })+
    };
}

cells! {
    bool: |v| Cell::Bool(*v),
    u16: |v| Cell::Int((*v).into()),
    u32: |v| Cell::Int((*v).into()),
    u64: |v| Cell::Int(*v),
    f64: |v| Cell::Float(*v),
    String: |v| Cell::Text(v.clone()),
    &'static str: |v| Cell::Text((*v).to_owned()),
    BTreeMap<String, u64>: |v| Cell::Map(v.iter().map(|(k, n)| (k.clone(), *n)).collect()),
}

impl<T: ToCell> ToCell for Option<T> {
    fn to_cell(&self) -> Cell {
        self.as_ref().map_or(Cell::Null, T::to_cell)
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Null => s.serialize_none(),
            Cell::Bool(b) => s.serialize_bool(*b),
            Cell::Int(n) => s.serialize_u64(*n),
            Cell::Float(x) => s.serialize_f64(*x),
            Cell::Text(t) => s.serialize_str(t),
            Cell::Map(m) => s.collect_map(m.iter().map(|(k, n)| (k, n))),
            Cell::List(l) => s.collect_seq(l.iter().map(|r| Record(r))),
        }
    }
}

struct Record<'a>(&'a [(&'static str, Cell)]);

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.iter().map(|(k, c)| (k, c)))
    }
}

/// A column: its key in JSON and CSV, and its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// JSON key and CSV header.
    pub key: &'static str,
    /// The unit of its values.
    pub unit: Unit,
}

/// Rows of one kind.
#[derive(Clone, Debug)]
pub struct Table {
    /// `syscalls`, `procs` …: the verb that shows it, and its key in `summary`.
    pub name: &'static str,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows; each has as many cells as there are columns.
    pub rows: Vec<Vec<Cell>>,
    /// Show only this many rows; `None` for all.
    pub entries: Option<usize>,
    /// Rows after the last of `rows` that were not kept, because nobody asked for so many.
    pub not_kept: usize,
    /// The events that would have to be recorded to fill the table, if they were not.
    pub missing: Option<&'static str>,
    /// The tool whose text layout is used; empty for holdup's own.
    pub view: &'static str,
    /// Remarks to show below it in text.
    pub notes: Vec<String>,
    /// The blocks that show it in text.
    pub(crate) text: &'static [Layout],
}

/// A sort key that matches no column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown sort key '{}'; the keys are: {}", key.escape_default(), known.join(", "))]
pub struct UnknownKey {
    /// The unknown key.
    pub key: String,
    /// The known keys.
    pub known: Vec<&'static str>,
}

impl Table {
    /// Index of the column `key`.
    pub fn column(&self, key: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.key == key)
    }

    /// The first column that text shows under this heading.
    fn headed(&self, title: &str) -> Option<usize> {
        let fields = self.text.iter().flat_map(|layout| layout.fields);
        let mut shown = fields.filter(|field| field.title.eq_ignore_ascii_case(title));
        shown.find_map(|field| match field.show {
            Show::Key(key) | Show::Share(key) | Show::OfWall(key) => self.column(key),
            Show::Mean(..) | Show::Words(..) => None,
        })
    }

    /// Sort by the keys, leave only the first `most` rows, and count the others.
    pub(crate) fn keep(&mut self, keys: &str, most: usize) -> Result<(), UnknownKey> {
        self.sort(keys)?;
        self.not_kept += self.rows.len().saturating_sub(most);
        self.rows.truncate(most);
        Ok(())
    }

    /// The rows to show.
    pub fn shown(&self) -> &[Vec<Cell>] {
        &self.rows[..self.entries.unwrap_or(usize::MAX).min(self.rows.len())]
    }

    /// How many rows [`Table::shown`] omits.
    pub fn left_out(&self) -> usize {
        self.rows.len() - self.shown().len() + self.not_kept
    }

    /// Sort by `keys` (comma-separated; a trailing `_ns` may be omitted). Measures sort descending,
    /// names and ids ascending, unknown values last. Ties are ordered by all names and ids from
    /// left to right, so that the order never depends on how rows were found.
    pub fn sort(&mut self, keys: &str) -> Result<(), UnknownKey> {
        let mut order = Vec::new();
        for key in keys.split(',').map(str::trim).filter(|k| !k.is_empty()) {
            let column = self.column(key).or_else(|| self.column(&format!("{key}_ns")));
            let column = column.or_else(|| self.headed(key));
            order.push(column.ok_or_else(|| UnknownKey {
                key: key.into(),
                known: self.columns.iter().map(|c| c.key).collect(),
            })?);
        }
        order.extend((0..self.columns.len()).filter(|&i| !self.columns[i].unit.descends()));
        let columns = &self.columns;
        self.rows.sort_by(|a, b| {
            order
                .iter()
                .map(|&i| match (&a[i], &b[i]) {
                    (Cell::Null, Cell::Null) => Ordering::Equal,
                    (Cell::Null, _) => Ordering::Greater,
                    (_, Cell::Null) => Ordering::Less,
                    (x, y) if columns[i].unit.descends() => y.cmp(x),
                    (x, y) => x.cmp(y),
                })
                .find(|o| o.is_ne())
                .unwrap_or(Ordering::Equal)
        });
        Ok(())
    }

    /// A row whose cells are addressed by keys.
    pub fn line<'a>(&'a self, row: &'a [Cell]) -> Line<'a> {
        Line { table: self, row }
    }

    /// The rows to show, as a JSON array of objects.
    pub fn json_rows(&self) -> JsonRows<'_> {
        JsonRows(self)
    }
}

/// One row, addressed by keys.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    pub(crate) table: &'a Table,
    pub(crate) row: &'a [Cell],
}

/// Serializes the shown rows of a [`Table`].
pub struct JsonRows<'a>(&'a Table);

impl Serialize for JsonRows<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        struct Row<'a>(&'a [Column], &'a [Cell]);
        impl Serialize for Row<'_> {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                let mut map = s.serialize_map(Some(self.0.len()))?;
                for (column, cell) in self.0.iter().zip(self.1) {
                    map.serialize_entry(column.key, cell)?;
                }
                map.end()
            }
        }
        s.collect_seq(self.0.shown().iter().map(|row| Row(&self.0.columns, row)))
    }
}

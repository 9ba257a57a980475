//! How text shows a table: which columns, in which order, under which headings.
//!
//! Order and headings follow AIX `utld` and `curt` if those have the table; the name comes last, so
//! that long names disturb nothing.

use super::Line;

/// Where a column's cells come from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Show {
    /// The cell `key`.
    Key(&'static str),
    /// The cell `key` as per cent of the machine's capacity.
    Share(&'static str),
    /// The cell `key` as per cent of the wall time, i.e. of one CPU.
    OfWall(&'static str),
    /// The first cell divided by the second.
    Mean(&'static str, &'static str),
    /// Text made from the cells with these keys.
    Words(&'static [&'static str], fn(Line<'_>) -> String),
}

/// When a column is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// Always.
    Always,
    /// If any row has a value.
    Known,
    /// Only with `-v`.
    Verbose,
}

/// One column of text.
#[derive(Debug)]
pub(crate) struct Field {
    /// `{}` in a group stands for the common unit of its durations.
    pub(crate) group: &'static str,
    pub(crate) title: &'static str,
    pub(crate) show: Show,
    /// When space is short, columns with the highest rank are dropped first; 0 always stays.
    pub(crate) rank: u8,
    pub(crate) when: When,
}

/// A block of text made from a table.
#[derive(Debug)]
pub(crate) struct Layout {
    /// `{}` stands for the common unit of the block's durations.
    pub(crate) title: &'static str,
    pub(crate) fields: &'static [Field],
    /// Selects the rows of the block.
    pub(crate) filter: fn(Line<'_>) -> bool,
    /// A last row that adds up the others.
    pub(crate) total: bool,
    /// Omit the block if no row passes the filter.
    pub(crate) hide_empty: bool,
}

impl Layout {
    /// Whether a field shows the column `key`, by itself or with others.
    pub(crate) const fn shows(&self, key: &str) -> bool {
        let mut i = 0;
        while i < self.fields.len() {
            let shown = match self.fields[i].show {
                Show::Key(k) | Show::Share(k) | Show::OfWall(k) => has(&[k], key),
                Show::Mean(sum, n) => has(&[sum, n], key),
                Show::Words(keys, _) => has(keys, key),
            };
            if shown {
                return true;
            }
            i += 1;
        }
        false
    }
}

/// A column that is always shown.
pub(crate) const fn field(group: &'static str, title: &'static str, show: Show, rank: u8) -> Field {
    Field { group, title, show, rank, when: When::Always }
}

/// A column that is shown only under a condition.
pub(crate) const fn only(when: When, f: Field) -> Field {
    Field { when, ..f }
}

/// A block of all rows.
pub(crate) const fn block(title: &'static str, fields: &'static [Field]) -> Layout {
    Layout { title, fields, filter: |_| true, total: false, hide_empty: false }
}

/// Whether `key` is among `keys`.
pub(crate) const fn has(keys: &[&str], key: &str) -> bool {
    let mut i = 0;
    while i < keys.len() {
        if same(keys[i], key) {
            return true;
        }
        i += 1;
    }
    false
}

/// `a == b`, which is not available for strings in `const` code.
pub(crate) const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

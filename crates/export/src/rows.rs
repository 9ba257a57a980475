//! Rows before they are written: a vector for each column, emptied when a part is written.

use crate::column::{Column, TableDef, Type};
use crate::error::ExportError;
use rustc_hash::FxHashMap;

/// A word, by its number in [`Pool`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Word(pub(crate) u32);

/// Every word of an export, once. Its size grows with threads, objects and names, not with rows.
#[derive(Default)]
pub(crate) struct Pool {
    words: Vec<String>,
    known: FxHashMap<String, u32>,
}

impl Pool {
    pub(crate) fn word(&mut self, text: &str) -> Word {
        if let Some(&i) = self.known.get(text) {
            return Word(i);
        }
        let i = self.words.len() as u32;
        self.words.push(text.to_owned());
        self.known.insert(text.to_owned(), i);
        Word(i)
    }

    pub(crate) fn text(&self, word: Word) -> &str {
        &self.words[word.0 as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }
}

/// Takes rows, each with the name of its table and the words in it.
pub(crate) type Put<'a> = dyn FnMut(&'static str, &[Value], &Pool) -> Result<(), ExportError> + 'a;

/// The values of one column.
pub(crate) enum Values {
    Int(Vec<i64>),
    Id(Vec<u32>),
    Address(Vec<u64>),
    Float(Vec<f64>),
    Flag(Vec<bool>),
    Words(Vec<Word>),
}

impl Values {
    fn new(ty: Type) -> Values {
        match ty {
            Type::Int => Values::Int(Vec::new()),
            Type::Id => Values::Id(Vec::new()),
            Type::Address => Values::Address(Vec::new()),
            Type::Float => Values::Float(Vec::new()),
            Type::Flag => Values::Flag(Vec::new()),
            Type::Words => Values::Words(Vec::new()),
        }
    }

    fn clear(&mut self) {
        match self {
            Values::Int(v) => v.clear(),
            Values::Id(v) => v.clear(),
            Values::Address(v) => v.clear(),
            Values::Float(v) => v.clear(),
            Values::Flag(v) => v.clear(),
            Values::Words(v) => v.clear(),
        }
    }

    fn push_nothing(&mut self) {
        match self {
            Values::Int(v) => v.push(0),
            Values::Id(v) => v.push(0),
            Values::Address(v) => v.push(0),
            Values::Float(v) => v.push(0.0),
            Values::Flag(v) => v.push(false),
            Values::Words(v) => v.push(Word(0)),
        }
    }
}

/// A column's values, and which of them are not null.
pub(crate) struct Cells {
    pub(crate) values: Values,
    /// Empty if the column is not nullable.
    pub(crate) there: Vec<bool>,
    nullable: bool,
}

/// One value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Id(u32),
    Address(u64),
    Float(f64),
    Flag(bool),
    Words(Word),
}

impl Cells {
    fn new(column: &Column) -> Cells {
        Cells { values: Values::new(column.ty), there: Vec::new(), nullable: column.nullable }
    }

    /// Add a value of the column's type.
    pub(crate) fn push(&mut self, value: Value) {
        let there = match (&mut self.values, value) {
            (Values::Int(v), Value::Int(x)) => {
                v.push(x);
                true
            }
            (Values::Id(v), Value::Id(x)) => {
                v.push(x);
                true
            }
            (Values::Address(v), Value::Address(x)) => {
                v.push(x);
                true
            }
            (Values::Float(v), Value::Float(x)) => {
                v.push(x);
                true
            }
            (Values::Flag(v), Value::Flag(x)) => {
                v.push(x);
                true
            }
            (Values::Words(v), Value::Words(x)) => {
                v.push(x);
                true
            }
            (values, other) => {
                debug_assert!(
                    matches!(other, Value::Null),
                    "a value that does not have the type of its column"
                );
                values.push_nothing();
                false
            }
        };
        if self.nullable {
            self.there.push(there);
        } else {
            debug_assert!(there, "a value is missing in a column that must have values");
        }
    }

    /// The value in row `i`.
    pub(crate) fn get(&self, i: usize) -> Value {
        if self.nullable && !self.there[i] {
            return Value::Null;
        }
        match &self.values {
            Values::Int(v) => Value::Int(v[i]),
            Values::Id(v) => Value::Id(v[i]),
            Values::Address(v) => Value::Address(v[i]),
            Values::Float(v) => Value::Float(v[i]),
            Values::Flag(v) => Value::Flag(v[i]),
            Values::Words(v) => Value::Words(v[i]),
        }
    }
}

/// The rows of a table that are not written yet.
pub(crate) struct Rows {
    pub(crate) columns: Vec<Cells>,
    len: usize,
}

impl Rows {
    pub(crate) fn new(table: &TableDef) -> Rows {
        Rows { columns: table.columns.iter().map(Cells::new).collect(), len: 0 }
    }

    /// Add a row: a value for each column.
    pub(crate) fn push(&mut self, row: &[Value]) {
        debug_assert_eq!(row.len(), self.columns.len());
        for (cells, &value) in self.columns.iter_mut().zip(row) {
            cells.push(value);
        }
        self.len += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn clear(&mut self) {
        for cells in &mut self.columns {
            cells.values.clear();
            cells.there.clear();
        }
        self.len = 0;
    }
}

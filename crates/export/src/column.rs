//! Describes a table: its name, its columns, and what each means.
//!
//! One description serves the Arrow schema, the writers and docs/tables.md.

/// The type of a column's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// Whole numbers with a sign: times, counts, results.
    Int,
    /// Numbers of CPUs, threads, processes, system calls.
    Id,
    /// Addresses, and numbers that need all 64 bits.
    Address,
    /// Floating-point numbers.
    Float,
    /// Booleans.
    Flag,
    /// Text.
    Words,
}

impl Type {
    /// Its name in documents: the type in Arrow and Parquet.
    pub fn name(self) -> &'static str {
        match self {
            Type::Int => "int64",
            Type::Id => "uint32",
            Type::Address => "uint64",
            Type::Float => "double",
            Type::Flag => "bool",
            Type::Words => "string",
        }
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The type of its values.
    pub ty: Type,
    /// Their unit, or empty.
    pub unit: &'static str,
    /// It may be null: the trace cannot say.
    pub nullable: bool,
    /// What it means; empty if the documented row type of a verb says it.
    pub about: &'static str,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDef {
    /// Its name, and its file's.
    pub name: &'static str,
    /// What a row is.
    pub about: &'static str,
    /// Its columns, in order.
    pub columns: Vec<Column>,
}

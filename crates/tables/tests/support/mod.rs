//! Small tables with everything that is difficult, for holdup and for SQLite.
#![allow(dead_code, reason = "each test file uses its own part")]

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array,
    UInt64Array,
};
use holdup_tables::{Frames, Source};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::path::Path;
use std::sync::Arc;

/// Xorshift: the same numbers on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }
}

/// A row of the table `calls`, or of `stays`, which lacks `kind` and `part`.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Unique, and never null.
    pub(crate) id: i64,
    pub(crate) tid: u32,
    pub(crate) spent: i64,
    /// Sometimes negative, often null.
    pub(crate) lag: Option<i64>,
    pub(crate) part: Option<f64>,
    pub(crate) name: String,
    pub(crate) kind: Option<&'static str>,
    pub(crate) done: bool,
    pub(crate) address: u64,
}

/// Rows with ties, nulls, negative numbers and hostile names.
pub(crate) fn rows(seed: u64, count: usize) -> Vec<Row> {
    let mut random = Random::new(seed);
    let names = ["read", "write", "futex", "x'y", "a%b", "", "Read"];
    (0..count)
        .map(|i| Row {
            id: i as i64 + 1,
            tid: random.below(6) as u32 + 100,
            spent: random.below(40) as i64 * 5,
            lag: (!random.one_in(3)).then(|| random.below(20) as i64 - 8),
            part: (!random.one_in(4)).then(|| random.below(16) as f64 / 4.0 - 1.0),
            name: random.pick(&names.map(|n| n)).to_owned(),
            kind: [None, Some("lock"), Some("disk")][random.below(3)],
            done: random.one_in(2),
            address: 0xffff_8880_0000_0000 + random.below(4) as u64,
        })
        .collect()
}

/// The columns of a row, as in SQL.
pub(crate) const COLUMNS: &[&str] =
    &["id", "tid", "spent", "lag", "part", "name", "kind", "done", "address"];

/// Write `rows` to a file, in groups of a few rows.
pub(crate) fn write(path: &Path, rows: &[Row]) {
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.id))), false),
        ("tid", Arc::new(UInt32Array::from_iter_values(rows.iter().map(|r| r.tid))), false),
        ("spent", Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.spent))), false),
        ("lag", Arc::new(Int64Array::from_iter(rows.iter().map(|r| r.lag))), true),
        ("part", Arc::new(Float64Array::from_iter(rows.iter().map(|r| r.part))), true),
        ("name", Arc::new(StringArray::from_iter_values(rows.iter().map(|r| &r.name))), false),
        ("kind", Arc::new(StringArray::from_iter(rows.iter().map(|r| r.kind))), true),
        ("done", Arc::new(BooleanArray::from_iter(rows.iter().map(|r| Some(r.done)))), false),
        ("address", Arc::new(UInt64Array::from_iter_values(rows.iter().map(|r| r.address))), false),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(50)).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// The tables `calls` (200 rows) and `stays` (60 rows, of other threads too) in `folder`.
pub(crate) fn export(folder: &Path) -> (Vec<Row>, Vec<Row>) {
    let (calls, mut stays) = (rows(1, 200), rows(2, 60));
    stays.iter_mut().for_each(|row| row.tid += 2);
    write(&folder.join("calls.parquet"), &calls);
    write(&folder.join("stays.parquet"), &stays);
    (calls, stays)
}

/// One folder as frames.
pub(crate) fn open(folder: &Path) -> Frames {
    Frames::open(&[Source { trace: "one".into(), folder: folder.to_owned() }]).unwrap()
}

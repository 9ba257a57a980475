//! Rows as Arrow arrays.

use crate::column::{Column, TableDef, Type};
use crate::rows::{Cells, Pool, Rows, Values, Word};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, UInt32Array, UInt64Array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use std::collections::HashMap;
use std::sync::Arc;

fn data_type(ty: Type) -> DataType {
    match ty {
        Type::Int => DataType::Int64,
        Type::Id => DataType::UInt32,
        Type::Address => DataType::UInt64,
        Type::Float => DataType::Float64,
        Type::Flag => DataType::Boolean,
        // Words repeat often.
        Type::Words => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
    }
}

fn field(column: &Column) -> Field {
    Field::new(column.name, data_type(column.ty), column.nullable)
}

/// The Arrow schema of a table, with the file's metadata.
pub(crate) fn schema(table: &TableDef, metadata: HashMap<String, String>) -> SchemaRef {
    let fields: Vec<Field> = table.columns.iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

/// These rows as a batch.
pub(crate) fn batch(
    schema: &SchemaRef,
    rows: &Rows,
    pool: &Pool,
    seen: &mut Vec<i32>,
) -> Result<RecordBatch, ArrowError> {
    let columns =
        rows.columns.iter().map(|cells| array(cells, pool, seen)).collect::<Result<_, _>>()?;
    RecordBatch::try_new(schema.clone(), columns)
}

fn array(cells: &Cells, pool: &Pool, seen: &mut Vec<i32>) -> Result<ArrayRef, ArrowError> {
    let there = (!cells.there.is_empty()).then(|| NullBuffer::from(cells.there.clone()));
    Ok(match &cells.values {
        Values::Int(v) => Arc::new(Int64Array::new(v.clone().into(), there)),
        Values::Id(v) => Arc::new(UInt32Array::new(v.clone().into(), there)),
        Values::Address(v) => Arc::new(UInt64Array::new(v.clone().into(), there)),
        Values::Float(v) => Arc::new(Float64Array::new(v.clone().into(), there)),
        Values::Flag(v) => Arc::new(BooleanArray::new(v.as_slice().into(), there)),
        Values::Words(v) => Arc::new(words(v, &cells.there, there, pool, seen)?),
    })
}

/// Words as a dictionary of those that occur, in the order of their first occurrence. `seen` is
/// scratch: by word, its key, or -1.
fn words(
    words: &[Word],
    is_there: &[bool],
    there: Option<NullBuffer>,
    pool: &Pool,
    seen: &mut Vec<i32>,
) -> Result<DictionaryArray<Int32Type>, ArrowError> {
    seen.clear();
    seen.resize(pool.len(), -1);
    let mut dictionary = Vec::new();
    let mut keys = Vec::with_capacity(words.len());
    for (i, &word) in words.iter().enumerate() {
        if is_there.get(i) == Some(&false) {
            keys.push(0);
            continue;
        }
        let key = &mut seen[word.0 as usize];
        if *key < 0 {
            *key = dictionary.len() as i32;
            dictionary.push(pool.text(word));
        }
        keys.push(*key);
    }
    let keys = Int32Array::new(keys.into(), there);
    DictionaryArray::try_new(keys, Arc::new(StringArray::from(dictionary)))
}

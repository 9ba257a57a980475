//! Reads the files of one table for polars: only the requested columns, one batch of rows after the
//! other, of which only those that pass the condition are kept.
//!
//! All integers except addresses become signed 64-bit ones: differences may be negative, and polars
//! mixes the others into floating point. Addresses stay unsigned, because kernel addresses have the
//! highest bit set.

use arrow_array::cast::AsArray;
use arrow_array::types as arrow;
use arrow_array::{Array, ArrayRef, RecordBatch};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use polars_core::prelude::*;
use polars_core::utils::accumulate_dataframes_vertical_unchecked;
use polars_lazy::prelude::{AnonymousScan, AnonymousScanArgs, Expr, IntoLazy, ScanArgsAnonymous};
use polars_plan::utils::expr_to_leaf_column_names;
use std::any::Any;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

/// The column that names the trace of a row, if several are open.
pub const TRACE: &str = "trace";

/// Rows that are decoded together.
const BATCH: usize = 64 * 1024;

/// The frame's type for a type in a file; `None` for types that no exported table has.
pub(crate) fn kind(stored: &arrow_schema::DataType) -> Option<DataType> {
    use arrow_schema::DataType as Stored;
    Some(match stored {
        Stored::Boolean => DataType::Boolean,
        Stored::Int64 | Stored::UInt32 => DataType::Int64,
        Stored::UInt64 => DataType::UInt64,
        Stored::Float64 => DataType::Float64,
        Stored::Utf8 => DataType::String,
        _ => return None,
    })
}

/// One file.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) path: PathBuf,
    /// The value of the column `trace`, if there is one.
    pub(crate) trace: Option<String>,
    /// The columns that the file has.
    pub(crate) columns: Vec<String>,
}

/// All files of one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scan {
    pub(crate) parts: Vec<Part>,
    pub(crate) schema: Schema,
}

impl Scan {
    pub(crate) fn arguments(&self) -> ScanArgsAnonymous {
        ScanArgsAnonymous { schema: Some(Arc::new(self.schema.clone())), ..Default::default() }
    }

    /// Pass the rows of `part`, batch by batch, to `keep`, until it has enough.
    fn read(
        &self,
        part: &Part,
        wanted: &[PlSmallStr],
        keep: &mut dyn FnMut(DataFrame) -> PolarsResult<bool>,
    ) -> PolarsResult<()> {
        let failed =
            |e: &dyn std::fmt::Display| polars_err!(ComputeError: "{}: {e}", part.path.display());
        let file = File::open(&part.path).map_err(|e| failed(&e))?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| failed(&e))?;
        let stored = wanted.iter().filter(|w| part.columns.iter().any(|c| c == w.as_str()));
        let mask =
            ProjectionMask::columns(builder.parquet_schema(), stored.map(PlSmallStr::as_str));
        let batches = builder.with_projection(mask).with_batch_size(BATCH).build();
        for batch in batches.map_err(|e| failed(&e))? {
            let batch = batch.map_err(|e| failed(&e))?;
            if !keep(self.frame(part, &batch, wanted)?)? {
                break;
            }
        }
        Ok(())
    }

    /// A batch as a frame with the columns `wanted`; null if the file lacks one.
    fn frame(
        &self,
        part: &Part,
        batch: &RecordBatch,
        wanted: &[PlSmallStr],
    ) -> PolarsResult<DataFrame> {
        let rows = batch.num_rows();
        let columns = wanted.iter().map(|name| match (batch.column_by_name(name), &part.trace) {
            (Some(array), _) => Ok(column(name, array)?.into_column()),
            (None, Some(trace)) if name == TRACE => {
                Ok(Column::new_scalar(name.clone(), Scalar::from(PlSmallStr::from(trace)), rows))
            }
            (None, _) => {
                let kind = self.schema.try_get(name)?;
                Ok(Column::full_null(name.clone(), rows, kind))
            }
        });
        DataFrame::new(rows, columns.collect::<PolarsResult<Vec<_>>>()?)
    }
}

/// An array from a file as a series. Types that [`kind`] does not know were refused before.
fn column(name: &PlSmallStr, array: &ArrayRef) -> PolarsResult<Series> {
    use arrow_schema::DataType as Stored;
    let name = name.clone();
    Ok(match array.data_type() {
        Stored::Boolean => {
            BooleanChunked::from_iter_options(name, array.as_boolean().iter()).into_series()
        }
        Stored::Int64 => {
            let array = array.as_primitive::<arrow::Int64Type>();
            match array.null_count() {
                0 => Int64Chunked::from_slice(name, array.values()).into_series(),
                _ => Int64Chunked::from_iter_options(name, array.iter()).into_series(),
            }
        }
        Stored::UInt32 => {
            let numbers = array.as_primitive::<arrow::UInt32Type>().iter();
            Int64Chunked::from_iter_options(name, numbers.map(|n| n.map(i64::from))).into_series()
        }
        Stored::UInt64 => {
            let numbers = array.as_primitive::<arrow::UInt64Type>().iter();
            UInt64Chunked::from_iter_options(name, numbers).into_series()
        }
        Stored::Float64 => {
            let numbers = array.as_primitive::<arrow::Float64Type>().iter();
            Float64Chunked::from_iter_options(name, numbers).into_series()
        }
        Stored::Utf8 => {
            StringChunked::from_iter_options(name, array.as_string::<i32>().iter()).into_series()
        }
        other => polars_bail!(ComputeError: "column {name}: unexpected type {other}"),
    })
}

impl AnonymousScan for Scan {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn schema(&self, _: Option<usize>) -> PolarsResult<SchemaRef> {
        Ok(Arc::new(self.schema.clone()))
    }

    fn allows_predicate_pushdown(&self) -> bool {
        true
    }

    fn allows_projection_pushdown(&self) -> bool {
        true
    }

    fn scan(&self, asked: AnonymousScanArgs) -> PolarsResult<DataFrame> {
        let shown: Vec<PlSmallStr> = match &asked.with_columns {
            Some(columns) => columns.to_vec(),
            None => self.schema.iter_names_cloned().collect(),
        };
        let mut wanted = shown.clone();
        if let Some(condition) = &asked.predicate {
            for name in expr_to_leaf_column_names(condition) {
                if !wanted.contains(&name) {
                    wanted.push(name);
                }
            }
        }
        let keeps = |frame: DataFrame, condition: Option<&Expr>| match condition {
            Some(condition) => frame.lazy().filter(condition.clone()).collect(),
            None => Ok(frame),
        };
        let mut left = asked.n_rows.unwrap_or(usize::MAX);
        let mut kept = Vec::new();
        for part in &self.parts {
            if left == 0 {
                break;
            }
            self.read(part, &wanted, &mut |batch| {
                let frame = keeps(batch, asked.predicate.as_ref())?.head(Some(left));
                left -= frame.height();
                if frame.height() > 0 {
                    kept.push(frame.select(shown.iter().cloned())?);
                }
                Ok(left > 0)
            })?;
        }
        if kept.is_empty() {
            let empty = DataFrame::empty_with_schema(&self.schema);
            return empty.select(shown);
        }
        Ok(accumulate_dataframes_vertical_unchecked(kept))
    }
}

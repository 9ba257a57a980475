//! Makes a printable answer from a frame.

use crate::Error;
use holdup_render::answer::{Answer, Value};
use polars_core::prelude::*;

/// The rows of `frame` as plain values.
///
/// # Errors
///
/// [`Error::Sql`] if a column has a type that no table has, which no accepted query can produce.
pub fn answer(frame: &DataFrame) -> Result<Answer, Error> {
    let mut columns = Vec::with_capacity(frame.width());
    for column in frame.columns() {
        let values = values(column).map_err(|e| Error::sql(e.to_string()))?;
        columns.push((column.name().to_string(), values));
    }
    Ok(Answer::of_columns(columns))
}

fn values(column: &Column) -> PolarsResult<Vec<Value>> {
    fn known<T>(values: impl Iterator<Item = Option<T>>, value: fn(T) -> Value) -> Vec<Value> {
        values.map(|v| v.map_or(Value::Null, value)).collect()
    }
    let series = column.as_materialized_series();
    Ok(match series.dtype() {
        DataType::Null => vec![Value::Null; series.len()],
        DataType::Boolean => known(series.bool()?.iter(), Value::Bool),
        DataType::String => known(series.str()?.iter(), |text| Value::Text(text.to_owned())),
        DataType::Float64 => known(series.f64()?.iter(), Value::Float),
        DataType::Float32 => known(series.f32()?.iter(), |x| Value::Float(x.into())),
        DataType::UInt64 => known(series.u64()?.iter(), |n| Value::Int(n.into())),
        kind if kind.is_integer() => {
            let wide = series.cast(&DataType::Int64)?;
            known(wide.i64()?.iter(), |n| Value::Int(n.into()))
        }
        other => polars_bail!(ComputeError: "column {}: {other} cannot be shown", column.name()),
    })
}

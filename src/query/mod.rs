//! `holdup query`: SQL over the tables of traces. The engine is `crates/tables`, which the feature
//! `tables` links in; without it the verb explains how to get it.

pub(crate) mod args;
mod examples;
#[cfg(feature = "tables")]
mod prompt;
#[cfg(feature = "tables")]
mod run;
#[cfg(feature = "tables")]
mod words;

use crate::config::{self, entries};
use crate::exit::{self, Result};
use crate::output::Output;
use args::QueryArgs;
use examples::EXAMPLES;
use holdup_render::Format;
use holdup_render::answer::{Answer, Value};

#[cfg(feature = "tables")]
/// Most rows in text: more would hide the prompt; LIMIT gives fewer.
const ENTRIES: usize = 100;

/// Run the verb.
pub(crate) fn run(args: &QueryArgs) -> Result<u8> {
    if args.list {
        return print(args, &list());
    }
    if args.examples {
        return print_examples(args);
    }
    answer(args)
}

#[cfg(feature = "tables")]
use run::answer;

/// The error of a build without the feature, with two remedies.
#[cfg(not(feature = "tables"))]
fn answer(_: &QueryArgs) -> Result<u8> {
    Err(exit::usage(
        "query: this holdup was built without SQL, which takes minutes to build; build it with: \
         cargo install --path . --features tables. Without SQL, holdup export TRACE --to DIR \
         writes the same tables as Parquet, which DuckDB, pandas and Spark read: duckdb -c \
         \"SELECT * FROM 'DIR/runs.parquet'\"",
    ))
}

/// Every table and column, with its meaning.
fn list() -> Answer {
    let text = |words: &str| Value::Text(words.to_owned());
    let heads = ["table", "column", "type", "unit", "meaning"];
    let mut rows = Vec::new();
    for table in holdup_export::definitions() {
        rows.push(vec![
            text(table.name),
            Value::Text(String::new()),
            Value::Text(String::new()),
            Value::Text(String::new()),
            text(table.about),
        ]);
        rows.extend(table.columns.iter().map(|column| {
            [table.name, column.name, column.ty.name(), column.unit, column.about].map(text).into()
        }));
    }
    Answer { columns: heads.map(str::to_owned).into(), rows }
}

fn print(args: &QueryArgs, answer: &Answer) -> Result<u8> {
    let output = Output::open(args.output.output.as_deref(), &[])?;
    let format = config::format(&args.output, &output)?;
    let shown = entries(&format, args.entries, usize::MAX);
    output.write_with(|out| answer.write(shown, &format, out))?;
    Ok(exit::OK)
}

fn print_examples(args: &QueryArgs) -> Result<u8> {
    let output = Output::open(args.output.output.as_deref(), &[])?;
    if let Format::Text(_) = config::format(&args.output, &output)? {
        output.write_with(|out| out.write_all(examples::text().as_bytes()))?;
        return Ok(exit::OK);
    }
    let column = |name: &str, text: fn(&examples::Example) -> &str| {
        (name.to_owned(), EXAMPLES.iter().map(|e| Value::Text(text(e).to_owned())).collect())
    };
    print(
        args,
        &Answer::of_columns(vec![column("question", |e| e.question), column("sql", |e| e.sql)]),
    )
}

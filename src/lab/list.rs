//! `holdup lab list`.

use crate::config;
use crate::exit::{self, Result, usage};
use crate::output::Output;
use holdup_lab::{COMMON, Param, WORKLOADS, Workload};
use holdup_render::Format;
use serde_json::{Value, json};
use std::io::{self, Write};

use super::args::ListArgs;

/// Run the verb.
pub(super) fn run(args: &ListArgs) -> Result<u8> {
    let output = Output::open(args.output.output.as_deref(), &[])?;
    match config::format(&args.output, &output)? {
        Format::Text(_) => output.write_with(text)?,
        Format::Json => output.write_with(|out| {
            let rows: Vec<Value> = WORKLOADS.iter().map(row).collect();
            let common: Vec<Value> = COMMON.iter().map(param).collect();
            let all = json!({"schema": holdup_lab::SCHEMA, "common": common, "rows": rows});
            serde_json::to_writer_pretty(&mut *out, &all)?;
            writeln!(out)
        })?,
        _ => return Err(usage("lab list has text and json output only")),
    }
    Ok(exit::OK)
}

fn text(out: &mut dyn Write) -> io::Result<()> {
    let mut class = "";
    for workload in WORKLOADS {
        if workload.class != class {
            let gap = if class.is_empty() { "" } else { "\n" };
            class = workload.class;
            writeln!(out, "{gap}{class}")?;
        }
        writeln!(out, "  {}: {}", workload.name, workload.does)?;
        params(out, workload.params)?;
        if let Some((class, why)) = workload.also {
            writeln!(out, "      also right: {class} ({why})")?;
        }
        if workload.has_twin() {
            writeln!(out, "      fixed: {} ({})", fix(workload), workload.fixes)?;
        }
    }
    writeln!(out, "\nSettings of every workload")?;
    params(out, COMMON)
}

/// The settings of the fixed variant as typed.
fn fix(workload: &Workload) -> String {
    let words: Vec<_> = workload.fix.iter().map(|(key, value)| format!("{key}={value}")).collect();
    words.join(",")
}

fn params(out: &mut dyn Write, params: &[Param]) -> io::Result<()> {
    let width = params.iter().map(|p| p.key.len() + p.default.len() + 1).max().unwrap_or(0);
    for param in params {
        let set = format!("{}={}", param.key, param.default);
        writeln!(out, "      {set:width$}  {}", param.means)?;
    }
    Ok(())
}

fn param(param: &Param) -> Value {
    json!({"key": param.key, "default": param.default, "means": param.means})
}

fn row(workload: &Workload) -> Value {
    json!({
        "name": workload.name,
        "class": workload.class,
        "also": workload.also.map(|(class, _)| class),
        "does": workload.does,
        "params": workload.params.iter().map(param).collect::<Vec<_>>(),
        "fixed": workload.has_twin().then(|| fix(workload)),
        "fixes": workload.has_twin().then_some(workload.fixes),
    })
}

//! `holdup rules`: the manual pages of the rules.

use crate::cli::RulesArgs;
use crate::config;
use crate::exit::{self, Result, usage};
use crate::output::Output;
use holdup_diagnose::rules::{ALL, Page};
use holdup_render::{Format, SCHEMA, markdown, text};

/// Run the verb.
pub(crate) fn run(args: &RulesArgs) -> Result<u8> {
    let chosen = match &args.id {
        None => None,
        Some(id) => Some(ALL.iter().find(|r| r.id == id).ok_or_else(|| {
            let ids: Vec<&str> = ALL.iter().map(|r| r.id).collect();
            usage(format!("there is no rule {id}; the rules are {}", ids.join(", ")))
        })?),
    };
    let output = Output::open(args.output.output.as_deref(), &[])?;
    let format = config::format(&args.output, &output)?;
    if matches!(format, Format::Csv { .. } | Format::Html) {
        return Err(usage("rules has no CSV or HTML output; use text, json or md"));
    }
    let failed = exit::unfinished(output.name());
    let written = output.stream(|out| match (&format, chosen) {
        (Format::Text(options), None) => text::write_list(options, out),
        (Format::Text(options), Some(rule)) => text::write_page(rule, options, out),
        (Format::Markdown, None) => markdown::write_rules(out),
        (Format::Markdown, Some(rule)) => markdown::write_rule(rule, out),
        (_, rule) => {
            let rows: Vec<Page> = ALL
                .iter()
                .filter(|r| rule.is_none_or(|only| only.id == r.id))
                .map(Page::of)
                .collect();
            let value = serde_json::json!({ "schema": SCHEMA, "command": "rules", "rows": rows });
            writeln!(out, "{value:#}")
        }
    });
    written.map(|()| exit::OK).map_err(failed)
}

//! `holdup waits`: what threads waited for.

use crate::cli::{GraphForm, WaitsArgs, WaitsByName};
use crate::code;
use crate::exit::{Result, usage};
use crate::tables::{ENTRIES, HISTS, missing, no_symbols, table_with, with_remarks};
use crate::write::{report, report_as};
use holdup_attribution::{Attribution, WaitsBy, in_words};
use holdup_passes::{Analysis, Detail};
use holdup_profile::KnowsCode;
use holdup_render::{Body, Format, GraphBody, schema};
use holdup_trace::Reader;

/// Run the verb.
pub(crate) fn run(args: &WaitsArgs) -> Result<()> {
    if args.hist
        && matches!(args.by, WaitsByName::Thread | WaitsByName::Cgroup | WaitsByName::Caller)
    {
        return Err(usage("--hist works only with --by object or --by kind"));
    }
    if args.folded {
        return crate::profile::callers::folded(&args.table, &args.symbols);
    }
    let by = match args.by {
        WaitsByName::Object => WaitsBy::Object,
        WaitsByName::Kind => WaitsBy::Kind,
        WaitsByName::Thread => WaitsBy::Thread,
        WaitsByName::Cgroup => WaitsBy::Cgroup,
        WaitsByName::Caller => return crate::profile::callers::waits(&args.table, &args.symbols),
    };
    if by != WaitsBy::Object || args.hist || args.graph.is_some() {
        no_symbols(&args.symbols, "object or --by caller")?;
    }
    if args.hist {
        return report("waits", &args.table.common, |reader, analysis, config| {
            let most = config.entries(args.table.entries.entries, HISTS).unwrap_or(usize::MAX);
            let mut table = schema::hist(&Attribution::from(analysis).wait_hists(by, most));
            table.missing = missing("waits", &reader.info().capabilities);
            Ok(Body::Table(table))
        });
    }
    let Some(form) = args.graph else {
        let detail = match by {
            WaitsBy::Thread | WaitsBy::Cgroup => Detail::Edges,
            WaitsBy::Object | WaitsBy::Kind => Detail::Sums,
        };
        let build = |reader: &dyn Reader, a: &Analysis| {
            let mut rows = Attribution::from(a).waits(by);
            let code = match by {
                WaitsBy::Object => code::of_all(reader, a, &args.symbols)?,
                WaitsBy::Kind | WaitsBy::Thread | WaitsBy::Cgroup => None,
            };
            for row in &mut rows {
                let words = in_words(row.kind, row.usage, &row.object);
                if let Some(around) = code.as_ref().and_then(|code| code.object(&[words])) {
                    row.code = around.words();
                    around.tell_holders(&mut row.holders_did);
                }
            }
            Ok(with_remarks(schema::waits(&rows, by), code))
        };
        return table_with(
            "waits",
            (&args.table, &args.symbols),
            detail,
            schema::waits(&[], by),
            build,
        );
    };
    let json = form == GraphForm::Json;
    report_as(
        "waits",
        (&args.table.common, &args.symbols),
        Detail::Edges,
        json.then_some(Format::Json),
        |_, a, config| {
            let entries = config.entries(args.table.entries.entries, ENTRIES);
            Ok(Body::Graph(Box::new(GraphBody {
                graph: Attribution::from(a).graph(),
                dot: form == GraphForm::Dot,
                entries,
            })))
        },
    )
}

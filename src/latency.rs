//! `holdup latency`: how long requests take, and how much of that is waiting.

use crate::cli::{LatencyArgs, LatencyByName};
use crate::exit::Result;
use crate::tables::table_with;
use crate::unit::Ends;
use holdup_attribution::{LatencyBy, latencies};
use holdup_passes::{Analysis, Detail};
use holdup_render::schema;
use holdup_trace::Reader;

/// Run the verb.
pub(crate) fn run(args: &LatencyArgs) -> Result<()> {
    let by = match args.by {
        LatencyByName::Command => LatencyBy::Command,
        LatencyByName::Process => LatencyBy::Process,
        LatencyByName::Thread => LatencyBy::Thread,
    };
    let unit = args.unit.as_deref().map(Ends::parse).transpose()?;
    let build = |reader: &dyn Reader, a: &Analysis| {
        let rows = match &unit {
            None => latencies(reader, a, by, None)?,
            Some(unit) => {
                unit.with(reader.info(), a, |unit| latencies(reader, a, by, Some(unit)))??
            }
        };
        Ok(schema::latency(&rows, by))
    };
    let empty = schema::latency(&[], by);
    table_with("latency", (&args.table, &args.symbols), Detail::Sums, empty, build)
}

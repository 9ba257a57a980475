//! `holdup path`: how one thread spent its time.

use crate::choice::no_path;
use crate::cli::PathArgs;
use crate::exit::{Result, usage};
use crate::tables::{ENTRIES, missing, sort, with_remarks};
use crate::write::report_with_code;
use holdup_attribution::{Attribution, NoPath, Path, in_words};
use holdup_passes::Detail;
use holdup_profile::{Code, KnowsCode};
use holdup_render::{Body, PathBody, PathHead, schema};
use holdup_trace::Tid;

/// Run the verb.
pub(crate) fn run(args: &PathArgs) -> Result<()> {
    let tid = match args.table.common.select.tid[..] {
        [] => None,
        [tid] => Some(tid),
        _ => return Err(usage("--tid: a path belongs to one thread; name one TID")),
    };
    sort(&args.table, &mut schema::path(&[]))?;
    report_with_code(
        "path",
        (&args.table.common, &args.symbols),
        Detail::Intervals,
        |reader, a, code, config| {
            config.must_match(a)?;
            let tid_or_all = tid.map_or_else(|| "path".to_owned(), |tid| format!("--tid {tid}"));
            let lacking = missing("path", &reader.info().capabilities);
            let chosen = tid.is_some() || config.chooses_threads();
            let mut path = match Attribution::from(a).path(tid) {
                Ok(path) => path,
                // The recording lacks the events; the table says so.
                Err(NoPath::NoThread | NoPath::Still(_)) if lacking.is_some() && !chosen => {
                    Path::default()
                }
                Err(NoPath::NoThread) if !chosen => Path::default(),
                Err(why) => return Err(usage(format!("{tid_or_all}: {}", no_path(&why)))),
            };
            for row in &mut path.rows {
                let words = in_words(row.kind, row.usage, &row.object);
                let around = |code: &Code<'_>| match row.state {
                    "run" => code.thread(Tid(row.tid)),
                    _ => code.object(&[words]),
                };
                row.code = code.as_ref().and_then(|code| around(code)?.words());
            }
            let mut table = with_remarks(schema::path(&path.rows), code);
            sort(&args.table, &mut table)?;
            table.entries = config.entries(args.table.entries.entries, ENTRIES);
            table.missing = lacking;
            let head = PathHead { tid: path.tid, comm: path.comm, total_ns: path.total_ns };
            Ok(Body::Path(Box::new(PathBody { head, table })))
        },
    )
}

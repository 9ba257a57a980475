//! Writes a trace.dat as a Perfetto trace, for other tools and for measurements.
//!
//! ```sh
//! as_perfetto TRACE.DAT OUT [compact] [described] [deflate | zstd] [TIMES]
//! ```
//!
//! TIMES repeats the trace, each time later. `TRACE.DAT` may be compressed with zstd.

use holdup_testkit::{Generic, Packing, PerfettoForm, perfetto};
use holdup_trace::Reader;
use std::fs::File;
use std::io::Write;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, options @ ..] = &args[..] else { return Err("as_perfetto FROM TO".into()) };
    let has = |option: &str| options.iter().any(|o| o == option);
    let times: u64 = options.iter().find_map(|o| o.parse().ok()).unwrap_or(1);
    let file = File::open(from)?;
    let trace = if from.ends_with(".zst") {
        holdup_tracedat::open_stream(Path::new(from), zstd::stream::read::Decoder::new(file)?)?
    } else {
        holdup_tracedat::open(Path::new(from))?
    };
    let (start, end) = trace.info().span.ok_or("no events")?;
    let mut out = File::create(to)?;
    for turn in 0..times {
        let form = PerfettoForm {
            compact: has("compact"),
            generic: if has("described") { Generic::Described } else { Generic::Named },
            packing: match (has("deflate"), has("zstd")) {
                (true, _) => Packing::Deflate,
                (_, true) => Packing::Zstd,
                _ => Packing::None,
            },
            later_by: turn * (end - start + 1_000_000),
            ..PerfettoForm::default()
        };
        out.write_all(&perfetto(&trace, &form))?;
    }
    Ok(())
}

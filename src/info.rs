//! `holdup info`: what a file is, and what was recorded.

use crate::choice::{self, PROCS};
use crate::cli::InfoArgs;
use crate::config::Config;
use crate::exit::Result;
use crate::write::{report_with, write_report};
use holdup_passes::Detail;
use holdup_render::{Body, Info, Report, TraceHead};

/// Reads only tables and samples of a large file; reads the whole file if it is small, if
/// requested, or if a part was selected, whose content only a full read shows.
pub(crate) fn run(args: &InfoArgs) -> Result<()> {
    choice::refuse(&args.common.select, "info", PROCS)?;
    let config = Config::new(&args.common)?;
    let glance = match args.full || config.selects() {
        true => None,
        false => holdup_open::glance(&config.trace)?,
    };
    let Some(glance) = glance else {
        return report_with("info", config, Detail::Sums, |reader, _, _| {
            Ok(Body::Info(Box::new(Info::new(reader.info()))))
        });
    };
    let report = Report {
        command: "info",
        trace: TraceHead::glanced(&glance),
        quality: glance.quality.entries(),
        body: Body::Info(Box::new(Info::glanced(&glance))),
    };
    write_report(config, &report)
}

//! `holdup doctor`: what this host allows.

use crate::cli::DoctorArgs;
use crate::config;
use crate::exit::{self, Result, usage};
use crate::output::Output;
use holdup_host::{Host, Root, can_record, facts};
use holdup_record::probe::try_out;
use holdup_render::{Format, doctor};

/// Run the verb.
pub(crate) fn run(args: &DoctorArgs) -> Result<u8> {
    let output = Output::open(args.output.output.as_deref(), &[])?;
    let format = config::format(&args.output, &output)?;
    if matches!(format, Format::Csv { .. } | Format::Markdown | Format::Html) {
        return Err(usage("doctor has no CSV, Markdown or HTML output; use text or json"));
    }
    let host = Host::look(&Root::host());
    let facts = facts(&host, &try_out(&host));
    output.write_with(|out| match &format {
        Format::Text(options) => {
            doctor::write_text(&facts, options, out)?;
            if can_record(&facts) == Some(true) {
                writeln!(
                    out,
                    "\nTo check whether verdicts are right on this host: holdup lab prove"
                )?;
            }
            Ok(())
        }
        _ => doctor::write_json(&facts, out),
    })?;
    Ok(if can_record(&facts) == Some(true) { exit::OK } else { exit::INPUT })
}

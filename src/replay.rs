//! When a recording is replayed for what mending its hold-up would gain.

use crate::config::Config;
use anyhow::Result;
use holdup_diagnose::is_small;
use holdup_passes::{Detail, Options};
use holdup_trace::Reader;

/// How to read a trace for a verdict and for what mending would gain; and if there will be no such
/// figure, why.
pub(crate) fn options(
    config: &Config,
    reader: &dyn Reader,
    asked: bool,
) -> Result<(Options, Option<String>)> {
    let mut options = config.options(reader)?;
    let trace = config.trace.display();
    let reason = if options.filter != holdup_passes::Filter::default() {
        "some threads were selected, and a replay is of all".to_owned()
    } else if options.selection.cpus.is_some() {
        "some CPUs were selected, and a replay is of all".to_owned()
    } else if asked || is_small(&config.trace) {
        options.detail = Detail::Steps;
        return Ok((options, None));
    } else {
        format!(
            "a trace so large, or of unknown length, is replayed only with --gain, or by \
             holdup whatif {trace} --rank"
        )
    };
    Ok((options, Some(reason)))
}

#[cfg(test)]
mod tests {
    use holdup_diagnose::is_small;
    use std::path::Path;

    const SMALL: u64 = 64 << 20;

    #[test]
    fn large_files_and_folders_and_streams_are_not_small() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("channel_0");
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(SMALL).unwrap();
        assert!(is_small(&path) && is_small(folder.path()));
        file.set_len(SMALL + 1).unwrap();
        assert!(!is_small(&path) && !is_small(folder.path()) && !is_small(Path::new("-")));
    }
}

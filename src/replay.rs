//! Decides how much of a recording is replayed to predict the gain from fixing its bottleneck.

use crate::config::Config;
use holdup_diagnose::phases::Wanted;
use holdup_diagnose::{Thresholds, phases, replayed_part};
use holdup_passes::{Detail, Options};
use holdup_trace::Reader;

/// The share of a trace that is replayed; if none, why.
fn part(config: &Config, options: &Options, asked: bool) -> Result<f64, &'static str> {
    if options.selection.cpus.is_some() {
        return Err("only some CPUs were selected, and a replay needs all CPUs");
    }
    match replayed_part(&config.trace) {
        _ if asked => Ok(1.0),
        Some(part) => Ok(part),
        None => Err("a trace of unknown length is replayed only with --gain"),
    }
}

/// Read a trace for a verdict and for the gain from a fix; if there will be no such figure, returns
/// why. `detail` says what else is needed, and `whole` whether everything is analysed although a
/// part is judged. With `asked`, everything that is judged is replayed.
pub(crate) fn read(
    config: &Config,
    reader: &dyn Reader,
    thresholds: &Thresholds,
    asked: bool,
    detail: Detail,
    whole: bool,
) -> crate::exit::Result<(phases::Judged, Option<String>)> {
    let mut options = config.judged_options(reader)?;
    options.detail = options.detail.max(detail);
    let part = part(config, &options, asked);
    // Code is looked up for the waits of the whole trace.
    let whole = whole || reader.info().capabilities.stacks;
    let wanted = Wanted { replay: part.ok(), whole };
    let judged = phases::read(reader, &options, thresholds, wanted)?;
    config.must_match(judged.whole())?;
    Ok((judged, part.err().map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use holdup_diagnose::replayed_part;
    use std::path::Path;

    const SMALL: u64 = 64 << 20;

    #[test]
    fn of_large_files_and_folders_a_window_is_replayed_and_of_streams_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("channel_0");
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(SMALL).unwrap();
        assert_eq!((replayed_part(&path), replayed_part(folder.path())), (Some(1.0), Some(1.0)));
        file.set_len(4 * SMALL).unwrap();
        assert!(replayed_part(&path).is_some_and(|part| part < 0.25));
        assert_eq!(replayed_part(&path), replayed_part(folder.path()));
        assert_eq!(replayed_part(Path::new("-")), None);
    }
}

//! How much of a recording is replayed for what fixing its bottleneck would gain.

use crate::config::Config;
use holdup_diagnose::phases::Wanted;
use holdup_diagnose::{Thresholds, phases, replayed_part};
use holdup_passes::{Detail, Options};
use holdup_trace::Reader;

/// Which part of a trace is replayed; if nothing, why.
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

/// Read a trace for a verdict and for what fixing would gain; and if there will be no such figure,
/// why. `detail` is what else is wanted of it, and `whole` whether all is to be analysed where a
/// part is judged. Whoever has `asked` has all of what is judged replayed.
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
    // Code is looked for around the waits of all.
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

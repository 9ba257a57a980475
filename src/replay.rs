//! Decides how much of a recording is replayed to predict the gain from fixing its bottleneck.

use crate::code;
use crate::config::Config;
use crate::exit::Result;
use crate::profile::args::SymbolArgs;
use holdup_diagnose::phases::Wanted;
use holdup_diagnose::{Thresholds, phases, replayed_part};
use holdup_passes::{Detail, Observer, Options};
use holdup_profile::{Code, CodeObserver};
use holdup_trace::Reader;

/// The share of a trace that is replayed; if none, why.
fn part(config: &Config, options: &Options, asked: bool) -> std::result::Result<f64, &'static str> {
    if options.selection.cpus.is_some() {
        return Err("only some CPUs were selected, and a replay needs all CPUs");
    }
    match replayed_part(&config.trace) {
        _ if asked => Ok(1.0),
        Some(part) => Ok(part),
        None => Err("a trace of unknown length is replayed only with --gain"),
    }
}

/// What a verb wants besides the verdict.
pub(crate) struct Asked {
    /// Everything that is judged is replayed, not only a part of a large recording.
    pub(crate) gain: bool,
    /// What is kept about waits.
    pub(crate) detail: Detail,
    /// Everything is analysed although a part is judged.
    pub(crate) whole: bool,
}

/// A trace, read for a verdict and for the gain from a fix.
pub(crate) struct ForVerdict<'a> {
    pub(crate) judged: phases::Judged,
    /// The code around waits, if call chains were recorded.
    pub(crate) code: Option<Code<'a>>,
    /// If there is no gain, why.
    pub(crate) not_replayed: Option<String>,
}

/// Read a trace for a verdict.
pub(crate) fn read<'a>(
    config: &Config,
    reader: &'a dyn Reader,
    thresholds: &Thresholds,
    symbols: &SymbolArgs,
    asked: Asked,
) -> Result<ForVerdict<'a>> {
    let mut options = config.judged_options(reader)?;
    options.detail = options.detail.max(asked.detail);
    let part = part(config, &options, asked.gain);
    let wanted = Wanted { replay: part.ok(), whole: asked.whole };
    let mut observer = CodeObserver::new(reader.info());
    let observing = observer.as_mut().map(|o| o as &mut dyn Observer);
    let judged = phases::read_observed(reader, &options, thresholds, wanted, observing)?;
    config.must_match(judged.whole())?;
    let code = observer.map(|o| code::finish(o, reader, &judged.analysis, symbols)).transpose()?;
    Ok(ForVerdict { judged, code, not_replayed: part.err().map(str::to_owned) })
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

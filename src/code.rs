//! The code around waits, for recordings with call chains.

use crate::exit::Result;
use crate::places::places;
use crate::profile::args::SymbolArgs;
use holdup_attribution::{Attribution, analyze, analyze_observed};
use holdup_passes::{Analysis, Observer, Options};
use holdup_profile::{Code, CodeObserver};
use holdup_trace::Reader;

/// Analyse a trace; in the same reading, find the code around its waits. There is no code for a
/// trace without call chains.
pub(crate) fn analyze_with_code<'a>(
    reader: &'a dyn Reader,
    options: &Options,
    symbols: &SymbolArgs,
) -> Result<(Analysis, Option<Code<'a>>)> {
    let mut observer = CodeObserver::new(reader.info());
    let analysis = analyze_with(reader, options, observer.as_mut())?;
    let code = observer.map(|o| finish(o, reader, &analysis, symbols)).transpose()?;
    Ok((analysis, code))
}

/// Analyse a trace, with an observer if there is one: facts cost time.
pub(crate) fn analyze_with<O: Observer>(
    reader: &dyn Reader,
    options: &Options,
    observer: Option<&mut O>,
) -> Result<Analysis> {
    Ok(match observer {
        Some(observer) => analyze_observed(reader, options, observer)?,
        None => analyze(reader, options)?,
    })
}

/// The code that an observer of this analysis found.
pub(crate) fn finish<'a>(
    observer: CodeObserver,
    reader: &'a dyn Reader,
    analysis: &Analysis,
    symbols: &SymbolArgs,
) -> Result<Code<'a>> {
    let words = Attribution::from(analysis).object_words();
    Ok(observer.finish(reader.info(), analysis, &words, places(symbols)?))
}

//! The code around waits, for recordings with call chains.

use crate::exit::Result;
use crate::places::places;
use crate::profile::args::SymbolArgs;
use holdup_attribution::{Attribution, JUDGE};
use holdup_diagnose::phases::Judged;
use holdup_passes::Analysis;
use holdup_profile::Code;
use holdup_trace::Reader;

/// The code for the judged part of a trace; `None` for a trace without call chains, which is not
/// read again.
pub(crate) fn of<'a>(
    reader: &'a dyn Reader,
    judged: &Judged,
    symbols: &SymbolArgs,
) -> Result<Option<Code<'a>>> {
    read(reader, judged.whole(), &judged.analysis, symbols)
}

/// The code for a whole analysis.
pub(crate) fn of_all<'a>(
    reader: &'a dyn Reader,
    analysis: &Analysis,
    symbols: &SymbolArgs,
) -> Result<Option<Code<'a>>> {
    read(reader, analysis, analysis, symbols)
}

fn read<'a>(
    reader: &'a dyn Reader,
    whole: &Analysis,
    part: &Analysis,
    symbols: &SymbolArgs,
) -> Result<Option<Code<'a>>> {
    let places = places(symbols)?;
    if !reader.info().capabilities.stacks {
        return Ok(None);
    }
    let words = Attribution::from(whole).object_words();
    let span = (part.start_ns(), part.end_ns());
    Ok(Some(holdup_profile::code(reader, whole, span, &JUDGE, &words, places)?))
}

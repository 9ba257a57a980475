//! Where names of functions are looked up.

use crate::exit::Result;
use crate::profile::args::SymbolArgs;
use holdup_trace::ErrorKind;
use std::path::PathBuf;

/// Where to look for files with names of functions.
pub(crate) fn places(args: &SymbolArgs) -> Result<holdup_symbols::Options> {
    for path in args.symfs.iter().chain(&args.kallsyms) {
        // Otherwise a mistyped path would only show as missing names.
        path.metadata().map_err(|e| ErrorKind::from(e).in_file(path))?;
    }
    Ok(holdup_symbols::Options {
        symfs: args.symfs.clone(),
        kallsyms: args.kallsyms.clone(),
        home: std::env::var_os("HOME").map(PathBuf::from),
        off: args.no_symbols,
        no_inline: args.no_inline,
    })
}

//! `holdup whatif`: how well the replay matches the trace, where to be careful, the rows, and their
//! meaning.

use super::diagnosis::wrapped;
use super::{Page, TextOptions, width, write_table};
use crate::whatif::WhatifBody;
use std::io::{self, Write};

pub(super) fn write(
    body: &WhatifBody,
    page: &Page,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    if options.quiet {
        return write_table(&body.table, page, options, out);
    }
    let columns = width(options);
    for doubt in &body.head.doubts {
        wrapped(doubt, &options.paint().warning("WARNING: "), "  ", columns, out)?;
    }
    page.separate(out)?;
    wrapped(&body.account(), "", "  ", columns, out)?;
    write_table(&body.table, page, options, out)?;
    if !body.head.conclusions.is_empty() {
        page.separate(out)?;
    }
    for sentence in &body.head.conclusions {
        wrapped(sentence, "", "  ", columns, out)?;
    }
    Ok(())
}

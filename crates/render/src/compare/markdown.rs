//! Comparisons as Markdown, made for a comment on a pull request.

use super::report::Comparison;
use std::io::{self, Write};

/// Write `comparison` as Markdown.
pub(super) fn write(_comparison: &Comparison, _out: &mut dyn Write) -> io::Result<()> {
    Ok(())
}

//! Text in XML, and so in SVG: escapes names from the trace.

use crate::escape;
use std::fmt::Write;

/// Text in the form that XML 1.0 allows, in attributes and between tags. [`escape`] replaces
/// control characters; two more code points are no characters of XML.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::new();
    for c in escape(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(out, "{}", c.escape_unicode());
            }
            c => out.push(c),
        }
    }
    out
}

//! JSON inside an HTML script block.
//!
//! In a script block HTML only looks for `</script` and `<!--`, whatever the JSON means, so `<`
//! must not occur. `>` and `&` are escaped in case parts are copied elsewhere; Unicode's two line
//! separators once ended lines of JavaScript. In JSON all of these occur only in strings, where an
//! escape is equivalent.
//! escape says the same.

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// Write `value` so that it is safe in a script block.
pub(super) fn write<T: Serialize>(value: &T, out: &mut dyn Write) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Script)).map_err(io::Error::from)
}

struct Script;

impl Formatter for Script {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        w: &mut W,
        text: &str,
    ) -> io::Result<()> {
        let mut rest = text;
        while let Some(at) = rest.find(is_special) {
            let (before, special) = rest.split_at(at);
            w.write_all(before.as_bytes())?;
            let mut chars = special.chars();
            if let Some(c) = chars.next() {
                write!(w, "\\u{:04x}", u32::from(c))?;
            }
            rest = chars.as_str();
        }
        w.write_all(rest.as_bytes())
    }
}

fn is_special(c: char) -> bool {
    matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}')
}

//! Names come from the traced machine and may hold anything; a terminal must see only text.

use std::borrow::Cow;
use unicode_width::UnicodeWidthStr;

/// `text` with control characters, escape codes and characters that change the writing direction
/// spelled out (`\n`, `\u{1b}`).
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_unsafe(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Columns `text` takes on a terminal.
pub(crate) fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

/// `words` broken at blanks and after commas into lines of at most `limit` columns; the lines after
/// the first are indented.
pub(crate) fn wrap(words: &str, limit: Option<usize>, indent: usize) -> String {
    let Some(limit) = limit else { return words.to_owned() };
    let mut out = String::new();
    let mut used = 0;
    for word in words.split_inclusive([' ', ',']) {
        if used > indent && used + width(word.trim_end()) > limit {
            out.truncate(out.trim_end().len());
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            used = indent;
        }
        out.push_str(word);
        used += width(word);
    }
    out
}

/// A shell command on several lines, still fit for copying.
pub(crate) fn shell(command: &str, indent: &str) -> String {
    let next = format!(" \\\n{indent}  ");
    format!(
        "{indent}{}",
        escape(command)
            .replace(" -e ", &format!("{next}-e "))
            .replace(" -- ", &format!("{next}-- "))
            .replace(" && ", &format!(" &&{next}"))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_that_could_steer_it() {
        assert_eq!(escape("kworker/0:1-ev"), "kworker/0:1-ev");
        assert_eq!(escape("a\nb\x1b[31m\u{202e}\u{9b}2J"), "a\\nb\\u{1b}[31m\\u{202e}\\u{9b}2J");
        assert_eq!(escape("naïve 東京"), "naïve 東京");
        assert_eq!(width("東京"), 4);
    }

    #[test]
    fn lines_break_at_blanks() {
        assert_eq!(wrap("note: one two three", Some(14), 6), "note: one two\n      three");
        assert_eq!(wrap("note: one two three", None, 6), "note: one two three");
        assert_eq!(wrap("unbreakableword", Some(5), 2), "unbreakableword");
    }
}

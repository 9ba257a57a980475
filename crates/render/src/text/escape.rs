//! Escapes names: they come from the traced machine and may contain control sequences.

use std::borrow::Cow;
use unicode_width::UnicodeWidthStr;

/// `text` with control characters, escape codes and characters that change the writing direction
/// escaped (`\n`, `\u{1b}`).
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

/// Width of `text` on a terminal, in columns.
pub(crate) fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

/// `words` broken at blanks and after commas into lines of at most `limit` columns; the lines after
/// the first are indented.
pub fn wrap(words: &str, limit: Option<usize>, indent: usize) -> String {
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

/// A shell command on lines of at most `columns`, so that it can still be copied.
pub(crate) fn shell(command: &str, indent: &str, columns: usize) -> String {
    // A continued line ends with this.
    let columns = columns.saturating_sub(" \\".len());
    let next = format!(" \\\n{:1$}", "", width(indent) + 2);
    let mut out = indent.to_owned();
    let (mut used, mut before) = (width(indent), "");
    let command = escape(command);
    for (i, word) in words(&command).into_iter().enumerate() {
        // Each command and each group of events starts on a new line; and no line is too long, even
        // if names of events follow each other without an option before each.
        let begins = matches!(word, "-e" | "--") || before == "&&";
        if i > 0 && (begins || used + 1 + width(word) > columns) {
            out.push_str(&next);
            used = width(indent) + 2;
        } else if i > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += width(word);
        before = word;
    }
    out
}

/// The words of a command: blanks in single quotes do not separate words.
fn words(command: &str) -> Vec<&str> {
    let (mut words, mut from, mut quoted) = (Vec::new(), 0, false);
    for (at, c) in command.char_indices() {
        quoted ^= c == '\'';
        if c == ' ' && !quoted {
            words.push(&command[from..at]);
            from = at + 1;
        }
    }
    words.push(&command[from..]);
    words
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
    fn commands_break_at_groups_and_before_they_grow_too_long() {
        assert_eq!(
            shell("perf record -e a,b -e c -- sleep 1", "  ", 80),
            concat!("  perf record \\\n", "    -e a,b \\\n", "    -e c \\\n", "    -- sleep 1",)
        );
        let names = shell(&format!("perfetto{}", " sched/sched_switch".repeat(12)), "", 60);
        assert!(names.lines().all(|l| l.len() <= 60) && names.lines().count() > 3, "{names}");
        assert_eq!(names.matches("sched/sched_switch").count(), 12);
    }

    #[test]
    fn commands_do_not_break_in_quotes() {
        let path = format!("'{}'", "a -e b ".repeat(20));
        assert_eq!(shell(&format!("holdup waits {path}"), "", 80).matches(&path).count(), 1);
    }

    #[test]
    fn lines_break_at_blanks() {
        assert_eq!(wrap("note: one two three", Some(14), 6), "note: one two\n      three");
        assert_eq!(wrap("note: one two three", None, 6), "note: one two three");
        assert_eq!(wrap("unbreakableword", Some(5), 2), "unbreakableword");
    }
}

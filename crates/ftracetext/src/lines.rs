//! Where the lines of a text begin and end.

use std::ops::Range;

/// A longer line is not a line of a trace.
pub(crate) const MAX_LINE: usize = 1 << 20;

/// Call `each` with offset and bytes of every line that starts in `range`. Returns the number of
/// lines skipped because of their length.
pub(crate) fn lines(text: &[u8], range: Range<usize>, mut each: impl FnMut(usize, &[u8])) -> u64 {
    let mut too_long = 0;
    let mut at = range.start;
    // A line that starts before the range belongs to the previous range.
    if at > 0 && text[at - 1] != b'\n' {
        at += memchr::memchr(b'\n', &text[range.clone()]).map_or(range.len(), |n| n + 1);
    }
    while at < range.end {
        let end = match line_end(text, at) {
            Some(end) => end,
            None => {
                too_long += 1;
                match memchr::memchr(b'\n', &text[at..range.end]) {
                    Some(n) => {
                        at += n + 1;
                        continue;
                    }
                    None => break,
                }
            }
        };
        each(at, &text[at..end]);
        at = end + 1;
    }
    too_long
}

/// Where the line that starts at `at` ends; `None` if it is too long.
#[inline]
pub(crate) fn line_end(text: &[u8], at: usize) -> Option<usize> {
    let rest = &text[at..text.len().min(at + MAX_LINE)];
    match memchr::memchr(b'\n', rest) {
        Some(n) => Some(at + n),
        None => (rest.len() < MAX_LINE).then_some(text.len()),
    }
}

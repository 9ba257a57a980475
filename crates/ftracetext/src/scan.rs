//! Small scanners over bytes: numbers, words, `key=value` lists.

/// Whether `b` separates words.
#[inline(always)]
pub(crate) fn blank(b: u8) -> bool {
    b == b' ' || b == b'\t'
}

/// Without blanks at the front.
#[inline]
pub(crate) fn trim_start(mut s: &[u8]) -> &[u8] {
    while let [b, rest @ ..] = s
        && blank(*b)
    {
        s = rest;
    }
    s
}

/// Without blanks (and carriage return) at the end.
#[inline]
pub(crate) fn trim_end(mut s: &[u8]) -> &[u8] {
    while let [rest @ .., b] = s
        && (blank(*b) || *b == b'\r')
    {
        s = rest;
    }
    s
}

/// Without blanks at either end.
#[inline]
pub(crate) fn trim(s: &[u8]) -> &[u8] {
    trim_end(trim_start(s))
}

/// Up to the next blank.
#[inline]
pub(crate) fn word(s: &[u8]) -> &[u8] {
    let n = s.iter().position(|&b| blank(b)).unwrap_or(s.len());
    &s[..n]
}

/// The decimal number that fills all of `s`.
#[inline]
pub(crate) fn whole_dec(s: &[u8]) -> Option<u64> {
    match dec(s) {
        Some((n, len)) if len == s.len() => Some(n),
        _ => None,
    }
}

/// The decimal number at the front of `s`, and how many digits it has.
#[inline]
pub(crate) fn dec(s: &[u8]) -> Option<(u64, usize)> {
    let mut n = 0u64;
    let mut i = 0;
    while let Some(d) = s.get(i).map(|b| b.wrapping_sub(b'0'))
        && d < 10
    {
        n = if i < 18 { n * 10 + d as u64 } else { n.checked_mul(10)?.checked_add(d as u64)? };
        i += 1;
    }
    (i > 0).then_some((n, i))
}

/// The hexadecimal number at the front of `s` (no `0x`), and how many digits it has.
#[inline]
pub(crate) fn hex(s: &[u8]) -> Option<(u64, usize)> {
    let mut n = 0u64;
    let mut i = 0;
    while let Some(&b) = s.get(i) {
        let d = match b {
            b'0'..=b'9' => b - b'0',
            b'a'..=b'f' => b - b'a' + 10,
            b'A'..=b'F' => b - b'A' + 10,
            _ => break,
        };
        if n >> 60 != 0 {
            return None;
        }
        n = n << 4 | d as u64;
        i += 1;
    }
    (i > 0).then_some((n, i))
}

/// An integer as `%d`, `%u` or `0x%x` print it, in two's complement.
#[inline]
pub(crate) fn int(s: &[u8]) -> Option<u64> {
    match s {
        [b'0', b'x' | b'X', rest @ ..] => hex(rest).map(|h| h.0),
        [b'-', rest @ ..] => dec(rest).map(|d| d.0.wrapping_neg()),
        _ => dec(s).map(|d| d.0),
    }
}

/// A pointer: hexadecimal with or without `0x`, ended by anything but a letter, digit or `_`, so
/// that a symbol that happens to start with hex digits (`add_timer`) is not taken for one.
#[inline]
pub(crate) fn pointer(s: &[u8]) -> Option<(u64, usize)> {
    let skip = if s.starts_with(b"0x") { 2 } else { 0 };
    let (n, len) = hex(&s[skip..])?;
    let end = skip + len;
    match s.get(end) {
        Some(b) if b.is_ascii_alphanumeric() || *b == b'_' => None,
        _ => Some((n, end)),
    }
}

/// A cursor over `key=value` pairs.
///
/// Values may hold blanks and even `=`, so a string value ends where the *next known key* starts,
/// not at the next blank. Keys are looked for from the cursor on, and from the start again when
/// they are not there: the pairs normally come in the order the kernel prints them, and raw
/// dialects print them in the order of the fields.
pub(crate) struct Keys<'a> {
    s: &'a [u8],
    at: usize,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(s: &'a [u8]) -> Keys<'a> {
        Keys { s, at: 0 }
    }

    /// Move past the next `key` that starts a word.
    // Always inlined: with the key's length known, comparing it is one instruction, not a call.
    #[inline(always)]
    fn seek(&mut self, key: &[u8]) -> Option<usize> {
        // Nearly always the key is the next word.
        let mut at = self.at;
        while self.s.get(at) == Some(&b' ') {
            at += 1;
        }
        if !self.s.get(at..)?.starts_with(key) || at > 0 && is_name(self.s[at - 1]) {
            at = find_word(self.s, self.at, key).or_else(|| if self.at > 0 { find_word(self.s, 0, key) } else { None })?;
        }
        self.at = at + key.len();
        Some(self.at)
    }

    /// The text from behind `key` to the end.
    #[inline(always)]
    pub(crate) fn rest(&mut self, key: &[u8]) -> Option<&'a [u8]> {
        let at = self.seek(key)?;
        Some(&self.s[at..])
    }

    /// The integer behind `key`.
    #[inline(always)]
    pub(crate) fn int(&mut self, key: &[u8]) -> Option<u64> {
        let value = self.rest(key)?;
        // Leave the cursor behind the value: the next key follows.
        match dec(value) {
            Some((n, len)) if value.get(len).is_none_or(|&b| b != b'x') => {
                self.at += len;
                Some(n)
            }
            _ => int(value),
        }
    }

    /// The text between `key` and the last ` next` that starts a word; to the end if there is none.
    #[inline(always)]
    pub(crate) fn text(&mut self, key: &[u8], next: &[u8]) -> Option<&'a [u8]> {
        let start = self.seek(key)?;
        let mut end = self.s.len();
        let mut from = start;
        while let Some(n) = self.s.get(from..).and_then(|s| memchr::memchr(b' ', s)) {
            from += n + 1;
            if self.s[from..].starts_with(next) {
                end = from;
            }
        }
        self.at = end;
        Some(trim_end(&self.s[start..end]))
    }

    /// The text between `key` and the first ` next` that is a number followed by ` after`.
    #[inline(always)]
    pub(crate) fn text_before(&mut self, key: &[u8], next: &[u8], after: &[u8]) -> Option<&'a [u8]> {
        let start = self.seek(key)?;
        let mut from = start;
        while let Some(n) = self.s.get(from..).and_then(|s| s.iter().position(|&b| b == b' ')) {
            from += n + 1;
            if !self.s[from..].starts_with(next) {
                continue;
            }
            if behind_number(&self.s[from + next.len()..]).is_some_and(|s| s.starts_with(after)) {
                self.at = from;
                return Some(trim_end(&self.s[start..from]));
            }
        }
        None
    }
}

/// What follows the number at the front of `s`, and the blank behind it. The kernel's `fields`
/// option prints each number twice: `0x78 (120)`.
#[inline]
fn behind_number(s: &[u8]) -> Option<&[u8]> {
    let digits = s.strip_prefix(b"-").unwrap_or(s);
    let (_, n) = dec(digits)?;
    let rest = &digits[n..];
    if let Some(rest) = rest.strip_prefix(b"x") {
        let (_, n) = hex(rest)?;
        let rest = rest[n..].strip_prefix(b" ")?;
        return match rest.strip_prefix(b"(") {
            Some(inner) => inner[inner.iter().position(|&b| b == b')')? + 1..].strip_prefix(b" "),
            None => Some(rest),
        };
    }
    rest.strip_prefix(b" ")
}

/// Part of an identifier: a key behind one of these is the end of a longer key.
#[inline(always)]
fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// Where `key` starts a word in `s`, from `from` on.
pub(crate) fn find_word(s: &[u8], from: usize, key: &[u8]) -> Option<usize> {
    if s.get(from..)?.starts_with(key) && (from == 0 || !is_name(s[from - 1])) {
        return Some(from);
    }
    let mut at = from;
    loop {
        at += 1 + s.get(at..)?.iter().position(|&b| matches!(b, b' ' | b'(' | b'\t' | b'['))?;
        if s[at..].starts_with(key) {
            return Some(at);
        }
    }
}

/// `s` as text, for messages.
pub(crate) fn lossy(s: &[u8], max: usize) -> String {
    let shown = &s[..s.len().min(max)];
    let mut text = String::from_utf8_lossy(shown).escape_debug().to_string();
    if s.len() > max {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(int(b"-1 x"), Some(u64::MAX));
        assert_eq!(int(b"0xff,"), Some(255));
        assert_eq!(dec(b"99999999999999999999999"), None);
        assert_eq!(hex(b"fffffffffffffffff"), None);
        assert_eq!(pointer(b"add_timer"), None);
        assert_eq!(pointer(b"00ff: function"), Some((255, 4)));
        assert_eq!(whole_dec(b"12a"), None);
    }

    #[test]
    fn string_values_end_at_the_next_key() {
        let mut k = Keys::new(b"comm=a b pid=3 c pid=77 prio=120");
        assert_eq!(k.text(b"comm=", b"pid="), Some(&b"a b pid=3 c"[..]));
        assert_eq!(k.int(b"pid="), Some(77));
        assert_eq!(k.int(b"prio="), Some(120));
        assert_eq!(k.int(b"pid="), Some(3), "looks from the start again");
        assert_eq!(k.int(b"xpid="), None);
    }

    #[test]
    fn a_key_inside_a_comm_is_not_taken_for_the_key() {
        let mut k = Keys::new(b"prev_comm=a prev_pid=1 b prev_pid=7 prev_prio=120");
        assert_eq!(k.text_before(b"prev_comm=", b"prev_pid=", b"prev_prio="), Some(&b"a prev_pid=1 b"[..]));
        assert_eq!(k.int(b"prev_pid="), Some(7));
    }
}

//! Small scanners over bytes: numbers, words, `key=value` lists.
//!
//! Numbers, words and gaps differ in length from line to line, so a loop over their bytes ends with
//! a mispredicted branch nearly every time. The usual ones fit into 8 bytes and are read as one
//! word without a branch.

/// Whether `b` separates words.
#[inline(always)]
pub(crate) fn blank(b: u8) -> bool {
    b == b' ' || b == b'\t'
}

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x80 * ONES;

/// The first 8 bytes of `s` as a word, the first byte lowest.
#[inline(always)]
pub(crate) fn word8(s: &[u8]) -> Option<u64> {
    s.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// How many bytes of a word precede the first one whose top bit is set in `marks`.
#[inline(always)]
fn before_mark(marks: u64) -> usize {
    (marks & TOPS).trailing_zeros() as usize / 8
}

/// Top bit of each byte of `w` that equals `b`, and perhaps of bytes after the first such byte.
#[inline(always)]
fn equal8(w: u64, b: u8) -> u64 {
    let differs = w ^ (ONES * b as u64);
    differs.wrapping_sub(ONES) & !differs & TOPS
}

/// How many spaces are at the front of a word.
#[inline(always)]
pub(crate) fn spaces8(w: u64) -> usize {
    let other = w ^ (ONES * b' ' as u64);
    other.trailing_zeros() as usize / 8
}

/// The decimal number at the front of a word, and how many digits it has.
#[inline(always)]
pub(crate) fn digits8(w: u64) -> (u32, usize) {
    let digits = w ^ (ONES * b'0' as u64);
    // 10 and more carry into the top bit; this may spoil later bytes, but those no longer matter.
    let n = before_mark(digits.wrapping_add(ONES * 0x76) | digits);
    // Shift the digits to the end, with zeros before them; then join two bytes, two pairs, two
    // fours.
    let v = if n == 0 { 0 } else { digits << (64 - 8 * n) };
    let v = v.wrapping_mul(10).wrapping_add(v >> 8) & 0x00FF_00FF_00FF_00FF;
    let v = v.wrapping_mul(100).wrapping_add(v >> 16) & 0x0000_FFFF_0000_FFFF;
    (v.wrapping_mul(10_000).wrapping_add(v >> 32) as u32, n)
}

/// The hexadecimal number at the front of a word, and how many digits it has.
#[inline(always)]
fn hex8(w: u64) -> (u32, usize) {
    let digits = w ^ (ONES * b'0' as u64);
    let letters = (w | (ONES * 0x20)) ^ (ONES * 0x60);
    let no_digit = digits.wrapping_add(ONES * 0x76) | digits;
    // 'a' to 'f' are 1 to 6 now.
    let no_letter =
        letters.wrapping_add(ONES * 0x79) | !(letters | TOPS).wrapping_sub(ONES) | letters;
    let n = before_mark(no_digit & no_letter);
    let v = (w & (ONES * 0xF)) + ((w >> 6) & ONES) * 9;
    let v = if n == 0 { 0 } else { v << (64 - 8 * n) };
    let v = (v << 4 | v >> 8) & 0x00FF_00FF_00FF_00FF;
    let v = (v << 8 | v >> 16) & 0x0000_FFFF_0000_FFFF;
    ((v << 16 | v >> 32) as u32, n)
}

/// Offset of the first `b` in `s`; for short distances, where memchr costs more than it saves.
#[inline(always)]
pub(crate) fn near(s: &[u8], b: u8) -> Option<usize> {
    let mut at = 0;
    while let Some(w) = word8(s.get(at..)?) {
        match before_mark(equal8(w, b)) {
            8 => at += 8,
            n => return Some(at + n),
        }
    }
    s[at..].iter().position(|&c| c == b).map(|n| at + n)
}

/// Offset of the first blank in `s`; the length of `s` if there is none.
#[inline]
pub(crate) fn word_len(s: &[u8]) -> usize {
    // The names of events span two to four 8-byte words, unpredictably, but only one vector.
    memchr::memchr2(b' ', b'\t', s).unwrap_or(s.len())
}

/// `s` without leading spaces.
#[inline(always)]
pub(crate) fn aligned(s: &[u8; 16]) -> &[u8] {
    let other = u128::from_le_bytes(*s) ^ u128::from_le_bytes([b' '; 16]);
    &s[other.trailing_zeros() as usize / 8..]
}

/// `s` without leading blanks.
#[inline]
pub(crate) fn trim_start(mut s: &[u8]) -> &[u8] {
    while let Some(w) = word8(s) {
        let n = spaces8(w);
        s = &s[n..];
        if n < 8 {
            break;
        }
    }
    while let [b, rest @ ..] = s
        && blank(*b)
    {
        s = rest;
    }
    s
}

/// `s` without trailing blanks (and carriage return).
#[inline]
pub(crate) fn trim_end(mut s: &[u8]) -> &[u8] {
    while let [rest @ .., b] = s
        && (blank(*b) || *b == b'\r')
    {
        s = rest;
    }
    s
}

/// `s` without blanks at either end.
#[inline]
pub(crate) fn trim(s: &[u8]) -> &[u8] {
    trim_end(trim_start(s))
}

/// `s` up to the next blank.
#[inline]
pub(crate) fn word(s: &[u8]) -> &[u8] {
    &s[..word_len(s)]
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
    if let Some(w) = word8(s) {
        let (n, digits) = digits8(w);
        if digits < 8 {
            return (digits > 0).then_some((n as u64, digits));
        }
    }
    dec_slowly(s)
}

#[cold]
fn dec_slowly(s: &[u8]) -> Option<(u64, usize)> {
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
#[inline(always)]
pub(crate) fn hex(s: &[u8]) -> Option<(u64, usize)> {
    if let Some(w) = word8(s) {
        let (high, digits) = hex8(w);
        if digits < 8 {
            return (digits > 0).then_some((high as u64, digits));
        }
        if let Some(w) = word8(&s[8..]) {
            let (low, more) = hex8(w);
            if more < 8 {
                return Some(((high as u64) << (4 * more) | low as u64, 8 + more));
            }
        }
    }
    hex_slowly(s)
}

#[cold]
fn hex_slowly(s: &[u8]) -> Option<(u64, usize)> {
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
/// Values may contain blanks and even `=`, so a string value ends where the *next known key*
/// starts, not at the next blank. Keys are searched from the cursor on, and then from the start:
/// the pairs normally come in the order the kernel prints them, but raw dialects print them in the
/// order of the fields.
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
            at = find_word(self.s, self.at, key)
                .or_else(|| if self.at > 0 { find_word(self.s, 0, key) } else { None })?;
        }
        self.at = at + key.len();
        Some(self.at)
    }

    /// The text after `key`.
    #[inline(always)]
    pub(crate) fn rest(&mut self, key: &[u8]) -> Option<&'a [u8]> {
        let at = self.seek(key)?;
        Some(&self.s[at..])
    }

    /// The integer after `key`.
    #[inline(always)]
    pub(crate) fn int(&mut self, key: &[u8]) -> Option<u64> {
        let value = self.rest(key)?;
        // Leave the cursor after the value: the next key follows.
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
    pub(crate) fn text_before(
        &mut self,
        key: &[u8],
        next: &[u8],
        after: &[u8],
    ) -> Option<&'a [u8]> {
        let start = self.seek(key)?;
        let mut from = start;
        while let Some(n) = self.s.get(from..).and_then(|s| near(s, b' ')) {
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

/// The text after the number at the front of `s` and the following blank. The kernel's `fields`
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

/// Part of an identifier: a key preceded by such a byte is the end of a longer key.
#[inline(always)]
fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// The first offset from `from` on at which `key` starts a word in `s`.
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
    fn whole_words_give_what_loops_give() {
        let mut x = 1u64;
        for round in 0..200_000 {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Mostly digits and letters, with every other byte here and there.
            let bytes: Vec<u8> = (0..20)
                .map(|i| {
                    let r = (x.rotate_left(i * 7 + 3) >> 20) as u8;
                    if r < 40 {
                        (x >> 40) as u8
                    } else {
                        b"0123456789abcdefABCDEF 9019"[r as usize % 27]
                    }
                })
                .collect();
            let s = &bytes[..round % 21];
            assert_eq!(dec(s), dec_slowly(s), "{s:?}");
            assert_eq!(hex(s), hex_slowly(s), "{s:?}");
            assert_eq!(word_len(s), s.iter().position(|&b| blank(b)).unwrap_or(s.len()), "{s:?}");
            assert_eq!(near(s, b'9'), s.iter().position(|&b| b == b'9'), "{s:?}");
        }
        for b in 0..=255 {
            let s = [b; 9];
            assert_eq!((dec(&s), hex(&s)), (dec_slowly(&s), hex_slowly(&s)), "{b}");
            assert_eq!(trim_start(&s).len(), if blank(b) { 0 } else { 9 });
            assert_eq!(aligned(&[b; 16]).len(), if b == b' ' { 0 } else { 16 });
        }
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
        assert_eq!(
            k.text_before(b"prev_comm=", b"prev_pid=", b"prev_prio="),
            Some(&b"a prev_pid=1 b"[..])
        );
        assert_eq!(k.int(b"prev_pid="), Some(7));
    }
}

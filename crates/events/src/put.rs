//! The buffer into which lines are written: text, blanks and numbers, several of each per event.
//!
//! Everything short is stored as a whole array of fixed size, of which only the first bytes count:
//! the next piece overwrites the others. So the compiler makes one or two stores of each piece,
//! while a copy of the exact number of bytes would be a call and a loop. Numbers are formatted
//! eight digits at a time in one register, without a loop over the digits.

use crate::word::Word;

/// Collects lines.
pub(crate) struct Out {
    /// All of it is initialised; bytes after `len` have no meaning.
    bytes: Vec<u8>,
    len: usize,
}

/// An integer, split into its sign and absolute value.
pub(crate) trait Number {
    fn parts(self) -> (bool, u64);
}

macro_rules! numbers {
    ($($int:ty)*) => {$(
        impl Number for $int {
            #[inline(always)]
            #[allow(unused_comparisons, reason = "for signed and unsigned alike")]
            fn parts(self) -> (bool, u64) {
                if self < 0 { (true, (self as u64).wrapping_neg()) } else { (false, self as u64) }
            }
        }
    )*};
}

numbers!(u16 u32 u64 i16 i32 i64);

const BLANKS: [u8; 64] = [b' '; 64];
const EIGHT_DIGITS: u64 = 100_000_000;
const ASCII_ZEROS: u64 = 0x3030_3030_3030_3030;

impl Out {
    /// With capacity for `room` bytes before it has to grow.
    pub(crate) fn new(room: usize) -> Out {
        Out { bytes: vec![0; room], len: 0 }
    }

    /// All bytes written so far.
    pub(crate) fn written(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Forget what has been written.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Store `bytes`, of which the first `count` count.
    #[inline(always)]
    pub(crate) fn put<const N: usize>(&mut self, bytes: &[u8; N], count: usize) {
        debug_assert!(count <= N);
        match self.bytes.get_mut(self.len..).and_then(|room| room.first_chunk_mut()) {
            Some(room) => *room = *bytes,
            None => self.put_behind(bytes),
        }
        self.len += count;
    }

    /// As [`Out::put`], if there is no room.
    #[cold]
    #[inline(never)]
    fn put_behind(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if self.bytes.len() < end {
            self.bytes.resize(end.max(self.bytes.len() * 2), 0);
        }
        self.bytes[self.len..end].copy_from_slice(bytes);
    }

    /// Any number of bytes.
    #[inline(always)]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        match self.bytes.get_mut(self.len..end) {
            Some(room) => room.copy_from_slice(bytes),
            None => self.put_behind(bytes),
        }
        self.len = end;
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, byte: u8) {
        self.put(&[byte], 1);
    }

    /// Text, ideally a constant, whose length the compiler knows. See also [`Out::word`].
    #[inline(always)]
    pub(crate) fn str(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// A name.
    #[inline(always)]
    pub(crate) fn word(&mut self, word: &Word) {
        match word.short() {
            Some((head, len)) => self.put(head, len),
            None => self.bytes(word.text()),
        }
    }

    /// Decimal.
    #[inline(always)]
    pub(crate) fn int(&mut self, n: impl Number) {
        let (negative, size) = n.parts();
        if negative {
            self.push(b'-');
        }
        self.digits(size);
    }

    #[inline(always)]
    fn digits(&mut self, n: u64) {
        if n < EIGHT_DIGITS {
            let (text, len) = upto_eight(n);
            self.put(&text, len);
        } else {
            self.many_digits(n);
        }
    }

    /// A number with nine digits or more.
    #[inline(never)]
    fn many_digits(&mut self, n: u64) {
        self.digits(n / EIGHT_DIGITS);
        self.put(&eight(n % EIGHT_DIGITS), 8);
    }

    /// `0x` and hexadecimal digits.
    #[inline]
    pub(crate) fn hex(&mut self, n: u64) {
        let digits = (67 - (n | 1).leading_zeros()) / 4;
        // The first digit goes to the left end.
        let left = n << (64 - 4 * digits);
        self.put(b"0x", 2);
        self.put(&eight_nibbles((left >> 32) as u32), 8);
        self.put(&eight_nibbles(left as u32), 8);
        self.len -= 16 - digits as usize;
    }

    /// Hexadecimal where it helps: with `0x` only from ten on.
    #[inline(always)]
    pub(crate) fn short_hex(&mut self, n: u64) {
        if n < 10 { self.push(b'0' + n as u8) } else { self.hex(n) }
    }

    /// Right-aligned decimal. `width` should be a constant: if `n` is no wider, the next piece's
    /// place does not depend on `n`, and the processor need not wait for its digits.
    #[inline(always)]
    pub(crate) fn int_right(&mut self, n: u64, width: usize) {
        let narrow = width.min(8);
        if width > 0 && n < 10u64.pow(narrow as u32) {
            self.blanks(width - narrow);
            let text = u64::from_le_bytes(eight_right(n)) >> (8 * (8 - narrow));
            self.put(&text.to_le_bytes(), narrow);
        } else if n < EIGHT_DIGITS {
            let (text, len) = upto_eight(n);
            self.blanks(width.saturating_sub(len));
            self.put(&text, len);
        } else {
            let len = n.ilog10() as usize + 1;
            self.blanks(width.saturating_sub(len));
            self.many_digits(n);
        }
    }

    /// `n` divided by ten to the power of `PLACES`, right-aligned. `PLACES` is 1 to 9.
    #[inline(always)]
    pub(crate) fn decimal<const PLACES: usize>(&mut self, n: u64, width: usize) {
        const { assert!(PLACES >= 1 && PLACES <= 9) };
        let unit = 10u64.pow(PLACES as u32);
        self.int_right(n / unit, width.saturating_sub(PLACES + 1));
        let rest = n % unit;
        let mut text = [b'.'; 10];
        if PLACES == 9 {
            text[1] = b'0' + (rest / EIGHT_DIGITS) as u8;
            text[2..].copy_from_slice(&eight(rest % EIGHT_DIGITS));
        } else {
            let digits = u64::from_le_bytes(eight(rest)) >> (8 * (8 - PLACES));
            text[1..9].copy_from_slice(&digits.to_le_bytes());
        }
        self.put(&text, PLACES + 1);
    }

    /// Blanks up to `width` bytes from `start`; at least one.
    #[inline(always)]
    pub(crate) fn pad_to(&mut self, start: usize, width: usize) {
        let used = self.len - start;
        self.blanks(width.saturating_sub(used).max(1));
    }

    /// Blanks, 64 at most.
    #[inline(always)]
    pub(crate) fn blanks(&mut self, n: usize) {
        self.put(&BLANKS, n.min(BLANKS.len()));
    }

    /// Remove the blanks at the end.
    pub(crate) fn trim(&mut self) {
        self.len = self.written().iter().rposition(|&b| b != b' ').map_or(0, |i| i + 1);
    }
}

/// Digits of a number below 10^8, each in a byte, the first in the lowest: the number is halved
/// three times, every part in its own field of the register. The factors are reciprocals, exact for
/// all values that the fields can have.
#[inline(always)]
fn digits(n: u64) -> u64 {
    let fours = (n / 10_000) | ((n % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - tens * 10) << 8
}

/// All eight digits.
#[inline(always)]
fn eight(n: u64) -> [u8; 8] {
    (digits(n) | ASCII_ZEROS).to_le_bytes()
}

/// The digits without leading zeros, and their number.
#[inline(always)]
fn upto_eight(n: u64) -> ([u8; 8], usize) {
    let digits = digits(n);
    // 0 has one digit as well.
    let zeros = (digits | 1 << 56).trailing_zeros() / 8;
    (((digits | ASCII_ZEROS) >> (8 * zeros)).to_le_bytes(), 8 - zeros as usize)
}

/// The digits with blanks in place of leading zeros.
#[inline(always)]
fn eight_right(n: u64) -> [u8; 8] {
    let digits = digits(n);
    let first = (digits | 1 << 56).trailing_zeros() & !7;
    // A blank is 0x20.
    let blanks = (ASCII_ZEROS & 0x1010_1010_1010_1010) & !(u64::MAX << first);
    ((digits | ASCII_ZEROS) ^ blanks).to_le_bytes()
}

/// Eight hexadecimal digits: the nibbles are moved apart until each has a byte.
#[inline(always)]
fn eight_nibbles(n: u32) -> [u8; 8] {
    let mut x = u64::from(n);
    x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // From ten on, adding 6 carries into the next bit, and the letters begin 39 after the digits.
    let letters = ((x + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    (x + ASCII_ZEROS + letters * 39).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::Out;
    use crate::word::Word;

    fn text(write: impl FnOnce(&mut Out)) -> String {
        let mut out = Out::new(0);
        write(&mut out);
        String::from_utf8(out.written().to_vec()).unwrap()
    }

    /// Numbers on both sides of every power of the base, and with all kinds of digits between.
    fn many(base: u64) -> impl Iterator<Item = u64> {
        let powers = std::iter::successors(Some(1u64), move |n| n.checked_mul(base));
        let edges = powers.flat_map(move |p| [p - 1, p, p + 1, p.wrapping_mul(base - 1)]);
        let mixed = (0..20_000u64).map(|n| {
            let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            n >> (n % 64)
        });
        edges.chain(mixed).chain(0..20_000).chain([u64::MAX])
    }

    #[test]
    fn numbers_are_spelled_as_the_standard_library_spells_them() {
        for n in many(10) {
            assert_eq!(text(|v| v.int(n)), n.to_string());
            assert_eq!(text(|v| v.int(n as i64)), (n as i64).to_string());
            assert_eq!(text(|v| v.int(n as i32)), (n as i32).to_string());
            assert_eq!(text(|v| v.int(n as i16)), (n as i16).to_string());
            for width in [0, 1, 3, 8, 12] {
                assert_eq!(text(|v| v.int_right(n, width)), format!("{n:width$}"));
            }
            let decimal = |unit: u64, places| format!("{}.{:0places$}", n / unit, n % unit);
            let right = |width, text: String| format!("{text:>width$}");
            assert_eq!(text(|v| v.decimal::<3>(n, 12)), right(12, decimal(1000, 3)));
            assert_eq!(text(|v| v.decimal::<6>(n, 15)), right(15, decimal(1_000_000, 6)));
            assert_eq!(text(|v| v.decimal::<9>(n, 0)), decimal(1_000_000_000, 9));
        }
        for n in many(16) {
            assert_eq!(text(|v| v.hex(n)), format!("{n:#x}"));
        }
        assert_eq!(text(|v| v.int(i64::MIN)), i64::MIN.to_string());
        assert_eq!(text(|v| v.short_hex(9)), "9");
        assert_eq!(text(|v| v.short_hex(10)), "0xa");
    }

    #[test]
    fn pieces_follow_each_other_however_often_the_buffer_grows() {
        for room in [0, 1, 63, 64, 65, 1000] {
            let mut out = Out::new(room);
            let mut expected = String::new();
            for n in 0..200u64 {
                let name = "x".repeat(n as usize);
                let start = out.len();
                out.word(&Word::new(&name));
                out.pad_to(start, 40);
                out.int(n);
                out.str(", ");
                out.blanks(n as usize % 64);
                out.trim();
                out.push(b'\n');
                let blanks = " ".repeat(40usize.saturating_sub(name.len()).max(1));
                expected += &format!("{name}{blanks}{n},\n");
            }
            assert_eq!(String::from_utf8_lossy(out.written()), expected);
        }
    }
}

//! Numbers into a byte buffer, without a formatter's machinery: there are several per event.

/// Appends to a line.
pub(crate) trait Put {
    /// Text.
    fn str(&mut self, text: &str);
    /// Decimal.
    fn int(&mut self, n: impl itoa::Integer);
    /// `0x` and hexadecimal digits.
    fn hex(&mut self, n: u64);
    /// Hexadecimal where it helps: `0x` only from ten on.
    fn short_hex(&mut self, n: u64);
    /// Right-aligned decimal.
    fn int_right(&mut self, n: u64, width: usize);
    /// `n` divided by ten to the power of `places`, right-aligned.
    fn decimal(&mut self, n: u64, places: usize, width: usize);
    /// Blanks up to `width` bytes from `start`; at least one.
    fn pad_to(&mut self, start: usize, width: usize);
    /// Blanks.
    fn blanks(&mut self, n: usize);
}

impl Put for Vec<u8> {
    #[inline]
    fn str(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }

    #[inline]
    fn int(&mut self, n: impl itoa::Integer) {
        self.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
    }

    #[inline]
    fn hex(&mut self, n: u64) {
        let digits = ((67 - (n | 1).leading_zeros()) / 4) as usize;
        let mut text = [0; 18];
        text[..2].copy_from_slice(b"0x");
        for (i, c) in text[2..2 + digits].iter_mut().enumerate() {
            *c = b"0123456789abcdef"[(n >> (4 * (digits - 1 - i)) & 15) as usize];
        }
        self.extend_from_slice(&text[..2 + digits]);
    }

    #[inline]
    fn short_hex(&mut self, n: u64) {
        if n < 10 { self.push(b'0' + n as u8) } else { self.hex(n) }
    }

    #[inline]
    fn int_right(&mut self, n: u64, width: usize) {
        let mut buffer = itoa::Buffer::new();
        let text = buffer.format(n);
        self.blanks(width.saturating_sub(text.len()));
        self.extend_from_slice(text.as_bytes());
    }

    #[inline]
    fn decimal(&mut self, n: u64, places: usize, width: usize) {
        let unit = 10u64.pow(places as u32);
        if places == 0 {
            return self.int_right(n, width);
        }
        self.int_right(n / unit, width.saturating_sub(places + 1));
        self.push(b'.');
        let mut rest = n % unit;
        let mut digits = [b'0'; 9];
        for c in digits[..places].iter_mut().rev() {
            *c = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.extend_from_slice(&digits[..places]);
    }

    #[inline]
    fn pad_to(&mut self, start: usize, width: usize) {
        let used = self.len() - start;
        self.blanks(width.saturating_sub(used).max(1));
    }

    #[inline]
    fn blanks(&mut self, n: usize) {
        const BLANKS: [u8; 64] = [b' '; 64];
        self.extend_from_slice(&BLANKS[..n.min(64)]);
    }
}

#[cfg(test)]
mod tests {
    use super::Put;

    #[test]
    fn numbers() {
        let text = |f: fn(&mut Vec<u8>)| {
            let mut v = Vec::new();
            f(&mut v);
            String::from_utf8(v).unwrap()
        };
        assert_eq!(text(|v| v.hex(0)), "0x0");
        assert_eq!(text(|v| v.hex(0xff)), "0xff");
        assert_eq!(text(|v| v.hex(0x100)), "0x100");
        assert_eq!(text(|v| v.hex(u64::MAX)), "0xffffffffffffffff");
        assert_eq!(text(|v| v.short_hex(9)), "9");
        assert_eq!(text(|v| v.short_hex(10)), "0xa");
        assert_eq!(text(|v| v.decimal(1_002_003_004, 9, 15)), "    1.002003004");
        assert_eq!(text(|v| v.decimal(42, 3, 4)), "0.042");
        assert_eq!(text(|v| v.decimal(42, 0, 4)), "  42");
        assert_eq!(text(|v| v.int(-5i64)), "-5");
    }
}

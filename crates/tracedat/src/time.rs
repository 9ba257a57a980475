//! From the ring buffer's clock to the times trace-cmd prints.

use crate::guest::GuestClock;

/// Maps time stamps as the file's options ask for.
///
/// Order and arithmetic are trace-cmd's: a guest's time becomes its host's, a TSC is scaled, then
/// the offsets of the DATE and OFFSET options are added. Like trace-cmd, this ignores the offset
/// inside TSC2NSEC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeMap {
    /// Multiplier and shift of TSC2NSEC; multiplier 0 leaves the clock as it is.
    pub(crate) mult: u32,
    pub(crate) shift: u32,
    /// Nanoseconds added, modulo 2^64.
    pub(crate) offset: i64,
    /// Set for a CPU of a guest.
    pub(crate) guest: Option<GuestClock>,
}

impl TimeMap {
    /// One time stamp.
    #[inline(always)]
    pub(crate) fn apply(&self, raw: u64) -> u64 {
        let raw = match &self.guest {
            None => raw,
            Some(guest) => guest.apply(raw),
        };
        let scaled = if self.mult == 0 { raw } else { self.scale(raw) };
        scaled.wrapping_add_signed(self.offset)
    }

    fn scale(&self, raw: u64) -> u64 {
        ((raw as u128 * self.mult as u128) >> self.shift.min(127)) as u64
    }

    /// A number as C's strtoll(…, 0) reads it: `123`, `-5`, `0x1f`, `0xffffffffffff0000`.
    pub(crate) fn parse_offset(text: &str) -> Option<i64> {
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let value = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            Some(hex) => u64::from_str_radix(hex, 16).ok()?,
            None => digits.parse().ok()?,
        };
        // strtoll stops at the ends of its range.
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        Some(if negative { -value } else { value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_as_c_reads_them() {
        for (text, value) in [
            ("0x10\0", Some(16)),
            ("-42", Some(-42)),
            (" 7\n", Some(7)),
            ("", None),
            ("0xffffffffffffffff", Some(i64::MAX)),
        ] {
            assert_eq!(TimeMap::parse_offset(text), value, "{text:?}");
        }
    }

    #[test]
    fn scaling_does_not_overflow() {
        let t = TimeMap { mult: 1 << 31, shift: 32, offset: -1, guest: None };
        assert_eq!(t.apply(u64::MAX), u64::MAX / 2 - 1);
        assert_eq!(TimeMap::default().apply(5), 5);
        assert_eq!(TimeMap { mult: 3, shift: 200, offset: 0, guest: None }.apply(9), 0);
    }
}

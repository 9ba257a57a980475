//! Numbers as perf prints them, to be compared with integers without losing a digit.

/// A decimal number as printed: digits and how many of them follow the point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Printed {
    /// The digits, point left out.
    digits: i128,
    decimals: u32,
}

impl Printed {
    pub(crate) fn parse(text: &str) -> Option<Printed> {
        let text = text.trim();
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = format!("{whole}{fraction}").parse().ok()?;
        Some(Printed { digits, decimals: fraction.len() as u32 })
    }

    /// Whether this is how milliseconds are printed that are `ns` nanoseconds. What lies half-way
    /// between two printable numbers may have been rounded either way, and perf computes in
    /// floating point: one nanosecond more is allowed.
    pub(crate) fn is_ms(self, ns: f64) -> bool {
        let unit = self.unit(6);
        (ns - self.digits as f64 * unit).abs() <= unit / 2.0 + 1.0
    }

    /// Whether this is how milliseconds are printed that are `ns` nanoseconds, the rest cut off.
    pub(crate) fn is_ms_cut(self, ns: u64) -> bool {
        ns as i128 / self.unit(6) as i128 == self.digits
    }

    /// Whether this is how seconds are printed that are `ns` nanoseconds, the rest cut off.
    pub(crate) fn is_seconds_cut(self, ns: u64) -> bool {
        let unit = self.unit(9) as i128;
        ns as i128 / unit == self.digits
    }

    fn unit(self, exponent: u32) -> f64 {
        10f64.powi(exponent as i32 - self.decimals as i32)
    }
}

#[test]
fn printed_numbers_agree_with_what_rounds_to_them() {
    let p = Printed::parse(" 1516.198").unwrap();
    assert!(p.is_ms(1_516_198_499.0) && p.is_ms(1_516_197_500.0));
    assert!(!p.is_ms(1_516_198_502.0) && !p.is_ms(1_516_197_498.0));
    let s = Printed::parse("29.366304").unwrap();
    assert!(s.is_seconds_cut(29_366_304_999) && !s.is_seconds_cut(29_366_305_000));
    assert!(p.is_ms_cut(1_516_198_999) && !p.is_ms_cut(1_516_197_999));
    assert_eq!(Printed::parse("nan"), None);
}

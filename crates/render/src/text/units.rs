//! How text scales times and spells numbers.

use holdup_trace::Nanos;

/// The common unit of a column's durations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scale {
    Ns,
    Us,
    Ms,
    S,
}

impl Scale {
    /// The unit for a column whose largest value is `max`: the largest has at most five digits
    /// before the point, so that small values remain visible.
    pub(crate) fn of(max: Nanos) -> Scale {
        match max {
            0..10_000 => Scale::Ns,
            10_000..10_000_000 => Scale::Us,
            10_000_000..100_000_000_000 => Scale::Ms,
            _ => Scale::S,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Scale::Ns => "ns",
            Scale::Us => "us",
            Scale::Ms => "ms",
            Scale::S => "s",
        }
    }

    /// `ns` in this unit, three decimals.
    pub(crate) fn show(self, ns: Nanos) -> String {
        let unit: u64 = match self {
            Scale::Ns => return ns.to_string(),
            Scale::Us => 1_000,
            Scale::Ms => 1_000_000,
            Scale::S => 1_000_000_000,
        };
        let thousandths = (u128::from(ns) * 1000 + u128::from(unit) / 2) / u128::from(unit);
        format!("{}.{:03}", thousandths / 1000, thousandths % 1000)
    }
}

/// A duration on its own, with its unit.
pub(crate) fn duration(ns: Nanos) -> String {
    let scale = match ns {
        0..1_000 => Scale::Ns,
        1_000..1_000_000 => Scale::Us,
        1_000_000..1_000_000_000 => Scale::Ms,
        _ => Scale::S,
    };
    format!("{} {}", scale.show(ns), scale.name())
}

/// A time stamp as perf prints it: seconds, truncated to microseconds.
pub(crate) fn timestamp(ns: Nanos) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000)
}

/// `n` of something.
pub(crate) fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unit_keeps_large_and_small_legible() {
        assert_eq!((Scale::of(9_999), Scale::of(10_000)), (Scale::Ns, Scale::Us));
        assert_eq!((Scale::of(9_999_999), Scale::of(10_000_000)), (Scale::Us, Scale::Ms));
        assert_eq!((Scale::of(99_999_999_999), Scale::of(100_000_000_000)), (Scale::Ms, Scale::S));
        assert_eq!(Scale::Ms.show(1_499), "0.001");
        assert_eq!(Scale::Ms.show(1_500), "0.002");
        assert_eq!(Scale::S.show(u64::MAX), "18446744073.710");
        assert_eq!(duration(1_673_421_000), "1.673 s");
        assert_eq!(timestamp(9_211_166_999), "9.211166");
    }
}

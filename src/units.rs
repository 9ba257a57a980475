//! Numbers of the command line with a unit behind them: `10s`, `8M`.

use std::str::FromStr;

/// The number in `text`, and what its unit stands for: of the first unit that leaves a number when
/// it is taken away. The unit "" is for plain numbers.
pub(crate) fn scaled<N: FromStr, U: Copy>(text: &str, units: &[(&str, U)]) -> Option<(N, U)> {
    units.iter().find_map(|&(unit, scale)| Some((text.strip_suffix(unit)?.parse().ok()?, scale)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_stands_behind_its_number() {
        let units = [("s", 1), ("ms", 2), ("", 3)];
        assert_eq!(scaled("10s", &units), Some((10, 1)));
        // What is left of it without the `s` is no number.
        assert_eq!(scaled("10ms", &units), Some((10, 2)));
        assert_eq!(scaled("10", &units), Some((10, 3)));
        assert_eq!(scaled("1.5", &units), Some((1.5, 3)));
        for wrong in ["", "s", "10m", "s10"] {
            assert_eq!(scaled::<u32, _>(wrong, &units), None, "{wrong}");
        }
    }
}

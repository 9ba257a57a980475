//! Numbers of the command line: with a unit (`10s`, `8M`), and lists of CPUs.

use crate::exit::{Result, usage};
use std::str::FromStr;

/// The number in `text`, and the value of its unit: the first unit that leaves a number when it is
/// removed. The unit "" is for plain numbers.
pub(crate) fn scaled<N: FromStr, U: Copy>(text: &str, units: &[(&str, U)]) -> Option<(N, U)> {
    units.iter().find_map(|&(unit, scale)| Some((text.strip_suffix(unit)?.parse().ok()?, scale)))
}

/// Numbers of CPUs for `--cpus`, each once, the smallest first: `2,4,8` or `1-16`, at most `most`.
pub(crate) fn cpus(text: &str, most: u32) -> Result<Vec<u32>> {
    let wrong = || {
        usage(format!(
            "--cpus: '{text}' is not a list of numbers of CPUs: write 2,4,8 or 1-16, at most {most}"
        ))
    };
    let number =
        |text: &str| text.trim().parse().ok().filter(|n| (1..=most).contains(n)).ok_or_else(wrong);
    let mut list: Vec<u32> = Vec::new();
    for piece in text.split(',') {
        let (from, to) = piece.split_once('-').unwrap_or((piece, piece));
        let (from, to) = (number(from)?, number(to)?);
        if from > to {
            return Err(wrong());
        }
        list.extend(from..=to);
    }
    list.sort_unstable();
    list.dedup();
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_stands_behind_its_number() {
        let units = [("s", 1), ("ms", 2), ("", 3)];
        assert_eq!(scaled("10s", &units), Some((10, 1)));
        // Without the `s`, the rest is not a number.
        assert_eq!(scaled("10ms", &units), Some((10, 2)));
        assert_eq!(scaled("10", &units), Some((10, 3)));
        assert_eq!(scaled("1.5", &units), Some((1.5, 3)));
        for wrong in ["", "s", "10m", "s10"] {
            assert_eq!(scaled::<u32, _>(wrong, &units), None, "{wrong}");
        }
    }
    #[test]
    fn numbers_of_cpus_are_lists() {
        assert_eq!(cpus("8, 2,1-3", 8).unwrap(), [1, 2, 3, 8]);
        for wrong in ["", "0", "4-2", "9", "1-9", "x", "2,", "-1"] {
            assert!(cpus(wrong, 8).is_err(), "{wrong}");
        }
    }
}

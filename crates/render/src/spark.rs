//! Bars and sparklines of Unicode blocks.

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const PARTS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A sparkline, one block per value, scaled from the lowest to the highest; a blank for a missing
/// value.
pub(crate) fn line(values: &[Option<f64>]) -> String {
    let known = || values.iter().flatten().copied().filter(|v| v.is_finite());
    let (low, high) =
        known().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    of(values, low, high)
}

/// A sparkline scaled between two given values.
pub(crate) fn of(values: &[Option<f64>], low: f64, high: f64) -> String {
    let level = |v: f64| match high > low {
        true => LEVELS[(((v - low) / (high - low)) * 7.0).round().clamp(0.0, 7.0) as usize],
        false => LEVELS[3],
    };
    values.iter().map(|v| v.filter(|v| v.is_finite()).map_or(' ', level)).collect()
}

/// A bar of at most `columns`, for a fraction from 0 to 1.
pub(crate) fn bar(part: f64, columns: usize) -> String {
    let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (part * columns as f64 * 8.0).round() as usize;
    let mut bar: String = std::iter::repeat_n('█', eighths / 8).collect();
    if !eighths.is_multiple_of(8) {
        bar.push(PARTS[eighths % 8]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_goes_from_its_least_to_its_greatest() {
        assert_eq!(line(&[Some(1.0), None, Some(2.0), Some(1.5)]), "▁ █▅");
        assert_eq!(line(&[Some(7.0), Some(7.0)]), "▄▄");
        assert_eq!(line(&[None, Some(f64::NAN)]), "  ");
        assert_eq!(of(&[Some(0.0), Some(2.0), Some(4.0), Some(9.0)], 0.0, 4.0), "▁▅██");
    }

    #[test]
    fn a_bar_is_as_long_as_its_part() {
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(1.0 / 32.0, 4), "▏");
        assert_eq!((bar(0.0, 4), bar(9.0, 4)), (String::new(), "████".to_owned()));
        assert_eq!(bar(f64::NAN, 4), "");
    }
}

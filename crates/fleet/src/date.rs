//! Times since 1970 as dates, in UTC: the same trace belongs to the same day wherever it is judged.

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// `2026-11-23`.
pub(crate) fn date(ns: i64) -> String {
    let (year, month, day) = civil(ns.div_euclid(SECOND).div_euclid(DAY));
    format!("{year:04}-{month:02}-{day:02}")
}

/// `2026-11-23T02:26:02Z`.
pub(crate) fn time(ns: i64) -> String {
    let second = ns.div_euclid(SECOND).rem_euclid(DAY);
    let (hours, minutes) = (second / 3600, second / 60 % 60);
    format!("{}T{hours:02}:{minutes:02}:{:02}Z", date(ns), second % 60)
}

/// Year, month and day of a day since 1970-01-01, of the Gregorian calendar: H. Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn civil(day: i64) -> (i64, i64, i64) {
    // Years begin in March here, so that the odd day of February comes last.
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        // As `date -u -d @SECONDS` prints them.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (1_795_400_762, "2026-11-23T02:26:02Z"),
        ] {
            assert_eq!(time(seconds * SECOND), text);
            assert_eq!(date(seconds * SECOND), text[..10]);
        }
    }
}

//! Times since 1970 as dates, in UTC: a trace belongs to the same day wherever it is judged.

use chrono::{DateTime, SecondsFormat};

/// `2026-11-23`.
pub(crate) fn date(ns: i64) -> String {
    DateTime::from_timestamp_nanos(ns).date_naive().to_string()
}

/// `2026-11-23T02:26:02Z`.
pub(crate) fn time(ns: i64) -> String {
    DateTime::from_timestamp_nanos(ns).to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

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

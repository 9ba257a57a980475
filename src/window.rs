//! `--time A,B`: the part of a trace to look at.

use holdup_trace::Nanos;

/// One end of a window.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Edge {
    At(Nanos),
    /// Millionths of the trace's span.
    Part(u64),
}

/// A window as typed; percentages are resolved when the trace's span is known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Window {
    from: Option<Edge>,
    to: Option<Edge>,
}

impl Window {
    /// `A,B`, `A,`, `,B`, `A%,B%`, `A%-B%`.
    pub(crate) fn parse(text: &str) -> Result<Window, String> {
        let wrong = || {
            format!(
                "'{text}' is not a time window; write A,B in seconds as perf prints them (either \
                 may be empty) or 10%,20%"
            )
        };
        let (a, b) = text
            .split_once(',')
            .or_else(|| text.split_once('-').filter(|_| text.contains('%')))
            .ok_or_else(wrong)?;
        let edge = |t: &str| -> Result<Option<Edge>, String> {
            let t = t.trim();
            if t.is_empty() {
                return Ok(None);
            }
            match t.strip_suffix('%') {
                Some(p) => decimal(p, 4)
                    .filter(|&p| p <= 1_000_000)
                    .map(|p| Some(Edge::Part(p)))
                    .ok_or_else(wrong),
                None => decimal(t, 9).map(|ns| Some(Edge::At(ns))).ok_or_else(wrong),
            }
        };
        let window = Window { from: edge(a)?, to: edge(b)? };
        match (window.from, window.to) {
            (Some(Edge::At(a)), Some(Edge::At(b))) | (Some(Edge::Part(a)), Some(Edge::Part(b)))
                if a >= b =>
            {
                Err(format!("the time window '{text}' ends before it begins"))
            }
            _ => Ok(window),
        }
    }

    /// The window in times of the trace's clock. A window outside of the trace is an error.
    pub(crate) fn resolve(
        self,
        span: Option<(Nanos, Nanos)>,
    ) -> Result<(Option<Nanos>, Option<Nanos>), String> {
        let at = |edge| match (edge, span) {
            (Edge::At(ns), _) => Some(ns),
            (Edge::Part(p), Some((start, end))) => Some(
                start + (u128::from(end.saturating_sub(start)) * u128::from(p) / 1_000_000) as u64,
            ),
            (Edge::Part(_), None) => None,
        };
        let (from, to) = (self.from.and_then(at), self.to.and_then(at));
        if let Some((start, end)) = span
            && (from.is_some_and(|f| f > end) || to.is_some_and(|t| t < start))
        {
            let s = |ns: Nanos| format!("{}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000);
            return Err(format!(
                "the time window is outside the trace, which runs from {} to {}",
                s(start),
                s(end)
            ));
        }
        Ok((from, to))
    }
}

/// `text` x 10^`places` as an integer; further decimals are cut off.
fn decimal(text: &str, places: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || whole.len() + part.len() == 0 {
        return None;
    }
    format!("{whole}{part:0<places$.places$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_resolve_against_the_span() {
        let span = Some((1_000_000_000, 3_000_000_000));
        let resolve = |t: &str| Window::parse(t).unwrap().resolve(span).unwrap();
        assert_eq!(resolve("1.5,2.000000001"), (Some(1_500_000_000), Some(2_000_000_001)));
        assert_eq!(resolve(",2"), (None, Some(2_000_000_000)));
        assert_eq!(resolve("2,"), (Some(2_000_000_000), None));
        assert_eq!(resolve("10%,20%"), (Some(1_200_000_000), Some(1_400_000_000)));
        assert_eq!(resolve("10%-20.5%"), (Some(1_200_000_000), Some(1_410_000_000)));
        assert_eq!(resolve(","), (None, None));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in
            ["", "5", "a,b", "-1,2", "2,1", "1,1", "20%,10%", "101%,", "1.2.3,", ".,1", "10%"]
        {
            assert!(Window::parse(text).is_err(), "{text}");
        }
        let error = Window::parse("7,8")
            .unwrap()
            .resolve(Some((1_000_000_000, 3_000_000_000)))
            .unwrap_err();
        assert!(error.contains("1.000000 to 3.000000"), "{error}");
    }
}

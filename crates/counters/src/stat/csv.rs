//! Lines of `perf stat -x SEPARATOR`.
//!
//! ```text
//!  [time] [CPU, socket … [number of CPUs]] value unit event [variance] [group] run-time percent
//!  [metric metric-unit]
//! ```
//!
//! Nothing states which optional fields are present. They are recognised by the count, which is
//! followed by a unit and a name: a unit is never a number, and a name begins with a letter.

use super::{Line, Part, Row, nanos, number, value};
use crate::measurement::Value;

/// Separators that people use; perf accepts any text.
const SEPARATORS: [char; 4] = [',', ';', '\t', '|'];
/// Most fields before the count: time, place, number of CPUs, and one more.
const BEFORE: usize = 4;

/// Parse a line. The first line with a count determines the separator.
pub(super) fn row(line: &str, separator: &mut Option<char>) -> Line {
    if let Some(separator) = *separator {
        return split(line, separator);
    }
    for candidate in SEPARATORS {
        if let found @ Line::Row(_) = split(line, candidate) {
            *separator = Some(candidate);
            return found;
        }
    }
    Line::Other
}

fn split(line: &str, separator: char) -> Line {
    let fields: Vec<&str> = line.split(separator).map(str::trim).collect();
    let found = (0..BEFORE).find_map(|at| Some((at, count(&fields, at, separator)?)));
    let Some((at, (event, value, after))) = found else {
        // "Additional metrics may be printed with all earlier fields being empty."
        let empty = fields.iter().filter(|f| f.is_empty()).count();
        return if empty >= 4 { Line::Metric } else { Line::Other };
    };
    let Some((until_ns, part)) = before(&fields[..at]) else { return Line::Other };
    let rest = &fields[after.min(fields.len())..];
    let running = rest.iter().take(3).position(|f| is_time(f));
    let (running_pct, metric) = match running {
        Some(i) => (
            rest.get(i + 1).and_then(|f| number(f)),
            rest.get(i + 2)
                .and_then(|f| number(f))
                .zip(rest.get(i + 3).map(|&unit| unit.to_owned())),
        ),
        None => (None, None),
    };
    let value = match value {
        Ok(value) => Value::Counted { value, running_pct: running_pct.unwrap_or(100.0) },
        Err(why) => Value::Missing(why),
    };
    let unit = fields[at + 1].to_owned();
    Line::Row(Row { until_ns, part, event, value, unit, metric })
}

type Found = (String, Result<f64, crate::measurement::Missing>, usize);

/// The name, the count, and the index of the next field, if the count is field `at`.
fn count(fields: &[&str], at: usize, separator: char) -> Option<Found> {
    let value = value(fields.get(at)?)?;
    let unit = fields.get(at + 1)?;
    if number(unit).is_some() || unit.starts_with('<') || unit.len() > 16 {
        return None;
    }
    let mut event = (*fields.get(at + 2)?).to_owned();
    if !event.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let mut after = at + 3;
    // Rejoin a name that was split at a comma inside it.
    while event.matches('/').count() == 1 && !event.ends_with('/') {
        let Some(more) = fields.get(after) else { break };
        event.push(separator);
        event.push_str(more);
        after += 1;
    }
    Some((event, value, after))
}

/// Whether the field is the counter's running time in nanoseconds.
fn is_time(field: &str) -> bool {
    !field.is_empty() && field.bytes().all(|b| b.is_ascii_digit())
}

/// Time and place before the count.
fn before(fields: &[&str]) -> Option<(Option<u64>, Part)> {
    let (until, place) = match fields.split_first() {
        Some((first, rest)) => match number(first) {
            Some(seconds) => (Some(nanos(seconds)?), rest),
            None => (None, fields),
        },
        None => (None, fields),
    };
    let part = match place.first() {
        None => Part::All,
        Some(name) if is_place(name) => Part::Place((*name).to_owned()),
        Some(name) => Part::Group((*name).to_owned()),
    };
    Some((until, part))
}

/// `CPU0`, `S0`, `S0-D0-C1`, `N0`: not `bash-4711`.
fn is_place(name: &str) -> bool {
    name.split('-').all(|part| {
        let digits = part.trim_start_matches("CPU").trim_start_matches(['S', 'D', 'L', 'C', 'N']);
        digits.len() < part.len()
            && !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Missing;

    fn read(line: &str) -> Row {
        match row(line, &mut None) {
            Line::Row(row) => row,
            _ => panic!("no count: {line}"),
        }
    }

    #[test]
    fn optional_fields_are_told_apart() {
        let r = read("0.60,msec,task-clock,602743,100.00,0.472,CPUs utilized");
        assert_eq!((r.until_ns, &r.part, r.event.as_str()), (None, &Part::All, "task-clock"));
        assert_eq!(r.metric, Some((0.472, "CPUs utilized".to_owned())));
        let r = read("     0.061205227,S0-D0-C1,1,<not supported>,,cycles,0,100.00,,");
        assert_eq!(r.until_ns, Some(61_205_227));
        assert_eq!(r.part, Part::Place("S0-D0-C1".to_owned()));
        assert_eq!(r.value, Value::Missing(Missing::NotSupported));
        let r = read("     1.001,123,,cycles,1000,50.00,,");
        assert_eq!(r.value, Value::Counted { value: 123.0, running_pct: 50.0 });
        let r = read("CPU0;250;;page-faults;51317334;100.00;4.872;K/sec");
        assert_eq!(r.part, Part::Place("CPU0".to_owned()));
        let r = read("bash-19609,<not counted>,msec,task-clock,0,100.00,,");
        assert_eq!(r.part, Part::Group("bash-19609".to_owned()));
    }

    #[test]
    fn a_variance_is_no_run_time_and_commas_in_a_name_are_not_the_separator() {
        let r = read("0.46,msec,task-clock,6.34%,458652,90.00,0.213,CPUs utilized");
        assert_eq!(r.value, Value::Counted { value: 0.46, running_pct: 90.0 });
        let r = read("5,,cpu/event=0x3c,umask=0x0,name=x/u,458652,25.00,,");
        assert_eq!(r.event, "cpu/event=0x3c,umask=0x0,name=x/u");
        assert_eq!(r.value, Value::Counted { value: 5.0, running_pct: 25.0 });
    }

    #[test]
    fn messages_of_the_program_are_no_counts() {
        for line in ["PID/TID switch overriding SYSTEM", "hello, world, 3", "1,2,3,4,5"] {
            assert!(matches!(row(line, &mut None), Line::Other), "{line}");
        }
        assert!(matches!(row(",,,,,,1.36,insn per cycle", &mut Some(',')), Line::Metric));
    }
}

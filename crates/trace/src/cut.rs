//! What a trace that `holdup cut` wrote says about itself.

use crate::{Cpu, Nanos};

/// Which part of a longer trace a file is. Its events of other times are there only to show the
/// state at the beginning of the part, and what the recorder was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// First and last time of the part; `None` for the whole trace.
    pub time: Option<(Nanos, Nanos)>,
    /// First and last time of the longer trace.
    pub whole: Option<(Nanos, Nanos)>,
    /// The CPUs chosen; `None` for all.
    pub cpus: Option<Vec<Cpu>>,
    /// Names were replaced.
    pub anonymous: bool,
}

/// Beginning of the command.
const COMMAND: &str = "holdup cut";

impl Cut {
    /// The command that makes this part; every format has a place for such a text.
    pub fn words(&self) -> String {
        let s = |ns: Nanos| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let mut words = COMMAND.to_owned();
        if let Some((from, to)) = self.time {
            words += &format!(" --time {},{}", s(from), s(to));
        }
        if let Some(cpus) = &self.cpus {
            let list: Vec<String> = cpus.iter().map(Cpu::to_string).collect();
            words += &format!(" --cpu {}", list.join(","));
        }
        if self.anonymous {
            words += " --anonymize";
        }
        if let Some((from, to)) = self.whole {
            words += &format!(" # of {},{}", s(from), s(to));
        }
        words
    }

    /// The last such command in `text`.
    pub fn find(text: &str) -> Option<Cut> {
        let rest = &text[text.rfind(COMMAND)? + COMMAND.len()..];
        let mut cut = Cut::default();
        let mut words = rest.split_ascii_whitespace();
        while let Some(word) = words.next() {
            match word {
                "--time" => cut.time = Some(times(words.next()?)?),
                "of" => cut.whole = Some(times(words.next()?)?),
                "#" => {}
                "--cpu" => cut.cpus = Some(Cpu::parse_list(words.next()?)?),
                "--anonymize" => cut.anonymous = true,
                _ => break,
            }
        }
        (cut != Cut::default()).then_some(cut)
    }

    /// First and last time of the part, or of the whole trace.
    pub fn times(&self) -> (Nanos, Nanos) {
        self.time.unwrap_or((0, Nanos::MAX))
    }
}

/// Parses `A,B`, which must ascend.
fn times(text: &str) -> Option<(Nanos, Nanos)> {
    let (from, to) = text.split_once(',')?;
    let (from, to) = (nanos(from)?, nanos(to)?);
    (from <= to).then_some((from, to))
}

/// Seconds with nine decimals.
fn nanos(text: &str) -> Option<Nanos> {
    let (whole, part) = text.split_once('.')?;
    let part = part.get(..9).filter(|p| p.bytes().all(|b| b.is_ascii_digit()))?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for cpus in [None, Some(vec![Cpu(0), Cpu(2)])] {
            let (time, whole) = (Some((1_000_000_002, 30_000_000_000)), Some((0, 40_000_000_000)));
            let cut = Cut { time, whole, cpus, anonymous: true };
            let text = format!("perf record -a | {}", cut.words());
            assert_eq!(Cut::find(&text), Some(cut.clone()));
            let again = Cut { time: Some((5_000_000_000, 5_000_000_000)), ..cut };
            assert_eq!(Cut::find(&format!("{text} | {}", again.words())), Some(again));
        }
        let cpu = Cut { cpus: Some(vec![Cpu(3)]), ..Cut::default() };
        assert_eq!(cpu.words(), "holdup cut --cpu 3");
        assert_eq!(Cut::find("\"holdup cut --cpu 3 more"), Some(cpu));
    }

    #[test]
    fn what_is_no_such_command_says_nothing() {
        for text in [
            "",
            "holdup cut",
            "holdup cut --time ",
            "holdup cut --time 1,2",
            "holdup cut --time 2.000000000,1.000000000 --anonymize",
            "holdup cut --time 1.00000000x,2.000000000",
            "holdup cut --time 99999999999999999999.000000000,2.000000000",
            "holdup cut --time 1.000000000,2.000000000 --cpu x",
        ] {
            assert_eq!(Cut::find(text), None, "{text}");
        }
    }
}

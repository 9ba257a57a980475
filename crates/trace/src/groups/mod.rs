//! Control groups: their names, and what a recorder read about them.

mod name;

pub use name::{Container, GroupName};

use crate::Nanos;
use std::fmt::Write;

/// The first line of the text.
const MAGIC: &str = "holdup control groups 1";

/// What a recorder read about the machine's control groups at its start and at its end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Groups {
    /// Ids and names of containers, in order.
    pub containers: Vec<(String, String)>,
    /// The groups that have a quota of CPU time.
    pub limits: Vec<GroupLimit>,
}

/// The quota of a control group, and how often the kernel says it was used up (`cpu.max` and
/// `cpu.stat`; in version 1 of control groups `cpu.cfs_quota_us` and similar files).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupLimit {
    /// The group, a path below the mount.
    pub path: String,
    /// CPU time that its threads may take in each period.
    pub quota_ns: Nanos,
    /// The period.
    pub period_ns: Nanos,
    /// Between the recorder's two readings: periods in which a thread of the group wanted to run.
    pub periods: u64,
    /// Those of the periods in which the quota was used up (`nr_throttled`).
    pub throttled_periods: u64,
    /// How long its run queues were stopped, summed over the CPUs (`throttled_usec`).
    pub throttled_ns: Nanos,
}

impl GroupLimit {
    /// Number of CPUs that the quota allows.
    pub fn cpus(&self) -> f64 {
        self.quota_ns as f64 / self.period_ns.max(1) as f64
    }
}

impl Groups {
    /// The name of the container with this id.
    pub fn container(&self, id: &str) -> Option<&str> {
        self.containers.iter().find(|c| c.0 == id).map(|c| c.1.as_str())
    }

    /// Whether one of `patterns` matches the group `path` ([`GroupName::fits`]). The path is empty
    /// for a thread whose group is not known; no pattern matches that.
    pub fn fits_any(&self, patterns: &[String], path: &str) -> bool {
        let name = GroupName::of(path);
        !path.is_empty() && patterns.iter().any(|pattern| name.fits(pattern, path, self))
    }

    /// The limit that a thread in the group `path` meets first: the group's own, or that of its
    /// nearest ancestor.
    pub fn limit(&self, path: &str) -> Option<&GroupLimit> {
        let mut path = path.trim_end_matches('/');
        while !path.is_empty() {
            if let Some(limit) = self.limits.iter().find(|l| l.path == path) {
                return Some(limit);
            }
            path = path.rsplit_once('/').map_or("", |(around, _)| around);
        }
        None
    }

    /// As text, which [`Groups::parse`] reads.
    pub fn text(&self) -> String {
        let line = |name: &str| -> String {
            name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
        };
        let mut text = format!("{MAGIC}\n");
        for (id, name) in &self.containers {
            let _ = writeln!(text, "container {} {}", line(id), line(name));
        }
        for l in &self.limits {
            let _ = writeln!(
                text,
                "limit {} {} {} {} {} {}",
                l.quota_ns,
                l.period_ns,
                l.periods,
                l.throttled_periods,
                l.throttled_ns,
                line(&l.path)
            );
        }
        text
    }

    /// Parses the text of [`Groups::text`]. Damaged lines and lines of unknown kinds are skipped;
    /// `None` if it is not such a text.
    pub fn parse(text: &[u8]) -> Option<Groups> {
        let text = String::from_utf8_lossy(text);
        let mut lines = text.lines();
        if lines.next()? != MAGIC {
            return None;
        }
        let mut groups = Groups::default();
        for line in lines {
            match line.split_once(' ') {
                Some(("container", rest)) => groups.containers.extend(container(rest)),
                Some(("limit", rest)) => groups.limits.extend(limit(rest)),
                _ => {}
            }
        }
        Some(groups)
    }
}

fn container(text: &str) -> Option<(String, String)> {
    let (id, name) = text.split_once(' ')?;
    Some((id.to_owned(), name.to_owned()))
}

fn limit(text: &str) -> Option<GroupLimit> {
    let mut words = text.splitn(6, ' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (quota_ns, period_ns) = (number()?, number()?);
    let (periods, throttled_periods, throttled_ns) = (number()?, number()?, number()?);
    let path = words.next()?.to_owned();
    Some(GroupLimit { path, quota_ns, period_ns, periods, throttled_periods, throttled_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(path: &str, quota_ns: Nanos) -> GroupLimit {
        GroupLimit {
            path: path.to_owned(),
            quota_ns,
            period_ns: 100_000_000,
            periods: 20,
            throttled_periods: 7,
            throttled_ns: 123_456_000,
        }
    }

    #[test]
    fn the_text_is_read_as_it_was_written() {
        let groups = Groups {
            containers: vec![("01ab".to_owned(), "a web".to_owned())],
            limits: vec![limit("/a b/c.service", 50_000_000), limit("/d", 20_000_000)],
        };
        assert_eq!(Groups::parse(groups.text().as_bytes()), Some(groups));
        assert_eq!(Groups::parse(b"something else"), None);
    }

    #[test]
    fn damaged_lines_tell_nothing() {
        let text = "holdup control groups 1\nlimit 1 2 3\ncontainer x\nmoon\nlimit 1 2 3 4 x /p\n";
        assert_eq!(Groups::parse(text.as_bytes()), Some(Groups::default()));
    }

    #[test]
    fn the_nearest_limit_around_a_group_is_the_one_it_meets_first() {
        let limits = vec![limit("/a.slice", 2), limit("/a.slice/b.service", 1)];
        let groups = Groups { containers: Vec::new(), limits };
        let quota = |path| Some(groups.limit(path)?.quota_ns);
        assert_eq!(quota("/a.slice/b.service/worker"), Some(1));
        assert_eq!(quota("/a.slice/c.service"), Some(2));
        assert_eq!((quota("/a.slice2"), quota("/")), (None, None));
    }
}

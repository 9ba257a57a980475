//! Dumps of `/proc/lock_stat`, versions 0.3 and 0.4 (kernels built with `CONFIG_LOCK_STAT`).
//!
//! A dump is not a trace: it has sums per lock class since the last reset, and no times. Two dumps
//! make an interval: [`LockStat::since`]. The rows are those of the traces' lock tables
//! ([`LockRow`]), so that every view shows them.
//!
//! ```text
//! lock_stat version 0.4
//! ------------------------
//!      class name    con-bounces  contentions  waittime-min … -avg  acq-bounces … holdtime-avg
//! ------------------------
//!     &mm->mmap_lock-W:      159          476          1.69 …
//!     &mm->mmap_lock-R:       68          100          6.97 …
//!     ----------------
//!       &mm->mmap_lock       238  [<000000008d37ca7f>] vm_mmap_pgoff+0x6c/0x190   who waited
//!     ----------------
//!       &mm->mmap_lock       183  [<000000008d37ca7f>] vm_mmap_pgoff+0x6c/0x190   who held it then
//! ```
//!
//! Version 0.3 has no `-avg` columns. Times are microseconds with two decimals.

use holdup_passes::{LockBy, LockRow, percent};
use std::collections::BTreeMap;

/// The first words of a dump.
const MAGIC: &[u8] = b"lock_stat version ";

/// Whether a file that begins with `head` is a dump.
pub fn sniff(head: &[u8]) -> bool {
    head.trim_ascii_start().starts_with(MAGIC)
}

/// Why a dump cannot be parsed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// It does not begin like a dump.
    #[error("not a dump of /proc/lock_stat")]
    NotLockStat,
    /// A version this crate has not seen.
    #[error("lock_stat version {0} is not supported; 0.3 and 0.4 are")]
    Version(String),
    /// A line that cannot be parsed.
    #[error("line {line}: {text:?} is not a line of lock_stat")]
    Line {
        /// Line number.
        line: usize,
        /// Text of the line.
        text: String,
    },
}

/// Number, minimum, maximum and sum of times, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Number.
    pub count: u64,
    /// Shortest; `None` if not known for the interval.
    pub min_ns: Option<u64>,
    /// Longest; `None` if not known for the interval.
    pub max_ns: Option<u64>,
    /// Sum.
    pub total_ns: u64,
}

/// A place in the kernel that waited, or held the lock while others did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// `vm_mmap_pgoff+0x6c/0x190`, or the address.
    pub caller: String,
    /// Number of contentions.
    pub count: u64,
}

/// One line: a lock class, or its readers or writers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Name, with `-R` or `-W` at its end if the class distinguishes readers and writers.
    pub name: String,
    /// Waits for a lock last held on another CPU.
    pub con_bounces: u64,
    /// Waits.
    pub wait: Times,
    /// Acquisitions of a lock last held on another CPU.
    pub acq_bounces: u64,
    /// Hold times, counted at the releases.
    pub hold: Times,
    /// Where waits began; at most four, for readers and writers together, at the first of the two.
    pub waiters: Vec<Point>,
    /// Where the lock had been taken that others waited for.
    pub holders: Vec<Point>,
}

/// A dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockStat {
    /// `0.3` or `0.4`.
    pub version: String,
    /// In the order of the dump: most waits first.
    pub classes: Vec<Class>,
}

/// Microseconds with decimals as nanoseconds.
fn us(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 3 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let part: u64 = format!("{part:0<3}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(part)
}

impl LockStat {
    /// Read a dump.
    ///
    /// # Errors
    /// If it is not a dump, or its version or a line is unknown.
    pub fn parse(text: &[u8]) -> Result<LockStat, Error> {
        let text = String::from_utf8_lossy(text);
        let mut lines = text.lines().enumerate().skip_while(|(_, l)| l.trim().is_empty());
        let (_, first) = lines.next().ok_or(Error::NotLockStat)?;
        let version =
            first.trim().strip_prefix("lock_stat version ").ok_or(Error::NotLockStat)?.trim();
        let averages = match version {
            "0.3" => false,
            "0.4" => true,
            other => return Err(Error::Version(other.to_owned())),
        };
        let mut stat = LockStat { version: version.to_owned(), classes: Vec::new() };
        // Classes named since the last line of dots; lines of dashes seen since.
        let (mut first_of_group, mut rules) = (0, 0);
        for (i, raw) in lines {
            let line = raw.trim();
            let wrong = || Error::Line { line: i + 1, text: line.chars().take(120).collect() };
            if line.is_empty() || line.starts_with("class name") || line.starts_with("*WARNING*") {
                continue;
            }
            if line.bytes().all(|b| b == b'.') {
                (first_of_group, rules) = (stat.classes.len(), 0);
                continue;
            }
            if line.bytes().all(|b| b == b'-') {
                rules += 1;
                continue;
            }
            if let Some((left, right)) = line.split_once("[<") {
                // A class name may contain the words of a contention point, but no `[<`.
                let count = left
                    .split_whitespace()
                    .next_back()
                    .and_then(|n| n.parse().ok())
                    .ok_or_else(wrong)?;
                let (address, caller) = right.split_once(">]").ok_or_else(wrong)?;
                let caller = if caller.trim().is_empty() {
                    format!("0x{}", address.trim())
                } else {
                    caller.trim().to_owned()
                };
                let class = stat
                    .classes
                    .get_mut(first_of_group..)
                    .and_then(|c| c.first_mut())
                    .ok_or_else(wrong)?;
                if rules < 2 { &mut class.waiters } else { &mut class.holders }
                    .push(Point { caller, count });
                continue;
            }
            let class = class(line, averages).ok_or_else(wrong)?;
            if rules > 0 {
                // Classes without contention points follow each other without a line of dots.
                (first_of_group, rules) = (stat.classes.len(), 0);
            }
            if stat.classes.len() > first_of_group
                && !same_class(&stat.classes[first_of_group].name, &class.name)
            {
                first_of_group = stat.classes.len();
            }
            stat.classes.push(class);
        }
        Ok(stat)
    }

    /// What happened since `before`. Sums are differences. Minimum and maximum are known only if
    /// the class is new or they are new records. `None` if a sum fell: the counters were reset in
    /// between, and this dump alone covers the interval.
    pub fn since(&self, before: &LockStat) -> Option<LockStat> {
        // A name cut off at 39 characters may stand for several classes: pair them in order.
        let mut seen: BTreeMap<&str, Vec<&Class>> = BTreeMap::new();
        for c in &before.classes {
            seen.entry(&c.name).or_default().push(c);
        }
        let mut classes = Vec::new();
        for c in &self.classes {
            let before = seen
                .get_mut(c.name.as_str())
                .and_then(|list| if list.is_empty() { None } else { Some(list.remove(0)) });
            let c = match before {
                Some(b) => c.minus(b)?,
                None => c.clone(),
            };
            if c.wait.count + c.hold.count > 0 {
                classes.push(c);
            }
        }
        Some(LockStat { version: self.version.clone(), classes })
    }

    /// The lock table. Callers only have a number of contentions; a dump has no other groupings.
    pub fn rows(&self, by: LockBy) -> Option<Vec<LockRow>> {
        match by {
            LockBy::Lock | LockBy::Class => {
                let all = self.classes.iter().map(|c| c.wait.total_ns).sum();
                Some(self.classes.iter().map(|c| c.row(all)).collect())
            }
            LockBy::Caller => {
                let mut callers: BTreeMap<&str, u64> = BTreeMap::new();
                for p in self.classes.iter().flat_map(|c| &c.waiters) {
                    *callers.entry(&p.caller).or_default() += p.count;
                }
                let row = |(caller, count): (&str, u64)| LockRow {
                    lock_type: Some(None),
                    caller: Some(Some(caller.to_owned())),
                    contended: Some(count),
                    ..LockRow::default()
                };
                Some(callers.into_iter().map(row).collect())
            }
            LockBy::Type | LockBy::Task => None,
        }
    }
}

/// Parses `NAME: 10 or 12 numbers`.
fn class(line: &str, averages: bool) -> Option<Class> {
    let (name, numbers) = line.rsplit_once(':')?;
    let n: Vec<&str> = numbers.split_whitespace().collect();
    let times = |at: usize, count: &str| -> Option<Times> {
        let count = count.parse().ok()?;
        let known = |text: &str| us(text).map(|ns| (count > 0).then_some(ns));
        Some(Times {
            count,
            min_ns: known(n[at])?,
            max_ns: known(n[at + 1])?,
            total_ns: us(n[at + 2])?,
        })
    };
    let half = if averages { 6 } else { 5 };
    if n.len() != 2 * half {
        return None;
    }
    Some(Class {
        name: name.trim().to_owned(),
        con_bounces: n[0].parse().ok()?,
        wait: times(2, n[1])?,
        acq_bounces: n[half].parse().ok()?,
        hold: times(half + 2, n[half + 1])?,
        waiters: Vec::new(),
        holders: Vec::new(),
    })
}

/// `X-R` and `X-W` are one class.
fn same_class(a: &str, b: &str) -> bool {
    let bare =
        |n: &str| n.strip_suffix("-R").or_else(|| n.strip_suffix("-W")).unwrap_or(n).to_owned();
    bare(a) == bare(b)
}

impl Times {
    fn minus(self, before: Times) -> Option<Times> {
        let count = self.count.checked_sub(before.count)?;
        // Only a new record is known to come from the time between the dumps.
        let fresh = before.count == 0;
        Some(Times {
            count,
            min_ns: self
                .min_ns
                .filter(|&ns| count > 0 && (fresh || before.min_ns.is_none_or(|b| ns < b))),
            max_ns: self
                .max_ns
                .filter(|&ns| count > 0 && (fresh || before.max_ns.is_none_or(|b| ns > b))),
            total_ns: self.total_ns.checked_sub(before.total_ns)?,
        })
    }

    fn avg_ns(self) -> Option<u64> {
        self.total_ns.checked_div(self.count)
    }
}

fn points_minus(after: &[Point], before: &[Point]) -> Vec<Point> {
    let old = |caller: &str| before.iter().find(|p| p.caller == caller).map_or(0, |p| p.count);
    after
        .iter()
        .map(|p| Point { caller: p.caller.clone(), count: p.count.saturating_sub(old(&p.caller)) })
        .filter(|p| p.count > 0)
        .collect()
}

impl Class {
    fn minus(&self, before: &Class) -> Option<Class> {
        Some(Class {
            name: self.name.clone(),
            con_bounces: self.con_bounces.checked_sub(before.con_bounces)?,
            wait: self.wait.minus(before.wait)?,
            acq_bounces: self.acq_bounces.checked_sub(before.acq_bounces)?,
            hold: self.hold.minus(before.hold)?,
            waiters: points_minus(&self.waiters, &before.waiters),
            holders: points_minus(&self.holders, &before.holders),
        })
    }

    fn row(&self, all_wait_ns: u64) -> LockRow {
        LockRow {
            address: Some(None),
            name: Some(Some(self.name.clone())),
            likely: Some(None),
            lock_type: Some(None),
            contended: Some(self.wait.count),
            wait_total_ns: Some(self.wait.total_ns),
            wait_min_ns: self.wait.min_ns,
            wait_avg_ns: self.wait.avg_ns(),
            wait_max_ns: self.wait.max_ns,
            pct_wait: Some(percent(self.wait.total_ns, all_wait_ns)),
            acquired: Some(self.hold.count),
            miss_rate: (self.hold.count > 0).then(|| {
                (self.wait.count as f64 * 1000.0 / self.hold.count as f64).round() / 1000.0
            }),
            hold_total_ns: Some(self.hold.total_ns),
            hold_min_ns: self.hold.min_ns,
            hold_avg_ns: self.hold.avg_ns(),
            hold_max_ns: self.hold.max_ns,
            block_pct: (self.hold.count > 0).then(|| percent(self.wait.count, self.hold.count)),
            con_bounces: Some(self.con_bounces),
            acq_bounces: Some(self.acq_bounces),
            ..LockRow::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: &str = include_str!("dumps/v4.txt");
    const V3: &str = include_str!("dumps/v3.txt");

    #[test]
    fn both_versions_are_read() {
        let stat = LockStat::parse(V4.as_bytes()).unwrap();
        assert_eq!(
            stat.classes.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(),
            ["&mm->mmap_lock-W", "&mm->mmap_lock-R", "(wq_completion)a: b"]
        );
        let w = &stat.classes[0];
        assert_eq!(
            w.wait,
            Times {
                count: 476,
                min_ns: Some(1690),
                max_ns: Some(33_470_360),
                total_ns: 1_013_275_020
            }
        );
        assert_eq!((w.con_bounces, w.acq_bounces, w.hold.count), (159, 208, 795));
        assert_eq!((w.waiters.len(), w.holders.len()), (2, 1));
        let rows = stat.rows(LockBy::Class).unwrap();
        assert_eq!((rows[0].wait_avg_ns, rows[0].block_pct), (Some(2_128_729), Some(59.874)));
        assert_eq!(rows[2].wait_min_ns, None);

        let old = LockStat::parse(V3.as_bytes()).unwrap();
        assert_eq!(
            old.classes[0].hold,
            Times { count: 10, min_ns: Some(100), max_ns: Some(9500), total_ns: 20_000 }
        );
        let callers = old.rows(LockBy::Caller).unwrap();
        assert_eq!(
            (callers[0].caller.clone().flatten().as_deref(), callers[0].contended),
            (Some("do_unlinkat+0x10/0x20"), Some(3))
        );
        assert_eq!(callers[0].wait_total_ns, None);
    }

    #[test]
    fn a_pair_is_the_difference() {
        let before = LockStat::parse(V3.as_bytes()).unwrap();
        let mut after = before.clone();
        after.classes[0].wait =
            Times { count: 5, min_ns: Some(1000), max_ns: Some(700_000), total_ns: 1_400_500 };
        let diff = after.since(&before).unwrap();
        // The maximum is new; the minimum may be old.
        assert_eq!(
            diff.classes[0].wait,
            Times { count: 2, min_ns: None, max_ns: Some(700_000), total_ns: 800_000 }
        );
        assert_eq!(before.since(&after), None, "reset in between");
    }

    #[test]
    fn strangers_are_refused() {
        assert_eq!(LockStat::parse(b"hello"), Err(Error::NotLockStat));
        assert_eq!(LockStat::parse(b"lock_stat version 0.5\n"), Err(Error::Version("0.5".into())));
        let broken = LockStat::parse(b"lock_stat version 0.4\n foo: 1 2 3\n");
        assert_eq!(broken, Err(Error::Line { line: 2, text: "foo: 1 2 3".into() }));
    }
}

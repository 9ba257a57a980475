//! Quotas of CPU time, and how often they were used up.

use super::{Mounts, all};
use holdup_trace::GroupLimit;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The limit of every group that has one, by path, with the kernel's counts so far.
pub(super) fn read(mounts: &Mounts) -> BTreeMap<String, GroupLimit> {
    let Some((mount, second)) = &mounts.cpu else { return BTreeMap::new() };
    let limit = |(path, folder): (String, std::path::PathBuf)| {
        let (quota_ns, period_ns) = if *second { max(&folder) } else { cfs_quota(&folder) }?;
        let stat = fs::read_to_string(folder.join("cpu.stat")).unwrap_or_default();
        let counted = |key: &str| -> Option<u64> {
            stat.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
        };
        // Nanoseconds in the first version, microseconds in the second.
        let stopped = counted("throttled_time ")
            .or_else(|| Some(counted("throttled_usec ")?.saturating_mul(1000)));
        let limit = GroupLimit {
            path: path.clone(),
            quota_ns,
            period_ns,
            periods: counted("nr_periods ").unwrap_or(0),
            throttled_periods: counted("nr_throttled ").unwrap_or(0),
            throttled_ns: stopped.unwrap_or(0),
        };
        Some((path, limit))
    };
    all(mount).into_iter().filter_map(limit).collect()
}

/// The counts between two readings of one group.
pub(super) fn since(now: GroupLimit, then: &GroupLimit) -> GroupLimit {
    GroupLimit {
        periods: now.periods.saturating_sub(then.periods),
        throttled_periods: now.throttled_periods.saturating_sub(then.throttled_periods),
        throttled_ns: now.throttled_ns.saturating_sub(then.throttled_ns),
        ..now
    }
}

/// `50000 100000` of `cpu.max`: quota and period in microseconds, returned in nanoseconds. `max`
/// means no quota.
fn max(folder: &Path) -> Option<(u64, u64)> {
    let text = fs::read_to_string(folder.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    in_ns(quota, period)
}

/// The same for version 1, where -1 means no quota.
fn cfs_quota(folder: &Path) -> Option<(u64, u64)> {
    let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
    in_ns(text("cpu.cfs_quota_us")?.trim(), text("cpu.cfs_period_us")?.trim())
}

fn in_ns(quota: &str, period: &str) -> Option<(u64, u64)> {
    let ns = |text: &str| text.parse::<u64>().ok()?.checked_mul(1000);
    Some((ns(quota)?, ns(period)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().join("a.service");
        fs::create_dir(&group).unwrap();
        for (name, text) in files {
            fs::write(group.join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn both_versions_say_the_same_in_other_words() {
        let second = group(&[
            ("cpu.max", "50000 100000\n"),
            (
                "cpu.stat",
                "usage_usec 9\nnr_periods 20\nnr_throttled 7\nthrottled_usec 1234\nnr_bursts 0\n",
            ),
        ]);
        let first = group(&[
            ("cpu.cfs_quota_us", "50000\n"),
            ("cpu.cfs_period_us", "100000\n"),
            ("cpu.stat", "nr_periods 20\nnr_throttled 7\nthrottled_time 1234000\n"),
        ]);
        let read = |folder: &tempfile::TempDir, second| {
            let cpu = Some((folder.path().to_owned(), second));
            read(&Mounts { perf: None, cpu })
        };
        let limits = read(&second, true);
        assert_eq!(limits, read(&first, false));
        let limit = &limits["/a.service"];
        assert_eq!((limit.quota_ns, limit.period_ns), (50_000_000, 100_000_000));
        let counted = (limit.periods, limit.throttled_periods, limit.throttled_ns);
        assert_eq!(counted, (20, 7, 1_234_000));
        let then = GroupLimit { periods: 15, throttled_periods: 6, ..limit.clone() };
        let since = since(limit.clone(), &then);
        assert_eq!((since.periods, since.throttled_periods, since.throttled_ns), (5, 1, 0));
    }

    #[test]
    fn a_group_without_a_quota_has_no_limit() {
        for files in [
            &[("cpu.max", "max 100000\n"), ("cpu.stat", "nr_periods 0\n")][..],
            &[("cpu.stat", "usage_usec 0\n")],
            &[],
        ] {
            let cpu = Some((group(files).path().to_owned(), true));
            assert!(read(&Mounts { perf: None, cpu }).is_empty());
        }
        let none = group(&[("cpu.cfs_quota_us", "-1\n"), ("cpu.cfs_period_us", "100000\n")]);
        let cpu = Some((none.path().to_owned(), false));
        assert!(read(&Mounts { perf: None, cpu }).is_empty());
    }
}

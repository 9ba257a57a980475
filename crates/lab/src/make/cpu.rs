//! Work that needs only CPUs: with enough of them, too few, or a quota.

use super::{calls, culprit, plain};
use crate::needs::groups;
use crate::site::{Error, Made, Site, Tried, Worker};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Threads that compute.
fn computing(site: &Site, role: &str, number: usize, culprits: Vec<Vec<String>>) -> Made {
    let work = site.get("work");
    let worker = |i: usize| {
        Worker::new(format!("{role}-{i}"), move |clock, tally| {
            while !clock.over() {
                clock.think(work, tally);
                tally.units += 1;
            }
            Ok(())
        })
    };
    Made::threads((0..number).map(worker).collect(), culprits)
}

/// Threads that compute independently.
pub(crate) fn compute(site: &Site) -> Result<Made, Error> {
    Ok(computing(site, "compute", site.workers(), Vec::new()))
}

/// More computing threads than CPUs.
pub(crate) fn overload(site: &Site) -> Result<Made, Error> {
    let number = site.workers() * site.count("each");
    Ok(computing(site, "over", number, vec![culprit(&["over-"])]))
}

/// The first CPU that this process may use, alone.
pub(crate) fn first_cpu() -> io::Result<CpuSet> {
    let all = sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    if let Some(first) = (0..CpuSet::MAX_CPU).find(|&cpu| all.is_set(cpu)) {
        one.set(first);
    }
    Ok(one)
}

/// Threads that compute, all bound to one CPU.
pub(crate) fn affinity(site: &Site) -> Result<Made, Error> {
    let (work, bound) = (site.get("work"), site.get("bound") > 0);
    let worker = |i: usize| {
        Worker::new(format!("bound-{i}"), move |clock, tally| {
            if bound {
                sched_setaffinity(None, &first_cpu()?)?;
            }
            while !clock.over() {
                clock.think(work, tally);
                tally.units += 1;
            }
            Ok(())
        })
    };
    Ok(Made::threads((0..site.workers()).map(worker).collect(), vec![culprit(&["bound-"])]))
}

/// Threads that work and sleep.
pub(crate) fn naps(site: &Site) -> Result<Made, Error> {
    let (work, nap) = (site.get("work"), Duration::from_nanos(site.get("nap")));
    let worker = |i: usize| {
        Worker::new(format!("nap-{i}"), move |clock, tally| {
            while !clock.over() {
                clock.think(work, tally);
                thread::sleep(nap);
                tally.units += 1;
            }
            Ok(())
        })
    };
    Ok(Made::threads((0..site.workers()).map(worker).collect(), Vec::new()))
}

/// System calls that share nothing.
pub(crate) fn kernel_path(site: &Site) -> Result<Made, Error> {
    plain(site, Vec::new())
}

pub(crate) fn kernel_path_worker(site: &Site, index: usize) -> Result<Worker, Error> {
    let think = site.get("think");
    Ok(Worker::new(format!("path-{index}"), move |clock, tally| {
        calls(clock, tally, think, || fs::metadata("/proc/self").map(|_| ()))
    }))
}

/// Prefix of the lab's control groups, before a number.
const GROUP: &str = "holdup-lab";

/// A control group that this process is in until the end of the run.
struct Group {
    path: PathBuf,
    /// Where the process was before.
    before: PathBuf,
}

impl Group {
    /// Create and join a group with `quota` of CPU time per `period`, both in microseconds.
    fn join(quota: u64, period: u64) -> Result<Group, Error> {
        let none = || Error::Impossible("no control group can be made".to_owned());
        let (base, second) = groups().ok_or_else(none)?;
        let path = base.join(format!("{GROUP}-{}", std::process::id()));
        fs::create_dir(&path).tried("a control group")?;
        let group = Group { path, before: base.join(own_group(second).trim_start_matches('/')) };
        let set = |file: &str, text: String| {
            let path = group.path.join(file);
            fs::write(&path, text).tried(path.display().to_string())
        };
        if second {
            set("cpu.max", format!("{quota} {period}"))?;
        } else {
            set("cpu.cfs_period_us", period.to_string())?;
            set("cpu.cfs_quota_us", quota.to_string())?;
        }
        set("cgroup.procs", std::process::id().to_string())?;
        Ok(group)
    }
}

/// The group that this process is in, relative to the mount point of its hierarchy.
fn own_group(second: bool) -> String {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let this = match second {
            true => controllers.is_empty(),
            false => controllers.split(',').any(|one| one == "cpu"),
        };
        this.then(|| path.to_owned())
    });
    path.unwrap_or_default()
}

impl Drop for Group {
    fn drop(&mut self) {
        let back = self.before.join("cgroup.procs");
        let gone = fs::write(&back, std::process::id().to_string())
            .and_then(|()| fs::remove_dir(&self.path));
        if let Err(e) = gone {
            eprintln!("holdup: {} could not be left: {e}", self.path.display());
        }
    }
}

/// Threads that compute under a quota.
pub(crate) fn quota(site: &Site) -> Result<Made, Error> {
    let (share, period) = (site.get("share"), site.get("period") / 1000);
    // The group, or its program if the recording does not show which threads are in which group.
    let culprits = vec![culprit(&["cgroup", GROUP]), culprit(&["program"])];
    let mut made = computing(site, "quota", site.workers(), culprits);
    if share > 0 {
        let quota = period * crate::cpus() * share / 100;
        // The kernel accepts no smaller values.
        made.keep = Some(Box::new(Group::join(quota.max(1000), period.max(1000))?));
    }
    Ok(made)
}

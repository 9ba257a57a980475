//! The command line of `holdup whatif`, and the changes it requests, before a trace is read.

use crate::cli::{CommonArgs, EntriesArgs};
use crate::exit::{Result, usage};
use crate::units;
use clap::{Args, ValueEnum};
use holdup_replay::{FACTORS, LockChange, MAX_CPUS, PARTS};

/// Interrupts can only be spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IrqChange {
    /// Over all CPUs, in equal shares
    Spread,
}

/// Devices can only be taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceChange {
    /// They answer at once
    None,
}

/// Threads can only be let loose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AffinityChange {
    /// Every thread may run on every CPU
    None,
}

/// Quotas can only be lifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum QuotaChange {
    /// No control group runs out of CPU time
    None,
}

/// Work can only be dealt evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorkChange {
    /// Threads that wait for each other in rounds have equal amounts of work
    Even,
}

#[derive(Debug, Args)]
pub(crate) struct WhatifArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    #[command(flatten)]
    pub(crate) entries: EntriesArgs,
    /// The machine has this many CPUs: 16, or several numbers to compare, such as 2,4,8 or 1-4
    #[arg(long, value_name = "LIST", help_heading = "Changes")]
    pub(crate) cpus: Option<String>,
    /// The lock is held for half as long (hold*0.5), is split into four locks (split:4), or never
    /// makes a thread wait (none); or its holder never sleeps (awake), or always has a CPU (first).
    /// OBJ is a name as this verb shows it, a part of a name, or an address
    #[arg(long, value_name = "OBJ=CHANGE", help_heading = "Changes")]
    pub(crate) lock: Vec<String>,
    /// N threads share the work of thread TID. TID is a number, or a name that only one thread has
    #[arg(long, value_name = "TID=split:N", help_heading = "Changes")]
    pub(crate) server: Vec<String>,
    /// Interrupts take the same share of every CPU
    #[arg(long, value_enum, value_name = "CHANGE", help_heading = "Changes")]
    pub(crate) irq: Option<IrqChange>,
    /// The thread runs FACTOR times as fast: 4711*1.5
    #[arg(long, value_name = "TID*FACTOR", help_heading = "Changes")]
    pub(crate) speed: Vec<String>,
    /// The system call takes FACTOR times the CPU time that it took in the trace, in all threads:
    /// write*0.5
    #[arg(long, value_name = "NAME*FACTOR", help_heading = "Changes")]
    pub(crate) syscall: Vec<String>,
    /// Disks and other devices answer at once
    #[arg(long, value_enum, value_name = "CHANGE", help_heading = "Changes")]
    pub(crate) devices: Option<DeviceChange>,
    /// Every thread may run on every CPU
    #[arg(long, value_enum, value_name = "CHANGE", help_heading = "Changes")]
    pub(crate) affinity: Option<AffinityChange>,
    /// No control group runs out of the CPU time that its quota allows
    #[arg(long, value_enum, value_name = "CHANGE", help_heading = "Changes")]
    pub(crate) quota: Option<QuotaChange>,
    /// Threads that wait for each other in rounds have equal amounts of work
    #[arg(long, value_enum, value_name = "CHANGE", help_heading = "Changes")]
    pub(crate) work: Option<WorkChange>,
    /// Rank all fixes by what each one alone would gain, the largest gain first; this is the
    /// default without a change
    #[arg(
        long, help_heading = "Changes",
        conflicts_with_all = [
            "cpus", "lock", "server", "irq", "speed", "syscall", "devices", "affinity", "quota",
            "work"
        ]
    )]
    pub(crate) rank: bool,
}

/// A change as typed; names are resolved when the trace is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Asked {
    Lock { object: String, how: LockChange },
    Split { thread: String, parts: u32 },
    SpreadIrqs,
    Speed { thread: String, times: f64 },
    Calls { name: String, factor: f64 },
    NoDevices,
    AnyCpu,
    NoQuota,
    Deal,
}

impl WhatifArgs {
    /// The changes, except for the number of CPUs.
    pub(super) fn changes(&self) -> Result<Vec<Asked>> {
        let mut changes = Vec::new();
        for text in &self.lock {
            changes.push(lock(text)?);
        }
        for text in &self.server {
            changes.push(server(text)?);
        }
        changes.extend(self.irq.map(|IrqChange::Spread| Asked::SpreadIrqs));
        for text in &self.speed {
            let (thread, times) = times("--speed", text, "TID*FACTOR, such as 4711*1.5")?;
            changes.push(Asked::Speed { thread, times });
        }
        for text in &self.syscall {
            let (name, factor) = times("--syscall", text, "NAME*FACTOR, such as write*0.5")?;
            changes.push(Asked::Calls { name, factor });
        }
        changes.extend(self.devices.map(|DeviceChange::None| Asked::NoDevices));
        changes.extend(self.affinity.map(|AffinityChange::None| Asked::AnyCpu));
        changes.extend(self.quota.map(|QuotaChange::None| Asked::NoQuota));
        changes.extend(self.work.map(|WorkChange::Even| Asked::Deal));
        Ok(changes)
    }

    /// The numbers of CPUs, the smallest first.
    pub(super) fn numbers_of_cpus(&self) -> Result<Vec<u32>> {
        self.cpus.as_deref().map_or(Ok(Vec::new()), |text| units::cpus(text, MAX_CPUS))
    }
}

fn factor(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|f| FACTORS.contains(f))
}

fn parts(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|n| PARTS.contains(n))
}

/// `OBJ=hold*0.5`, `OBJ=split:4`, `OBJ=awake`, `OBJ=first`, `OBJ=none`. A name may contain `=`, a
/// change may not.
fn lock(text: &str) -> Result<Asked> {
    let change = |how: &str| match how.trim() {
        "none" => Some(LockChange::None),
        "awake" => Some(LockChange::Awake),
        "first" => Some(LockChange::First),
        how => match (how.strip_prefix("hold*"), how.strip_prefix("split:")) {
            (Some(by), _) => factor(by).map(LockChange::Hold),
            (_, Some(count)) => parts(count).map(LockChange::Split),
            _ => None,
        },
    };
    let parsed = text.rsplit_once('=').and_then(|(name, how)| Some((name.trim(), change(how)?)));
    match parsed {
        Some((name, how)) if !name.is_empty() => Ok(Asked::Lock { object: name.to_owned(), how }),
        _ => Err(usage(format!(
            "--lock: '{text}': write OBJ=hold*0.5 (a factor from {} to {}), OBJ=split:4 ({} to {} \
             locks), OBJ=awake, OBJ=first or OBJ=none",
            FACTORS.start(),
            FACTORS.end(),
            PARTS.start(),
            PARTS.end()
        ))),
    }
}

fn server(text: &str) -> Result<Asked> {
    let parsed = text.rsplit_once('=').and_then(|(thread, how)| {
        Some((thread.trim(), parts(how.trim().strip_prefix("split:")?)?))
    });
    match parsed {
        Some((thread, parts)) if !thread.is_empty() => {
            Ok(Asked::Split { thread: thread.to_owned(), parts })
        }
        _ => Err(usage(format!(
            "--server: '{text}': write TID=split:N, such as 4711=split:2, with {} to {} threads",
            PARTS.start(),
            PARTS.end()
        ))),
    }
}

/// `NAME*FACTOR`.
fn times(option: &str, text: &str, form: &str) -> Result<(String, f64)> {
    let parsed = text.rsplit_once('*').and_then(|(name, by)| Some((name.trim(), factor(by)?)));
    match parsed {
        Some((name, by)) if !name.is_empty() => Ok((name.to_owned(), by)),
        _ => Err(usage(format!(
            "{option}: '{text}': write {form}, with a factor from {} to {}",
            FACTORS.start(),
            FACTORS.end()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_change_in_three_ways() {
        let object = "mutex 0x7f of a=b".to_owned();
        let asked = |how| Asked::Lock { object: object.clone(), how };
        let parsed = |how: &str| lock(&format!("{object}={how}")).unwrap();
        assert_eq!(parsed("hold*0.5"), asked(LockChange::Hold(0.5)));
        assert_eq!(parsed("split:4"), asked(LockChange::Split(4)));
        assert_eq!(parsed("none"), asked(LockChange::None));
        for wrong in ["x", "=none", "x=hold", "x=hold*0", "x=hold*nan", "x=split:1", "x=hold*1e9"] {
            assert!(lock(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn threads_and_calls_have_factors() {
        let asked = server("a=b=split:2").unwrap();
        assert_eq!(asked, Asked::Split { thread: "a=b".to_owned(), parts: 2 });
        assert_eq!(times("--speed", "a*b*1.5", "").unwrap(), ("a*b".to_owned(), 1.5));
        for wrong in ["7", "*2", "7*", "7*-1", "7*inf"] {
            assert!(times("--speed", wrong, "").is_err(), "{wrong}");
        }
        assert!(server("7=2").is_err() && server("7=split:x").is_err());
    }
}

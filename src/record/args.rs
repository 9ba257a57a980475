//! The command line of the verbs that record.

use crate::cli::{ColorName, FormatName};
use crate::exit::{Result, usage};
use crate::units::scaled;
use clap::{Args, ValueEnum};
use holdup_host::BUFFER;
use holdup_record::choice::Wanted;
use holdup_record::counter::{self, Counter};
use holdup_record::counters::When;
use holdup_record::recorder::{Plan, Whose};
use holdup_record::rotation::{Due, Rotation};
use holdup_record::session::Rings;
use holdup_record::trigger::Trigger;
use holdup_record::user::User;
use holdup_syscalls::Preset;
use holdup_trace::Cpu;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// Samples per second with call chains. Not 100: anything done every 10 ms would be in every
/// sample.
const SAMPLES: u32 = 99;
/// Samples of running code per second and CPU with the default preset, which show spinning. No
/// divisor of a round number: else all samples may fall into the same moment of a period.
const LIGHT_SAMPLES: u32 = 199;

/// The default output file.
const OUTPUT: &str = "perf.data";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PresetName {
    /// Records which thread runs where and when, and which thread wakes which
    Sched,
    /// Records also waits for locks of the kernel and of programs
    Locks,
    /// Records also interrupts, work items of the kernel, and the system calls that verdicts need
    Full,
}

/// What is recorded.
#[derive(Debug, Args)]
#[command(next_help_heading = "What to record")]
pub(crate) struct WhatArgs {
    /// Which events to record
    #[arg(long, value_enum, value_name = "PRESET", default_value_t = PresetName::Full)]
    pub(crate) preset: PresetName,
    /// Record all system calls, not only those of the preset: every system call on the machine then
    /// takes over 1 us longer
    #[arg(long)]
    pub(crate) all_syscalls: bool,
    /// Also record these tracepoints, named as in perf list; * stands for any characters, ? for one
    #[arg(short, long, value_name = "EVENT,..", value_delimiter = ',')]
    pub(crate) event: Vec<String>,
    /// Read the processor's counters at every context switch: the named counters (as in perf list),
    /// or else cycles, instructions, cache misses and stalled cycles, as many as fit on the PMU
    #[arg(
        long, value_name = "NAME,..", num_args = 0..=1, require_equals = true,
        default_missing_value = "", conflicts_with = "pid"
    )]
    pub(crate) counters: Option<String>,
    /// Read the counters on every CPU at this interval instead (1ms or more), which is cheaper if
    /// context switches are frequent. Counters that do not fit on the PMU together are multiplexed;
    /// memory controllers are read too
    #[arg(long, value_name = "TIME", value_parser = interval, conflicts_with = "pid")]
    pub(crate) counters_interval: Option<Duration>,
    /// Record the call chain of each event and of samples: which code waits, and which code runs
    #[arg(short = 'g', long = "stacks")]
    pub(crate) stacks: bool,
    /// Sample the running code this many times a second on each CPU, 0 for never [default: 99 with
    /// -g, else 199 with the preset full and never with the others]
    #[arg(short = 'F', long, value_name = "HZ")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) freq: Option<u32>,
    /// Record what Go's goroutines wait for, and waits for Java's monitors. Holdup puts probes on
    /// code that runs only if a thread has to wait: in the command, in programs that run when the
    /// recording begins, and in FILE
    #[arg(
        long, value_name = "FILE,..", num_args = 0..=1, require_equals = true,
        default_missing_value = "", value_delimiter = ','
    )]
    pub(crate) runtime_locks: Option<Vec<OsString>>,
    /// Record every process on every CPU; this is the default
    #[arg(short, long, conflicts_with_all = ["pid", "cgroup"])]
    pub(crate) all_cpus: bool,
    /// Record only what happens on these CPUs: 0-3,5
    #[arg(short = 'C', long, value_name = "CPUS")]
    pub(crate) cpu: Option<String>,
    /// Record only these processes and their children. For a diagnosis, record the whole machine
    #[arg(short, long, value_name = "PID,..", value_delimiter = ',', conflicts_with = "cgroup")]
    pub(crate) pid: Vec<u32>,
    /// Record only the members of this control group
    #[arg(short = 'G', long, value_name = "GROUP")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Run the command as this user, by name or number, while root records
    #[arg(long, value_name = "USER", requires = "command", value_parser = user)]
    pub(crate) user: Option<User>,
    /// Record for this long: 10s, 500ms, 2m. A command that still runs then is ended
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// Size of each CPU's buffer: 512K, 8M; a plain number means pages [default: 4M, less if locked
    /// memory is limited]
    #[arg(short = 'm', long = "mmap-pages", value_name = "SIZE", value_parser = ring)]
    pub(crate) ring: Option<usize>,
    /// Print nothing about the recording when it ends
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Write to FILE, or - for a pipe. An existing FILE is renamed to FILE.old [default: perf.data]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Compress with zstd, at this level
    #[arg(
        short = 'z', long, value_name = "LEVEL", num_args = 0..=1, require_equals = true,
        default_missing_value = "1", value_parser = clap::value_parser!(i32).range(1..=22)
    )]
    pub(crate) compression_level: Option<i32>,
    /// End the recording when its file reaches this size: 100M, 2G. A command that still runs is
    /// ended
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "keep")]
    pub(crate) max_size: Option<usize>,
    /// Begin a new file when a file reaches this size or covers this much time: 100M, 2G, 30s, 1h.
    /// The files are called FILE.0001, FILE.0002 ...
    #[arg(long, value_name = "SIZE|TIME", value_parser = due)]
    #[arg(conflicts_with_all = ["keep", "max_size"])]
    pub(crate) switch_output: Option<Due>,
    /// Keep only the N latest of these files
    #[arg(long, value_name = "N", requires = "switch_output")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) switch_max_files: Option<u32>,
    /// Flight recorder: keep the latest events in this much memory (all CPUs together), and write
    /// them only when the condition of --until is true, on SIGUSR2, or on Ctrl-C
    #[arg(long = "ring", value_name = "SIZE", value_parser = size)]
    #[arg(conflicts_with = "ring", help_heading = "Flight recorder")]
    pub(crate) keep: Option<usize>,
    /// Write when this condition is true: fails (the command fails), load>X, runqueue>X (threads
    /// waiting for a CPU), lock-wait>X (threads waiting for kernel locks); the last two are
    /// averages over a second [default: sigusr2, which is the signal only]
    #[arg(long, value_name = "CONDITION", requires = "keep", value_parser = trigger)]
    #[arg(help_heading = "Flight recorder")]
    pub(crate) until: Option<Trigger>,
    #[command(flatten)]
    pub(crate) what: WhatArgs,
    /// The command to record. Without a command, holdup records until Ctrl-C, or for --duration
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Keep the recording in FILE; with --runs, keep all recordings in the folder FILE [default:
    /// not kept; with --runs: holdup-runs]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Record the command this many times, for holdup gate, and keep all recordings; the report is
    /// about the last one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    #[arg(requires = "command")]
    pub(crate) runs: Option<u32>,
    #[command(flatten)]
    pub(crate) what: WhatArgs,
    /// Format of the report
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = FormatName::Text)]
    #[arg(help_heading = "Report")]
    pub(crate) format: FormatName,
    /// Colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorName::Auto)]
    #[arg(help_heading = "Report")]
    pub(crate) color: ColorName,
    /// Exit with 1 if the verdict is one of these classes
    #[arg(long, value_name = "CLASS,..", value_delimiter = ',', help_heading = "Report")]
    pub(crate) fail_on: Vec<String>,
    /// Take thresholds of rules from this TOML file; holdup rules lists them
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub(crate) thresholds: Option<PathBuf>,
    /// Show every rule with all its evidence, including the rules that do not fire
    #[arg(long, help_heading = "Report")]
    pub(crate) explain: bool,
    /// The command to record. Without a command, holdup records until Ctrl-C, or for --duration
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

impl RecordArgs {
    /// The recorder's settings.
    pub(crate) fn plan(&self) -> Result<Plan> {
        let mut plan = self.what.plan(self.compression_level, &self.command)?;
        if let Some(size) = self.keep {
            plan.rings = Rings::Last { size };
        }
        Ok(plan)
    }

    /// How the recording is split into files.
    pub(crate) fn rotation(&self) -> Option<Rotation> {
        Some(Rotation { due: self.switch_output?, keep: self.switch_max_files })
    }

    /// The file to write.
    pub(crate) fn output(&self) -> PathBuf {
        self.output.clone().unwrap_or_else(|| OUTPUT.into())
    }
}

impl WhatArgs {
    /// The recorder's settings.
    pub(crate) fn plan(&self, compression: Option<i32>, command: &[OsString]) -> Result<Plan> {
        let cpus = match &self.cpu {
            None => None,
            Some(text) => {
                let list = Cpu::parse_list(text).ok_or_else(|| {
                    usage(format!("--cpu: '{text}' is not a list of CPUs; write 0-3,5"))
                })?;
                Some(list.into_iter().map(|cpu| cpu.0.into()).collect())
            }
        };
        let whose = match &self.cgroup {
            Some(path) => Whose::Cgroup(path.clone()),
            None if !self.pid.is_empty() => Whose::Processes(self.pid.clone()),
            None => Whose::Machine,
        };
        let preset = match self.preset {
            PresetName::Sched => Preset::Sched,
            PresetName::Locks => Preset::Locks,
            PresetName::Full => Preset::Full,
        };
        let extra = self.event.clone();
        let when = self.counters_interval.map_or(When::Switches, When::Every);
        Ok(Plan {
            wanted: Wanted { preset, all_syscalls: self.all_syscalls, extra },
            counters: self.counters()?,
            when,
            whose,
            cpus,
            stacks: self.stacks,
            runtime_locks: self.runtime_locks.is_some(),
            programs: programs(self.runtime_locks.as_deref().unwrap_or_default(), command),
            samples: NonZeroU32::new(self.freq.unwrap_or(match (self.stacks, preset) {
                (true, _) => SAMPLES,
                (false, Preset::Full) => LIGHT_SAMPLES,
                (false, Preset::Locks | Preset::Sched) => 0,
            })),
            rings: Rings::Emptied { size: self.ring.unwrap_or(BUFFER as usize) },
            command_line: std::env::args_os()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            compression,
        })
    }

    /// The counters that are wanted.
    fn counters(&self) -> Result<Vec<Counter>> {
        let list =
            |names: &str| Counter::list(names).map_err(|e| usage(format!("--counters: {e}")));
        match (self.counters.as_deref(), self.counters_interval) {
            (None, None) => Ok(Vec::new()),
            (Some(""), None) => list(counter::USUAL),
            (None | Some(""), Some(_)) => Ok([list(counter::USUAL)?, Counter::memory()].concat()),
            (Some(names), _) => list(names),
        }
    }
}

/// The files named by the user, and the program of the command.
fn programs(named: &[OsString], command: &[OsString]) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        named.iter().filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    let Some(program) = command.first().map(PathBuf::from) else { return files };
    if program.components().count() > 1 {
        files.push(program);
    } else {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&folders).map(|folder| folder.join(&program));
        files.extend(places.find(|place| place.is_file()));
    }
    files
}

fn trigger(text: &str) -> Result<Trigger, String> {
    text.parse()
}

/// A time as `sleep` takes it, and in milliseconds: a plain number is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)];
    scaled(text, &units)
        .map(|(n, unit): (f64, f64)| n * unit)
        .filter(|&seconds| seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "is not a time; write 10s, 500ms or 2m".to_owned())
}

/// A size, whose unit is a capital letter, or a time: `m` is a minute, as in perf.
fn due(text: &str) -> Result<Due, String> {
    let due = match text.ends_with(['B', 'K', 'M', 'G']) {
        true => size(text).ok().map(|bytes| Due::Size(bytes as u64)),
        false if text.ends_with(|c: char| c.is_ascii_digit()) => None,
        false => duration(text).ok().map(Due::Time),
    };
    due.ok_or_else(|| "is not a size or time; write 100M, 2G, 30s or 10m".to_owned())
}

fn user(text: &str) -> Result<User, String> {
    User::find(text).ok_or_else(|| "there is no such user".to_owned())
}

/// A time between two readings of counters.
fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        short if short < Duration::from_millis(1) => {
            Err("is too short: a reading takes microseconds; 1ms is the minimum".to_owned())
        }
        time => Ok(time),
    }
}

/// A size as perf's `-m` takes it: bytes with a unit, pages without.
fn size(text: &str) -> Result<usize, String> {
    let pages = holdup_host::page_size();
    let units = [("b", 1), ("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30), ("", pages)];
    scaled(&text.to_ascii_lowercase(), &units)
        .and_then(|(n, unit): (usize, usize)| n.checked_mul(unit))
        .filter(|&bytes| bytes > 0)
        .ok_or_else(|| "is not a size; write 512K or 8M, or a number of pages".to_owned())
}

/// The largest ring buffer of one CPU: no kernel allocates more in one piece.
const MOST: usize = 1 << 30;

/// The size of the ring buffer of one CPU.
fn ring(text: &str) -> Result<usize, String> {
    match size(text)? {
        much if much > MOST => {
            Err("is too large: each CPU gets a buffer of this size, 1G at most".to_owned())
        }
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let ms = |text| duration(text).map(|d| d.as_millis()).ok();
        assert_eq!(ms("10s"), Some(10_000));
        assert_eq!(ms("10"), Some(10_000));
        assert_eq!(ms("500ms"), Some(500));
        assert_eq!(ms("1.5m"), Some(90_000));
        for wrong in ["", "s", "0s", "-1s", "10y", "1e400s", "nans", "infs", "1e30h"] {
            assert_eq!(ms(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn files_change_by_size_or_time() {
        assert_eq!(due("100M"), Ok(Due::Size(100 << 20)));
        assert_eq!(due("10m"), Ok(Due::Time(Duration::from_secs(600))));
        assert_eq!(due("500ms"), Ok(Due::Time(Duration::from_millis(500))));
        for wrong in ["", "M", "10", "0s", "0M", "10X"] {
            assert!(due(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_ring_has_a_gigabyte_at_most() {
        assert_eq!(ring("1G"), Ok(1 << 30));
        assert!(ring("100G").is_err_and(|e| e.contains("1G at most")));
    }

    #[test]
    fn sizes_are_bytes_with_a_unit_and_pages_without() {
        assert_eq!(size("8M"), Ok(8 << 20));
        assert_eq!(size("512k"), Ok(512 << 10));
        assert_eq!(size("2"), Ok(2 * holdup_host::page_size()));
        for wrong in ["", "M", "-1M", "99999999999G", "0"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}

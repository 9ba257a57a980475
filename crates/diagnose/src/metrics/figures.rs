//! Manually collected figures of a system: from sar, utld, lockstat or a paper. Field names are the
//! keys of the file; `docs/metrics.md` describes it for people, `docs/schema/metrics.json` for
//! programs.

use crate::measured::{Concurrency, Measured, concurrencies};
use serde::{Deserialize, Serialize};

/// Figures that were measured on a system, as a TOML or JSON file; see docs/metrics.md. Every key
/// is optional: leave out what was not measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Figures {
    /// Name of the case, if the file holds several cases.
    pub name: Option<String>,
    /// Publication or tool that the figures come from: title, table or figure.
    pub source: Option<String>,
    /// What was measured.
    pub title: Option<String>,
    /// Number of processors.
    #[schemars(range(min = 1))]
    pub cpus: Option<u32>,
    /// Length of the measurement in seconds.
    pub seconds: Option<f64>,
    /// Figures of sar's first screen, or the same figures from iostat or vmstat.
    pub sar: Option<Sar>,
    /// System calls with the most processing time.
    pub syscalls: Vec<SystemCall>,
    /// Processes or threads with the most processing time.
    pub processes: Vec<Process>,
    /// Rows of lockstat.
    pub locks: Vec<LockStat>,
    /// Locks with measured rate, hold time and wait time.
    pub semaphores: Vec<Semaphore>,
    /// Lock ratios and waiting ratios of commands.
    pub commands: Vec<Command>,
    /// The same work, run on several numbers of CPUs.
    pub runs: Vec<Run>,
    /// What the processors' counters showed about application code, for each number of CPUs.
    pub counters: Vec<Counters>,
    /// Several cases; each needs a name. Source, title and cpus outside the cases apply to all
    /// cases.
    pub case: Vec<Figures>,
}

/// Figures of sar; the keys are those of holdup's own `sar` rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sar {
    /// Time in application code, % of capacity.
    pub pct_usr: Option<f64>,
    /// Time in the kernel, % of capacity.
    pub pct_sys: Option<f64>,
    /// Idle time while disks worked, % of capacity.
    pub pct_wio: Option<f64>,
    /// Idle time while no disk worked, % of capacity.
    pub pct_idle: Option<f64>,
    /// System calls per second.
    pub scall_per_s: Option<f64>,
    /// Read calls per second.
    pub sread_per_s: Option<f64>,
    /// Write calls per second.
    pub swrit_per_s: Option<f64>,
    /// Characters read per second.
    pub rchar_per_s: Option<f64>,
    /// Characters written per second.
    pub wchar_per_s: Option<f64>,
    /// Forks per second.
    pub fork_per_s: Option<f64>,
    /// Execs per second.
    pub exec_per_s: Option<f64>,
    /// Context switches per second.
    pub cswch_per_s: Option<f64>,
    /// Semaphore operations per second.
    pub sema_per_s: Option<f64>,
    /// Messages per second.
    pub msg_per_s: Option<f64>,
    /// Page faults per second.
    pub fault_per_s: Option<f64>,
    /// Mean number of threads running or ready, over the time with at least one such thread.
    pub runq_sz: Option<f64>,
    /// Part of the time with at least one thread running or ready, in per cent.
    pub pct_runocc: Option<f64>,
}

/// A row of a system call table (utld, `holdup syscalls`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("required" = ["name"]))]
pub struct SystemCall {
    /// Name of the system call.
    pub name: String,
    /// Processing time in this system call, % of all processing time the machine had.
    pub pct: Option<f64>,
    /// Processing time in this system call.
    pub total_ms: Option<f64>,
    /// Number of calls.
    pub count: Option<u64>,
    /// Processing time of the shortest call.
    pub min_ms: Option<f64>,
    /// Mean processing time of a call.
    pub avg_ms: Option<f64>,
    /// Processing time of the longest call.
    pub max_ms: Option<f64>,
}

/// A row of a process table (utld, `holdup procs`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("required" = ["name"]))]
pub struct Process {
    /// Name of the process or thread.
    pub name: String,
    /// Id of the process.
    pub pid: Option<u32>,
    /// Id of the thread, if the row is one thread.
    pub tid: Option<u32>,
    /// Time in application code and kernel, % of all processing time the machine had.
    pub combined_pct: Option<f64>,
    /// Time in application code, % of all processing time the machine had.
    pub app_pct: Option<f64>,
    /// Time in the kernel, % of all processing time the machine had.
    pub kernel_pct: Option<f64>,
    /// Time in application code and kernel.
    pub combined_ms: Option<f64>,
    /// Time in application code.
    pub app_ms: Option<f64>,
    /// Time in the kernel.
    pub kernel_ms: Option<f64>,
}

/// A row of lockstat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("required" = ["name"]))]
pub struct LockStat {
    /// Subsystem that the lock belongs to.
    pub subsys: Option<String>,
    /// Class of the lock.
    pub name: String,
    /// Occurrence: number of the lock within its class.
    pub ocn: Option<u64>,
    /// References to the lock per second.
    pub ref_per_s: Option<f64>,
    /// Part of all lock references, in per cent.
    pub pct_ref: Option<f64>,
    /// References that found the lock held and spun, in per cent of the references to it.
    pub pct_block: Option<f64>,
    /// References that found the lock held and slept, in per cent of the references to it.
    pub pct_sleep: Option<f64>,
}

/// Who owns a measured lock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// The kernel owns the lock.
    #[default]
    Kernel,
    /// The threads library owns the lock (mutex, futex).
    Threads,
    /// The application uses a kernel service as a lock (semaphore, file lock).
    Application,
}

/// A lock with measured rate, hold time and wait time, over all CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("required" = ["name"]))]
pub struct Semaphore {
    /// Name of the lock.
    pub name: String,
    /// Who owns the lock.
    pub owner: Owner,
    /// Acquisitions per second.
    pub requests_per_s: f64,
    /// Mean time for which the lock is held.
    pub hold_us: f64,
    /// Mean time from the request for the lock to its acquisition.
    pub wait_us: f64,
}

/// Lock ratio and waiting ratio of a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("required" = ["name"]))]
pub struct Command {
    /// Name of the command.
    pub name: String,
    /// Number of times the command was run.
    pub count: Option<u64>,
    /// Part of all execution time that the command has, in per cent.
    pub time_pct: Option<f64>,
    /// Time in critical sections, % of the command's execution time.
    pub lock_ratio_pct: Option<f64>,
    /// Time waiting for critical sections, % of the command's execution time.
    pub waiting_ratio_pct: Option<f64>,
}

/// Which kind of kernel a run used.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Kernel {
    /// A uniprocessor kernel, made for one processor.
    Up,
    /// A multiprocessor kernel, made for several processors.
    #[default]
    Mp,
}

/// The same work on some number of CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("required" = ["cpus", "seconds"]))]
pub struct Run {
    /// Number of processors.
    #[schemars(range(min = 1))]
    pub cpus: u32,
    /// Which kind of kernel the run used.
    pub kernel: Kernel,
    /// Time the work took.
    pub seconds: f64,
    /// Time in critical sections, % of execution time.
    pub lock_ratio_pct: Option<f64>,
    /// Time waiting for critical sections, % of execution time.
    pub waiting_ratio_pct: Option<f64>,
}

/// What the processors' counters showed about application code on some number of CPUs (`perf
/// stat`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("required" = ["cpus", "cycles", "instructions"]))]
pub struct Counters {
    /// Number of processors in use.
    #[schemars(range(min = 1))]
    pub cpus: u32,
    /// Cycles, in any unit.
    pub cycles: f64,
    /// Instructions, in the unit of the cycles.
    pub instructions: f64,
}

impl Counters {
    /// The counters of perf stat runs.
    pub(super) fn of_runs(runs: &Concurrency) -> Counters {
        let cpus = runs.cpus.round().clamp(1.0, 65536.0) as u32;
        Counters { cpus, cycles: runs.cycles, instructions: runs.instructions }
    }
}

/// Why a file of figures cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FiguresError {
    /// Neither TOML nor JSON of the documented form.
    #[error("{}", .0.trim_end())]
    Syntax(String),
    /// An impossible figure.
    #[error("{0}")]
    Value(String),
    /// The file has several cases, and none or an unknown one was chosen.
    #[error("{}", no_such_case(asked.as_deref(), known))]
    Case {
        /// The requested case, if any.
        asked: Option<String>,
        /// The cases of the file.
        known: Vec<String>,
    },
}

/// Lists the cases if the requested one does not exist.
fn no_such_case(asked: Option<&str>, known: &[String]) -> String {
    match asked {
        Some(asked) if known.is_empty() => format!("no case '{asked}': the file holds only one"),
        Some(asked) => format!("no case '{asked}'; the cases are: {}", known.join(", ")),
        None => format!("the file holds several cases; choose one of: {}", known.join(", ")),
    }
}

impl Figures {
    /// Figures from runs of perf stat only: the CPUs of the run that kept the most busy.
    pub fn of_runs(measured: &[Measured]) -> Figures {
        let cpus = concurrencies(measured).last().map(|most| Counters::of_runs(most).cpus);
        Figures { cpus, source: Some("perf stat".to_owned()), ..Figures::default() }
    }

    /// Parses a TOML or JSON file. `case` chooses one of several.
    pub fn parse(text: &str, case: Option<&str>) -> Result<Figures, FiguresError> {
        let mut all = Figures::parse_all(text)?;
        let known = || all.iter().filter_map(|c| c.name.clone()).collect::<Vec<_>>();
        let at = match case {
            None if all.len() == 1 => 0,
            None => return Err(FiguresError::Case { asked: None, known: known() }),
            Some(name) => {
                all.iter().position(|c| c.name.as_deref() == Some(name)).ok_or_else(|| {
                    FiguresError::Case { asked: Some(name.to_owned()), known: known() }
                })?
            }
        };
        Ok(all.swap_remove(at))
    }

    /// Every case of a file; at least one.
    pub fn parse_all(text: &str) -> Result<Vec<Figures>, FiguresError> {
        let mut own: Figures = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|e| FiguresError::Syntax(e.to_string()))?
        } else {
            toml::from_str(text).map_err(|e| FiguresError::Syntax(e.to_string()))?
        };
        let case = std::mem::take(&mut own.case);
        if case.is_empty() {
            own.check()?;
            return Ok(vec![own]);
        }
        let (source, title, cpus) = (own.source.clone(), own.title.clone(), own.cpus);
        if own != (Figures { source, title, cpus, ..Figures::default() }) {
            return Err(FiguresError::Value(
                "in a file of several cases, all figures must be inside the cases".to_owned(),
            ));
        }
        let mut names = std::collections::BTreeSet::new();
        case.into_iter()
            .map(|c| {
                let case = Figures {
                    source: c.source.or_else(|| own.source.clone()),
                    title: c.title.or_else(|| own.title.clone()),
                    cpus: c.cpus.or(own.cpus),
                    ..c
                };
                case.check()?;
                match &case.name {
                    Some(name) if names.insert(name.clone()) => Ok(case),
                    Some(name) => {
                        Err(FiguresError::Value(format!("two cases have the name '{name}'")))
                    }
                    None => {
                        Err(FiguresError::Value("each of several cases needs a name".to_owned()))
                    }
                }
            })
            .collect()
    }

    /// Percentages must be from 0 to 100, all other figures 0 or more.
    fn check(&self) -> Result<(), FiguresError> {
        if !self.case.is_empty() {
            return Err(FiguresError::Value("a case cannot contain cases".to_owned()));
        }
        if self.cpus == Some(0)
            || self.runs.iter().any(|r| r.cpus == 0 || r.seconds <= 0.0)
            || self.seconds.is_some_and(|s| s <= 0.0)
        {
            return Err(FiguresError::Value("cpus and seconds must be more than 0".to_owned()));
        }
        if self.counters.iter().any(|c| c.cpus == 0 || c.cycles <= 0.0 || c.instructions <= 0.0) {
            return Err(FiguresError::Value(
                "counters: cpus, cycles and instructions must be more than 0".to_owned(),
            ));
        }
        let json = serde_json::to_value(self).map_err(|e| FiguresError::Syntax(e.to_string()))?;
        check_numbers("", &json)?;
        if let Some(s) = &self.sar {
            let sum: f64 =
                [s.pct_usr, s.pct_sys, s.pct_wio, s.pct_idle].into_iter().flatten().sum();
            if sum > 102.0 {
                return Err(FiguresError::Value(format!(
                    "sar: usr, sys, wio and idle add up to {sum} %"
                )));
            }
        }
        Ok(())
    }

    /// The largest number of CPUs that anything was measured on.
    pub fn processors(&self) -> Option<u32> {
        self.cpus.or_else(|| {
            self.runs.iter().map(|r| r.cpus).chain(self.counters.iter().map(|c| c.cpus)).max()
        })
    }
}

/// Whether the figure `key` is a percentage.
pub fn is_percent(key: &str) -> bool {
    key.starts_with("pct") || key.ends_with("_pct")
}

/// The JSON Schema of a file of figures.
pub fn file_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    <Figures as schemars::JsonSchema>::json_schema(generator)
}

fn check_numbers(at: &str, value: &serde_json::Value) -> Result<(), FiguresError> {
    match value {
        serde_json::Value::Object(map) => map.iter().try_for_each(|(key, value)| {
            let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
            check_numbers(&path, value)
        }),
        serde_json::Value::Array(list) => list.iter().try_for_each(|v| check_numbers(at, v)),
        serde_json::Value::Number(n) => {
            let x = n.as_f64().unwrap_or(0.0);
            let key = at.rsplit('.').next().unwrap_or(at);
            if x < 0.0 || (is_percent(key) && x > 100.5) {
                return Err(FiguresError::Value(format!("{at}: {x} is out of range")));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_and_json_say_the_same() {
        let toml = "cpus = 4\n[sar]\npct_usr = 36\n[[syscalls]]\nname = \"semop\"\npct = 63.181\n";
        let json = r#"{ "cpus": 4, "sar": { "pct_usr": 36 },
            "syscalls": [ { "name": "semop", "pct": 63.181 } ] }"#;
        assert_eq!(Figures::parse(toml, None).unwrap(), Figures::parse(json, None).unwrap());
    }

    #[test]
    fn cases_are_chosen_by_name() {
        let text =
            "source = \"s\"\n[[case]]\nname = \"a\"\ncpus = 2\n[[case]]\nname = \"b\"\ncpus = 4\n";
        let b = Figures::parse(text, Some("b")).unwrap();
        assert_eq!((b.cpus, b.source.as_deref()), (Some(4), Some("s")));
        assert!(Figures::parse(text, None).unwrap_err().to_string().contains("a, b"));
        assert!(Figures::parse(text, Some("c")).unwrap_err().to_string().contains("a, b"));
        assert!(Figures::parse("cpus = 2\nseconds = 3.0\n[[case]]\nname = \"a\"", None).is_err());
        assert!(
            Figures::parse("[[case]]\nname = \"a\"\n[[case]]\nname = \"a\"\n", Some("a")).is_err()
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for text in [
            "cpus = 0",
            "cpu = 4",
            "cpus = -1",
            "[sar]\npct_usr = 136",
            "[sar]\npct_usr = -1",
            "[sar]\npct_usr = 80\npct_idle = 80",
            "[[semaphores]]\nname = \"x\"\nrequests_per_s = -5",
            "{ \"cpus\": 4",
            "[[runs]]\ncpus = 0\nseconds = 1",
            "[[counters]]\ncpus = 2\ncycles = 5",
        ] {
            assert!(Figures::parse(text, None).is_err(), "{text}");
        }
    }
}

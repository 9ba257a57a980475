//! A recorder as a whole: chooses and opens events once, and records any number of times.

use crate::choice::{Calls, Choice, Unknown, Wanted};
use crate::closing;
use crate::collect::{self, Collected, StartError};
use crate::counter::Counter;
use crate::counters::{self, Counted, When};
use crate::course::{Course, threads_of};
use crate::file::{self, Description, Running, Symbols, Target, TracingData, Writer};
use crate::flight::{self, Flight};
use crate::groups::Mounts;
use crate::lock_wait::LockWait;
use crate::open_files;
use crate::rotation::{Next, Rotation};
use crate::runtimes::{self, Found};
use crate::session::{OpenError, Rings, Scope, Session, Setup};
use crate::signals::Signals;
use crate::sys::abi;
use crate::trigger::Trigger;
use holdup_host::tracefs::{NoTracefs, Tracefs};
use std::fs::File;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// Which threads are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// All threads.
    Machine,
    /// The threads of these processes and of their children.
    Processes(Vec<u32>),
    /// The threads of a control group: its folder, or its path below the mount of control groups.
    Cgroup(PathBuf),
}

/// The parameters of a recorder.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The events.
    pub wanted: Wanted,
    /// The counters to read; only for whole CPUs.
    pub counters: Vec<Counter>,
    /// When to read them.
    pub when: When,
    /// Which threads are recorded.
    pub whose: Whose,
    /// The CPUs; `None` for all.
    pub cpus: Option<Vec<u32>>,
    /// With call chains.
    pub stacks: bool,
    /// Samples of running code per second and CPU.
    pub samples: Option<NonZeroU32>,
    /// With probes in runtimes that schedule their own tasks: in running programs, and in
    /// `programs`.
    pub runtime_locks: bool,
    /// The program that is to be recorded, and others that may be started during the recording.
    pub programs: Vec<PathBuf>,
    /// The rings.
    pub rings: Rings,
    /// The command line of the recorder, for the file.
    pub command_line: Vec<String>,
    /// Level of zstd for compressing the data.
    pub compression: Option<i32>,
}

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Tracepoints are not available.
    #[error(transparent)]
    NoTracefs(#[from] NoTracefs),
    /// An event does not exist.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The kernel refuses.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is no such process.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// There is no such control group.
    #[error("control group {}: {error}", path.display())]
    NoCgroup {
        /// The path as given.
        path: PathBuf,
        /// The error of opening it.
        error: io::Error,
    },
    /// A CPU is not online.
    #[error("CPU {cpu} is not online; the online CPUs are {online}")]
    NoCpu {
        /// The CPU.
        cpu: u32,
        /// The online CPUs.
        online: String,
    },
    /// The file cannot be described or created.
    #[error(transparent)]
    File(#[from] file::Error),
    /// The events or the command cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// Open events, ready to be recorded.
#[derive(Debug)]
pub struct Recorder {
    /// The chosen events.
    pub choice: Choice,
    /// The counters that are read.
    pub counted: Counted,
    /// The runtimes that are probed.
    pub found: Found,
    session: Session,
    tracing: TracingData,
    symbols: Symbols,
    plan: Plan,
}

impl Recorder {
    /// Opens all events. Nothing is recorded yet.
    ///
    /// # Errors
    ///
    /// If something that was asked for does not exist, or the host does not allow it.
    pub fn open(plan: Plan) -> Result<Recorder, Error> {
        let tracefs = Tracefs::find()?;
        let choice = Choice::of(&plan.wanted, &tracefs)?;
        let scope = scope(&plan.whose)?;
        let cpus = cpus(plan.cpus.as_deref())?;
        open_files::raise();
        let found = match (plan.runtime_locks, &plan.whose) {
            (false, _) => runtimes::leave(&plan.programs),
            (true, Whose::Processes(pids)) => {
                runtimes::find(Path::new("/proc"), Some(pids), &plan.programs)
            }
            (true, _) => runtimes::find(Path::new("/proc"), None, &plan.programs),
        };
        let mut session = Session::open(&Setup {
            tracepoints: &choice.tracepoints,
            scope: &scope,
            cpus: &cpus,
            stacks: plan.stacks,
            calls: choice.calls == Calls::Chosen,
            maps: plan.stacks || choice.calls != Calls::Untraced,
            samples: plan.samples,
            probes: &found.probes,
            rings: plan.rings,
        })?;
        let counted = counters::join(&mut session, &scope, plan.counters.clone(), plan.when)?;
        let tracepoints =
            session.described.iter().filter(|d| d.attr.type_ == abi::PERF_TYPE_TRACEPOINT);
        let names = tracepoints.map(|what| what.name.as_str());
        let tracing = TracingData::read(tracefs.root(), names)?;
        let symbols = Symbols::read(Path::new("/proc/kallsyms"));
        Ok(Recorder { choice, counted, found, session, tracing, symbols, plan })
    }

    /// Records into `output`, `-` for standard output, until `course` ends. With a `rotation` it
    /// writes several files, whose names are `output` and a number.
    ///
    /// # Errors
    ///
    /// If the file or the command cannot be started. Later errors are in the result.
    pub fn record(
        &self,
        output: &Path,
        signals: &Signals,
        course: Course<'_>,
        rotation: Option<Rotation>,
    ) -> Result<Collected, Error> {
        let Some(rotation) = rotation else {
            return Ok(collect::collect(
                &self.session,
                self.writer(output)?,
                signals,
                course,
                None,
            )?);
        };
        let mut n = 0;
        let mut next = || {
            n += 1;
            if let Some(stale) = rotation.stale(output, n) {
                let _ = std::fs::remove_file(stale);
            }
            self.writer(&Rotation::path(output, n))
        };
        let first = next()?;
        let next = Next { due: rotation.due, writer: &mut next };
        Ok(collect::collect(&self.session, first, signals, course, Some(next))?)
    }

    /// Keeps the latest events, and writes them to `output` when `trigger` fires.
    ///
    /// # Errors
    ///
    /// As [`Recorder::record`]; and if the kernel lacks what the trigger needs.
    pub fn keep(
        &self,
        output: &Path,
        signals: &Signals,
        course: Course<'_>,
        trigger: Trigger,
    ) -> Result<Flight, Error> {
        let locks = match trigger {
            Trigger::LockWait(_) => LockWait::begin(&Tracefs::find()?, &online_cpus())?,
            _ => None,
        };
        let writer = || self.writer(output);
        Ok(flight::keep(&self.session, writer, signals, course, (trigger, locks))?)
    }

    /// Bytes of each CPU's ring.
    pub fn ring_size(&self) -> usize {
        self.session.ring_size
    }

    /// Why the kernel takes no samples of running code, if it refused them.
    pub fn unsampled(&self) -> Option<&io::Error> {
        self.session.unsampled.as_ref()
    }

    /// Number of recorded CPUs.
    pub fn cpus(&self) -> usize {
        self.session.cpus.len()
    }

    /// Closes the events. Must be called while this process has one thread; see [`closing`].
    pub fn close(self) {
        closing::close(self.session);
    }

    fn writer(&self, output: &Path) -> Result<Writer, file::Error> {
        let target = match &self.plan.whose {
            Whose::Processes(pids) => Target::Processes(pids.clone()),
            Whose::Machine | Whose::Cgroup(_) => Target::Machine,
        };
        let proc = Path::new("/proc");
        let groups = match self.session.groups() {
            true => Mounts::read(proc).known(),
            false => Vec::new(),
        };
        let description = Description {
            events: self.session.described.iter().map(|what| what.for_file()).collect(),
            command: self.plan.command_line.clone(),
            clock: None,
            tracing: self.tracing.clone(),
            runtimes: self.found.runtimes(self.session.probes),
            symbols: self.symbols.clone(),
            running: Running::read(proc, target, self.session.maps()).with_groups(groups),
            compression: self.plan.compression,
        };
        Ok(match output.as_os_str() == "-" {
            true => Writer::pipe(Box::new(io::stdout()), &description)?,
            false => Writer::create(output, &description)?,
        })
    }
}

fn scope(whose: &Whose) -> Result<Scope, Error> {
    Ok(match whose {
        Whose::Machine => Scope::Machine,
        Whose::Processes(pids) => {
            let mut threads = Vec::new();
            for &pid in pids {
                threads.extend(threads_of(pid).ok_or(Error::NoProcess(pid))?);
            }
            Scope::Threads(threads)
        }
        Whose::Cgroup(path) => {
            let below = |mount: &str| Path::new(mount).join(path.strip_prefix("/").unwrap_or(path));
            // Version 2 of control groups has one hierarchy; in version 1 perf had its own. If both
            // are mounted, `perf_event` belongs to version 2.
            let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/perf_event", "/sys/fs/cgroup/unified"];
            let places: Vec<PathBuf> =
                std::iter::once(path.clone()).chain(mounts.map(below)).collect();
            let is_group = |place: &&PathBuf| place.join("cgroup.procs").exists();
            let place = places.iter().find(is_group).unwrap_or(path);
            let folder =
                File::open(place).map_err(|error| Error::NoCgroup { path: path.clone(), error })?;
            Scope::Cgroup(folder.into())
        }
    })
}

fn cpus(wanted: Option<&[u32]>) -> Result<Vec<u32>, Error> {
    let online = online_cpus();
    let Some(wanted) = wanted else { return Ok(online) };
    match wanted.iter().find(|cpu| !online.contains(cpu)) {
        None => Ok(wanted.to_vec()),
        Some(&cpu) => {
            let online: Vec<String> = online.iter().map(u32::to_string).collect();
            Err(Error::NoCpu { cpu, online: online.join(", ") })
        }
    }
}

/// A kernel that does not say which CPUs are online has one.
fn online_cpus() -> Vec<u32> {
    collect::online().unwrap_or_else(|| vec![0])
}

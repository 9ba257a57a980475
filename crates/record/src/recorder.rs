//! One recorder from end to end: what to record, opened once, and recorded as often as wanted.

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

/// Whose events are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Everybody's.
    Machine,
    /// Those of these processes and of the ones they make.
    Processes(Vec<u32>),
    /// Those of a control group: its folder, or its path below the mount of control groups.
    Cgroup(PathBuf),
}

/// What a recorder is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The events.
    pub wanted: Wanted,
    /// The counters to read; only of whole CPUs.
    pub counters: Vec<Counter>,
    /// When to read them.
    pub when: When,
    /// Whose.
    pub whose: Whose,
    /// On which CPUs; `None` for all.
    pub cpus: Option<Vec<u32>>,
    /// With call chains.
    pub stacks: bool,
    /// So often in a second each CPU is asked what runs.
    pub samples: Option<NonZeroU32>,
    /// With probes in runtimes that schedule tasks of their own: in the programs that run, and in
    /// these below.
    pub runtime_locks: bool,
    /// The program that is to be recorded, and others that may be started meanwhile.
    pub programs: Vec<PathBuf>,
    /// The rings.
    pub rings: Rings,
    /// The command line of the recorder, to stand in the file.
    pub command_line: Vec<String>,
    /// Level of zstd to compress the data with.
    pub compression: Option<i32>,
}

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There are no tracepoints to be had.
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
        /// As it was named.
        path: PathBuf,
        /// What opening it said.
        error: io::Error,
    },
    /// A CPU is not online.
    #[error("CPU {cpu} is not online; the online CPUs are {online}")]
    NoCpu {
        /// The CPU.
        cpu: u32,
        /// Those that are.
        online: String,
    },
    /// The file cannot be described or begun.
    #[error(transparent)]
    File(#[from] file::Error),
    /// The events or the command cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// Events that are open and can be recorded.
#[derive(Debug)]
pub struct Recorder {
    /// Which they are.
    pub choice: Choice,
    /// Which counters are read.
    pub counted: Counted,
    /// Which runtimes are probed.
    pub found: Found,
    session: Session,
    tracing: TracingData,
    symbols: Symbols,
    plan: Plan,
}

impl Recorder {
    /// Open everything. Nothing is recorded yet.
    ///
    /// # Errors
    ///
    /// Something that was asked for does not exist, or the host does not allow it.
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

    /// Record into `output`, `-` for standard output, until `course` ends; into several files of
    /// that name and a number if `rotation` says so.
    ///
    /// # Errors
    ///
    /// The file or the command cannot be started. What goes wrong later is in the result.
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

    /// Keep the last of what happens, and write it to `output` when `trigger` fires.
    ///
    /// # Errors
    ///
    /// As [`Recorder::record`]; and the kernel lacks what the trigger looks at.
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

    /// Bytes of the ring of each CPU.
    pub fn ring_size(&self) -> usize {
        self.session.ring_size
    }

    /// How many CPUs are recorded.
    pub fn cpus(&self) -> usize {
        self.session.cpus.len()
    }

    /// Close the events. Must be called while this process has one thread; see [`closing`].
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
            // With the second version of control groups there is one tree; before, perf had its
            // own. Where both are mounted, `perf_event` belongs to the second.
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

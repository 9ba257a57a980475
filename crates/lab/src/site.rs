//! The parts of a workload: its environment, its workers, and its errors.

use crate::clock::{Clock, Pace};
use crate::count::Tally;
use crate::param::Settings;
use std::any::Any;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// Why a run failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The system refused something.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: String,
        /// The system's error.
        error: io::Error,
    },
    /// This host cannot do what the workload needs.
    #[error("{0}")]
    Impossible(String),
    /// A worker failed.
    #[error("{0} ended too early")]
    Worker(String),
}

/// Adds what was tried to an error of the system.
pub(crate) trait Tried<T> {
    fn tried(self, what: impl Into<String>) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Tried<T> for Result<T, E> {
    fn tried(self, what: impl Into<String>) -> Result<T, Error> {
        self.map_err(|error| Error::System { what: what.into(), error: error.into() })
    }
}

/// The environment of a run: its settings, its folder, the speed of this CPU.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) settings: Settings,
    pub(crate) folder: PathBuf,
    pub(crate) pace: Pace,
}

impl Site {
    pub(crate) fn get(&self, key: &str) -> u64 {
        self.settings.get(key)
    }

    pub(crate) fn count(&self, key: &str) -> usize {
        self.settings.count(key)
    }

    /// The number of workers.
    pub(crate) fn workers(&self) -> usize {
        self.count("workers")
    }

    pub(crate) fn lasts(&self) -> Duration {
        Duration::from_nanos(self.get("duration"))
    }
}

/// What a worker does from the start of a run to its end.
pub(crate) type Work = Box<dyn FnOnce(&Clock, &mut Tally) -> io::Result<()> + Send>;

/// A worker: its name, and what it does.
pub(crate) struct Worker {
    pub(crate) role: String,
    pub(crate) work: Work,
}

impl Worker {
    pub(crate) fn new(
        role: impl Into<String>,
        work: impl FnOnce(&Clock, &mut Tally) -> io::Result<()> + Send + 'static,
    ) -> Worker {
        Worker { role: role.into(), work: Box::new(work) }
    }
}

/// The standard input and output of a worker that is a process.
#[derive(Debug, Default)]
pub(crate) struct Spot {
    pub(crate) input: Option<OwnedFd>,
    pub(crate) output: Option<OwnedFd>,
}

/// The workers of a run.
pub(crate) enum Crew {
    Threads(Vec<Worker>),
    Processes(Vec<Spot>),
}

/// A workload that is ready to go.
pub(crate) struct Made {
    pub(crate) crew: Crew,
    pub(crate) culprits: Vec<Vec<String>>,
    /// Resources that must live until the end of the run.
    pub(crate) keep: Option<Box<dyn Any>>,
}

impl Made {
    pub(crate) fn threads(workers: Vec<Worker>, culprits: Vec<Vec<String>>) -> Made {
        Made { crew: Crew::Threads(workers), culprits, keep: None }
    }

    pub(crate) fn processes(spots: Vec<Spot>, culprits: Vec<Vec<String>>) -> Made {
        Made { crew: Crew::Processes(spots), culprits, keep: None }
    }
}

/// `PIDS` in a culprit's words stands for the id of each worker process.
pub(crate) const PIDS: &str = "pid of a worker";

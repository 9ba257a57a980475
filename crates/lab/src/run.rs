//! One run of a workload: starts its workers, releases all at once, and collects their counts.
//!
//! Workers are threads of this process, or processes: this program again, with arguments that say
//! which worker it is. A process gets the resources it shares on its standard input and output;
//! over a socket it is told when to start, and reports its counts.

use crate::clock::{Clock, Pace};
use crate::count::{Counted, SCHEMA, Tally, ns};
use crate::needs::cpus;
use crate::param::Settings;
use crate::site::{Crew, Error, Made, PIDS, Site, Spot, Tried, Worker};
use crate::table::Workload;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// Longest time until all processes have connected.
const MUSTER: Duration = Duration::from_secs(20);

/// The run to execute.
#[derive(Clone, Debug)]
pub struct Order {
    /// The workload.
    pub workload: &'static Workload,
    /// Whether to run its fixed variant.
    pub fixed: bool,
    /// Its settings.
    pub settings: Settings,
    /// The command of a worker process: this program, and the arguments before those of [`work`].
    pub program: Vec<OsString>,
}

/// Rename this process: time charged to the recorder's name is the cost of recording. The kernel
/// keeps 15 bytes of the name; a failure only makes recordings less clear.
fn be_called(name: &str) {
    let _ = std::fs::write("/proc/self/comm", name);
}

/// Run the workload. The calling process is renamed to `lab`.
pub fn run(order: &Order) -> Result<Counted, Error> {
    be_called("lab");
    let base = folder()?;
    let site = Site {
        settings: order.settings.clone(),
        folder: base.path().to_owned(),
        pace: Pace::measure(),
    };
    let Made { crew, culprits, keep } = (order.workload.make)(&site)?;
    let workers = match crew {
        Crew::Threads(workers) => of_threads(&site, workers)?,
        Crew::Processes(spots) => of_processes(order, &site, spots)?,
    };
    drop(keep);
    let counted = Counted {
        schema: SCHEMA,
        name: order.workload.name,
        makes: if order.fixed { crate::table::HEALTHY } else { order.workload.class },
        fixed: order.fixed,
        settings: site.settings,
        cpus: cpus(),
        units: 0,
        wall_ns: 0,
        units_per_s: 0.0,
        wait_ns: 0,
        hold_ns: 0,
        work_ns: 0,
        run_ns: None,
        queue_ns: None,
        culprits: named(culprits, &workers),
        workers,
    };
    Ok(counted.sum_up())
}

/// A new folder on a disk, if there is one that is not in memory.
fn folder() -> Result<tempfile::TempDir, Error> {
    let places = [std::env::temp_dir(), "/var/tmp".into(), ".".into()];
    let place = places.iter().find(|place| crate::needs::on_disk(place)).unwrap_or(&places[0]);
    tempfile::Builder::new()
        .prefix("holdup-lab-")
        .tempdir_in(place)
        .tried(format!("a folder in {}", place.display()))
}

fn named(culprits: Vec<Vec<String>>, workers: &[Tally]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for words in culprits {
        if !words.iter().any(|word| word == PIDS) {
            all.push(words);
            continue;
        }
        for worker in workers {
            let pid = |word: &String| match word == PIDS {
                true => format!("pid {}", worker.pid),
                false => word.clone(),
            };
            all.push(words.iter().map(pid).collect());
        }
    }
    all
}

/// Run one worker, and count.
fn at_work(clock: &Clock, worker: Worker) -> Result<Tally, Error> {
    let mut tally = Tally { pid: std::process::id(), ..Tally::default() };
    let begun = Instant::now();
    let done = (worker.work)(clock, &mut tally);
    tally.wall_ns = ns(begun.elapsed());
    let helped = tally.clone();
    tally.ask_kernel();
    // Helpers have already reported their own times.
    if let (Some(run), Some(queue)) = (helped.run_ns, helped.queue_ns) {
        tally.run_ns = tally.run_ns.map(|own| own + run);
        tally.queue_ns = tally.queue_ns.map(|own| own + queue);
    }
    done.tried(format!("worker {}", worker.role))?;
    tally.role = worker.role;
    Ok(tally)
}

fn of_threads(site: &Site, workers: Vec<Worker>) -> Result<Vec<Tally>, Error> {
    let start = Arc::new(Barrier::new(workers.len()));
    let (pace, lasts) = (site.pace, site.lasts());
    let mut running = Vec::new();
    for worker in workers {
        let (start, role) = (start.clone(), worker.role.clone());
        let work = move || {
            start.wait();
            at_work(&Clock::start(pace, lasts), worker)
        };
        let thread = thread::Builder::new().name(role.clone()).spawn(work);
        running.push((role, thread.tried("a thread cannot be started")?));
    }
    let end = |(role, thread): (String, thread::JoinHandle<_>)| {
        thread.join().map_err(|_| Error::Worker(role))?
    };
    running.into_iter().map(end).collect()
}

/// Processes that are killed if the run fails before they end.
struct Herd(Vec<Child>);

impl Drop for Herd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // A process that has ended is not killed, because it has been waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The socket in a run's folder to which worker processes connect.
fn socket(folder: &Path) -> PathBuf {
    folder.join("start")
}

fn of_processes(order: &Order, site: &Site, spots: Vec<Spot>) -> Result<Vec<Tally>, Error> {
    let listener = UnixListener::bind(socket(&site.folder)).tried("a socket for the start")?;
    listener.set_nonblocking(true).tried("a socket for the start")?;
    let mut herd = Herd(Vec::new());
    let number = spots.len();
    for (index, spot) in spots.into_iter().enumerate() {
        herd.0.push(start(order, site, index, spot)?);
    }
    let mut lines = muster(&listener, &mut herd, number)?;
    for line in &mut lines {
        line.write_all(b"g").tried("the start")?;
    }
    // Wait like a shell, not asleep on a socket: the conducting process is no part of what is
    // shown. The socket's buffer holds a worker's report.
    for child in &mut herd.0 {
        child.wait().tried("the end of a worker")?;
    }
    let mut tallies = Vec::new();
    for mut line in lines {
        let mut text = String::new();
        line.read_to_string(&mut text).tried("what a worker counted")?;
        let reply: Reply = serde_json::from_str(&text)
            .map_err(|_| Error::Worker(format!("a worker of {}", order.workload.name)))?;
        tallies.push(reply);
    }
    tallies.sort_by_key(|reply| reply.0);
    tallies.into_iter().map(|(_, reply)| reply.map_err(Error::Impossible)).collect()
}

/// A worker's final report: its index, and its counts or its error.
type Reply = (usize, Result<Tally, String>);

fn start(order: &Order, site: &Site, index: usize, spot: Spot) -> Result<Child, Error> {
    let mut words = order.program.iter();
    let mut command = Command::new(words.next().map_or("holdup".as_ref(), |word| word.as_os_str()));
    command.args(words).arg(order.workload.name).arg(index.to_string());
    command.arg("--folder").arg(&site.folder).arg("--pace").arg(site.pace.0.to_string());
    for word in site.settings.words() {
        command.arg("--set").arg(word);
    }
    let stdio = |fd: Option<OwnedFd>| fd.map_or_else(Stdio::null, Stdio::from);
    command.stdin(stdio(spot.input)).stdout(stdio(spot.output));
    command.spawn().tried("a process cannot be started")
}

/// Wait until all processes have connected.
fn muster(
    listener: &UnixListener,
    herd: &mut Herd,
    number: usize,
) -> Result<Vec<UnixStream>, Error> {
    let begun = Instant::now();
    let mut lines = Vec::new();
    while lines.len() < number {
        match listener.accept() {
            Ok((line, _)) => {
                line.set_nonblocking(false).tried("a socket for the start")?;
                lines.push(line);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                let gone = herd.0.iter_mut().any(|child| !matches!(child.try_wait(), Ok(None)));
                if gone || begun.elapsed() > MUSTER {
                    return Err(Error::Worker("a process".to_owned()));
                }
                thread::sleep(Duration::from_millis(2));
            }
            Err(e) => return Err(e).tried("a socket for the start"),
        }
    }
    Ok(lines)
}

/// Be the worker `index` of a run that another process conducts in `folder`.
pub fn work(
    workload: &'static Workload,
    index: usize,
    settings: Settings,
    folder: &Path,
    pace: Pace,
) -> Result<(), Error> {
    be_called("lab");
    let site = Site { settings, folder: folder.to_owned(), pace };
    // Prepare before connecting: all start when the last has connected, and may use what others
    // created.
    let ready = (workload.worker)(&site, index);
    if let Ok(worker) = &ready {
        be_called(&worker.role);
    }
    let mut line = UnixStream::connect(socket(folder)).tried("the socket for the start")?;
    line.read_exact(&mut [0]).tried("the start")?;
    let clock = Clock::start(pace, site.lasts());
    let counted = ready.and_then(|worker| at_work(&clock, worker)).map(|mut tally| {
        tally.ask_about_process();
        tally
    });
    let reply: Reply = (index, counted.map_err(|e| e.to_string()));
    let text = serde_json::to_vec(&reply).map_err(io::Error::from).tried("what was counted")?;
    line.write_all(&text).tried("the end")
}

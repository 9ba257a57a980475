//! Parallel jobs at once, as PARbench makes them: each is a process whose threads compute in
//! rounds, meet after each, and now and then write a record to the disk.

use super::{cpu, plain};
use crate::clock::Clock;
use crate::count::Tally;
use crate::site::{Error, Made, Site, Tried, Worker};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

/// As many jobs as workers.
pub(crate) fn make(site: &Site) -> Result<Made, Error> {
    plain(site, Vec::new())
}

/// How threads meet: sleeping, or spinning on a word.
enum Meeting {
    Asleep(Barrier),
    Busy { members: usize, there: AtomicUsize, round: AtomicUsize },
}

impl Meeting {
    fn new(members: usize, busy: bool) -> Meeting {
        match busy {
            false => Meeting::Asleep(Barrier::new(members)),
            true => Meeting::Busy { members, there: 0.into(), round: 0.into() },
        }
    }

    fn meet(&self) {
        let Meeting::Busy { members, there, round } = self else {
            if let Meeting::Asleep(barrier) = self {
                barrier.wait();
            }
            return;
        };
        let now = round.load(Ordering::SeqCst);
        if there.fetch_add(1, Ordering::SeqCst) + 1 == *members {
            there.store(0, Ordering::SeqCst);
            round.store(now + 1, Ordering::SeqCst);
            return;
        }
        while round.load(Ordering::SeqCst) == now {
            std::hint::spin_loop();
        }
    }
}

/// State shared by the threads of a job.
struct Job {
    meeting: Meeting,
    rounds: u64,
    /// Work of one thread per round.
    work: u64,
    /// Per cent of rounds that end with a record.
    io: u64,
    file: File,
    cpu: Option<CpuSet>,
}

impl Job {
    fn run(&self, thread: usize, clock: &Clock, tally: &mut Tally) -> io::Result<()> {
        if let Some(cpu) = &self.cpu {
            sched_setaffinity(None, cpu)?;
        }
        for round in 0..self.rounds {
            clock.think(self.work, tally);
            // Spread evenly: a record is due when the accumulated share reaches a whole one.
            let due = (round + 1) * self.io / 100 > round * self.io / 100;
            if due && thread == 0 {
                self.file.write_all_at(&[1; 4096], 0)?;
                clock.wait(tally, || self.file.sync_data())?;
            }
            clock.wait(tally, || self.meeting.meet());
        }
        Ok(())
    }
}

/// The `index`th CPU that this process may use, starting over after the last.
fn one_cpu(index: usize) -> io::Result<CpuSet> {
    let all = sched_getaffinity(None)?;
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu)).collect();
    let Some(&cpu) = cpus.get(index % cpus.len().max(1)) else { return cpu::first_cpu() };
    let mut one = CpuSet::new();
    one.set(cpu);
    Ok(one)
}

/// A job; its first thread is the process's main thread.
pub(crate) fn worker(site: &Site, index: usize) -> Result<Worker, Error> {
    let threads = site.count("threads");
    let round = site.get("round").max(1000);
    let file = File::create(site.folder.join(format!("job-{index}"))).tried("a file")?;
    let bound = site.get("bound") > 0;
    let cpu = bound.then(|| one_cpu(index)).transpose().tried("a CPU for a job")?;
    let job = Arc::new(Job {
        meeting: Meeting::new(threads, site.get("busy") > 0),
        rounds: site.get("work") / round,
        work: round / threads as u64,
        io: site.get("io").min(100),
        file,
        cpu,
    });
    let delay = Duration::from_nanos(site.get("delay")) * u32::try_from(index).unwrap_or(0);
    Ok(Worker::new(format!("job-{index}"), move |clock, tally| {
        thread::sleep(delay);
        let helper = |i: usize| {
            let (job, clock) = (job.clone(), *clock);
            thread::Builder::new().name(format!("job-{index}.{i}")).spawn(move || {
                let mut tally = Tally::default();
                let done = job.run(i, &clock, &mut tally);
                tally.ask_kernel();
                done.map(|()| tally)
            })
        };
        let helpers = (1..threads).map(helper).collect::<io::Result<Vec<_>>>()?;
        job.run(0, clock, tally)?;
        (tally.run_ns, tally.queue_ns) = (Some(0), Some(0));
        for helper in helpers {
            let helped = helper.join().map_err(|_| io::Error::from(io::ErrorKind::Other))??;
            tally.add(&helped);
        }
        tally.units += job.rounds;
        Ok(())
    }))
}

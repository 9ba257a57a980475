//! Processes that contend for a semaphore or a message queue of the kernel.

use super::{culprit, of_a_worker, turns};
use crate::site::{Error, Made, Site, Spot, Tried, Worker};
use nix::mqueue::{MQ_OFlag, MqAttr, mq_close, mq_open, mq_receive, mq_send, mq_unlink};
use nix::sys::stat::Mode;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::AsFd;

/// A semaphore on the standard input of each process.
pub(crate) fn semaphore(site: &Site) -> Result<Made, Error> {
    let permits = u32::try_from(site.count("permits")).unwrap_or(u32::MAX - 1);
    let semaphore = eventfd(permits, EventfdFlags::SEMAPHORE).tried("eventfd")?;
    let spot = |_| {
        let input = semaphore.try_clone().tried("eventfd")?;
        Ok(Spot { input: Some(input), output: None })
    };
    let spots = (0..site.workers()).map(spot).collect::<Result<_, Error>>()?;
    // Its standard input is file 0.
    Ok(Made::processes(spots, vec![of_a_worker("fd 0"), culprit(&["eventfd"])]))
}

pub(crate) fn semaphore_worker(site: &Site, index: usize) -> Result<Worker, Error> {
    let turn = (site.get("think"), site.get("hold"));
    Ok(Worker::new(format!("sem-{index}"), move |clock, tally| {
        let semaphore = io::stdin();
        let fd = semaphore.as_fd();
        let enter = || Ok(rustix::io::read(fd, &mut [0; 8]).map(|_| ())?);
        let leave = || Ok(rustix::io::write(fd, &1_u64.to_ne_bytes()).map(|_| ())?);
        turns(clock, tally, turn, enter, leave)
    }))
}

/// The queue of the run in this folder.
fn queue_name(site: &Site) -> String {
    let folder = site.folder.file_name().map(|name| name.to_string_lossy().into_owned());
    format!("/{}", folder.unwrap_or_default())
}

/// A queue whose name is removed after the run.
struct Queue(String);

impl Drop for Queue {
    fn drop(&mut self) {
        let _ = mq_unlink(self.0.as_str());
    }
}

/// A queue with messages in it.
pub(crate) fn mqueue(site: &Site) -> Result<Made, Error> {
    let name = queue_name(site);
    let permits = site.count("permits");
    let room = MqAttr::new(0, permits as _, 8, 0);
    let how = MQ_OFlag::O_CREAT | MQ_OFlag::O_EXCL | MQ_OFlag::O_RDWR;
    let queue = mq_open(name.as_str(), how, Mode::S_IRWXU, Some(&room)).tried("a message queue")?;
    let keep = Queue(name);
    for _ in 0..permits {
        mq_send(&queue, b"go", 0).tried("a message queue")?;
    }
    mq_close(queue).tried("a message queue")?;
    let spots = (0..site.workers()).map(|_| Spot::default()).collect();
    let mut made = Made::processes(spots, vec![of_a_worker("mqueue"), of_a_worker("mq")]);
    made.keep = Some(Box::new(keep));
    Ok(made)
}

pub(crate) fn mqueue_worker(site: &Site, index: usize) -> Result<Worker, Error> {
    let name = queue_name(site);
    let queue = mq_open(name.as_str(), MQ_OFlag::O_RDWR, Mode::empty(), None);
    let queue = queue.tried("a message queue")?;
    let turn = (site.get("think"), site.get("hold"));
    Ok(Worker::new(format!("mqueue-{index}"), move |clock, tally| {
        let enter = || Ok(mq_receive(&queue, &mut [0; 8], &mut 0).map(|_| ())?);
        turns(clock, tally, turn, enter, || Ok(mq_send(&queue, b"go", 0)?))
    }))
}

//! Processes that are linked by pipes and sockets: a token in a pipe, a ring, a pipeline.

use super::{culprit, of_a_worker, turns};
use crate::site::{Error, Made, Site, Spot, Tried, Worker};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// A token.
const TOKEN: &[u8] = b"t";
/// A piece of work, so large that a pipe (64 KiB) holds sixteen. It is written atomically, because
/// `PIPE_BUF` is as large.
const PIECE: &[u8] = &[0; 4096];

/// Read `what` from the standard input; false at its end.
fn take(fd: impl AsFd, what: &[u8]) -> io::Result<bool> {
    let mut room = [0; PIECE.len()];
    Ok(rustix::io::read(fd, &mut room[..what.len()])? > 0)
}

/// Write `what` to the standard output; false if the reading end is closed.
fn pass(fd: impl AsFd, what: &[u8]) -> io::Result<bool> {
    match rustix::io::write(fd, what) {
        Ok(_) => Ok(true),
        Err(rustix::io::Errno::PIPE) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Tokens in one pipe that all processes read and write.
pub(crate) fn token(site: &Site) -> Result<Made, Error> {
    let (reader, mut writer) = io::pipe().tried("a pipe")?;
    writer.write_all(&vec![b't'; site.count("permits")]).tried("a pipe")?;
    let spot = |_| {
        let input = reader.try_clone().tried("a pipe")?.into();
        let output = writer.try_clone().tried("a pipe")?.into();
        Ok(Spot { input: Some(input), output: Some(output) })
    };
    let spots = (0..site.workers()).map(spot).collect::<Result<_, Error>>()?;
    Ok(Made::processes(spots, vec![of_a_worker("fd 0"), culprit(&["pipe"])]))
}

pub(crate) fn token_worker(site: &Site, index: usize) -> Result<Worker, Error> {
    let turn = (site.get("think"), site.get("hold"));
    Ok(Worker::new(format!("token-{index}"), move |clock, tally| {
        let (input, output) = (io::stdin(), io::stdout());
        turns(
            clock,
            tally,
            turn,
            || take(&input, TOKEN).map(|_| ()),
            || pass(&output, TOKEN).map(|_| ()),
        )
    }))
}

/// A socket from each process to the next one, and from the last to the first.
pub(crate) fn ring(site: &Site) -> Result<Made, Error> {
    let n = site.workers();
    let mut spots: Vec<Spot> = (0..n).map(|_| Spot::default()).collect();
    for token in 0..n {
        let (mut from, to) = UnixStream::pair().tried("a pair of sockets")?;
        if token < site.count("tokens") {
            from.write_all(b"t").tried("a pair of sockets")?;
        }
        spots[token].output = Some(OwnedFd::from(from));
        spots[(token + 1) % n].input = Some(OwnedFd::from(to));
    }
    Ok(Made::processes(spots, vec![of_a_worker("fd 0"), culprit(&["ring"])]))
}

pub(crate) fn ring_worker(site: &Site, index: usize) -> Result<Worker, Error> {
    let hold = site.get("hold");
    Ok(Worker::new(format!("ring-{index}"), move |clock, tally| {
        let (input, output) = (io::stdin(), io::stdout());
        // A process that stops passes the token on, so that the next process can stop.
        while clock.wait(tally, || take(&input, TOKEN))? {
            clock.hold(hold, tally);
            tally.units += 1;
            if !pass(&output, TOKEN)? || clock.over() {
                break;
            }
        }
        Ok(())
    }))
}

/// A pipe from each stage to the next one.
pub(crate) fn pipeline(site: &Site) -> Result<Made, Error> {
    let n = site.workers();
    let mut spots: Vec<Spot> = (0..n).map(|_| Spot::default()).collect();
    for i in 1..n {
        let (reader, writer) = io::pipe().tried("a pipe")?;
        spots[i - 1].output = Some(writer.into());
        spots[i].input = Some(reader.into());
    }
    let slowest = format!("stage-{}", n - 1);
    Ok(Made::processes(spots, vec![culprit(&["thread", &slowest])]))
}

/// A stage waits for a piece, works, and waits until the next stage has room for it.
pub(crate) fn stage(site: &Site, index: usize) -> Result<Worker, Error> {
    let last = site.workers() - 1;
    let (work, skew) = (site.get("work"), site.get("skew"));
    let more = work * skew / 100;
    let even = site.get("even") > 0;
    let share = if even {
        more / (last as u64 + 1)
    } else if index == last {
        more
    } else {
        0
    };
    let work = work + share;
    Ok(Worker::new(format!("stage-{index}"), move |clock, tally| {
        let (input, output) = (io::stdin(), io::stdout());
        while !clock.over() {
            if index > 0 && !clock.wait(tally, || take(&input, PIECE))? {
                break;
            }
            clock.hold(work, tally);
            if index < last && !clock.wait(tally, || pass(&output, PIECE))? {
                break;
            }
            tally.units += u64::from(index == last);
        }
        Ok(())
    }))
}

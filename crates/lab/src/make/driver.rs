//! Work that the kernel does for processes on one CPU: the input side of terminals.
//!
//! Data written to the master of a pseudo-terminal is handled by a kernel worker (`flush_to_ldisc`
//! of drivers/tty/tty_buffer.c), which runs on any CPU that /sys/devices/virtual/workqueue/cpumask
//! allows.

use super::culprit;
use crate::needs::WORKERS;
use crate::site::{Error, Made, Site, Spot, Tried, Worker};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::thread;

/// Restores the previous mask.
struct Mask(String);

impl Mask {
    fn only_first() -> Result<Mask, Error> {
        let before = fs::read_to_string(WORKERS).tried(WORKERS)?;
        let mask = Mask(before);
        fs::write(WORKERS, "1").tried(WORKERS)?;
        Ok(mask)
    }
}

impl Drop for Mask {
    fn drop(&mut self) {
        if let Err(e) = fs::write(WORKERS, self.0.trim()) {
            eprintln!("holdup: {WORKERS} could not be restored to {}: {e}", self.0.trim());
        }
    }
}

/// A terminal for each process, which writes to it and reads what arrives.
pub(crate) fn terminal(site: &Site) -> Result<Made, Error> {
    let spots = (0..site.workers()).map(|_| Spot::default()).collect();
    let mut made = Made::processes(spots, vec![culprit(&["kworker"]), culprit(&["CPU 0"])]);
    if site.get("funnel") > 0 {
        made.keep = Some(Box::new(Mask::only_first()?));
    }
    Ok(made)
}

/// Both ends of a new terminal in raw mode.
fn pair() -> io::Result<(OwnedFd, fs::File)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let name = name.into_string().map_err(io::Error::other)?;
    let slave = fs::File::options().read(true).write(true).open(name)?;
    let mut modes = tcgetattr(&slave)?;
    modes.make_raw();
    tcsetattr(&slave, OptionalActions::Now, &modes)?;
    Ok((master, slave))
}

pub(crate) fn terminal_worker(site: &Site, index: usize) -> Result<Worker, Error> {
    let (master, slave) = pair().tried("a pseudo-terminal")?;
    let size = usize::try_from(site.get("size")).unwrap_or(0).clamp(1, 4000);
    let think = site.get("think");
    Ok(Worker::new(format!("term-{index}"), move |clock, tally| {
        let reader = thread::Builder::new().name(format!("read-{index}")).spawn(move || {
            let mut bytes = [0; 4096];
            // Reading ends when the master is closed.
            while rustix::io::read(&slave, &mut bytes).is_ok_and(|n| n > 0) {}
        })?;
        let bytes = vec![b'x'; size];
        while !clock.over() {
            clock.think(think, tally);
            clock.wait(tally, || rustix::io::write(&master, &bytes))?;
            tally.units += 1;
        }
        drop(master);
        reader.join().map_err(|_| io::ErrorKind::Other.into())
    }))
}

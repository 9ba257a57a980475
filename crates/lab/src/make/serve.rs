//! Clients that send requests to servers over sockets, and wait for each answer.

use super::culprit;
use crate::site::{Error, Made, Site, Spot, Tried, Worker};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

/// How often an idle server checks the clock.
const LOOK: Duration = Duration::from_millis(50);

/// The socket path of a process.
fn place(site: &Site, role: &str, number: usize) -> PathBuf {
    site.folder.join(format!("{role}-{number}"))
}

/// As many clients as workers, and the servers.
pub(crate) fn make(site: &Site) -> Result<Made, Error> {
    let servers = site.count("servers");
    let spots = (0..site.workers() + servers).map(|_| Spot::default()).collect();
    let culprits = (0..servers).map(|i| culprit(&["thread", &format!("server-{i}")])).collect();
    Ok(Made::processes(spots, culprits))
}

/// A client or, for higher indices, a server.
pub(crate) fn worker(site: &Site, index: usize) -> Result<Worker, Error> {
    let clients = site.workers();
    let bind = |role: &str, number| {
        UnixDatagram::bind(place(site, role, number))
            .tried(format!("the socket of {role} {number}"))
    };
    if index >= clients {
        let number = index - clients;
        let (socket, service) = (bind("server", number)?, site.get("service"));
        socket.set_read_timeout(Some(LOOK)).tried("a limit of time for a socket")?;
        return Ok(Worker::new(format!("server-{number}"), move |clock, tally| {
            let mut request = [0; 64];
            while !clock.over() {
                let Ok((_, from)) = clock.wait(tally, || socket.recv_from(&mut request)) else {
                    continue;
                };
                clock.hold(service, tally);
                // Errors are ignored, because a client that has ended needs no answer.
                if let Some(path) = from.as_pathname() {
                    let _ = socket.send_to(&request, path);
                }
            }
            Ok(())
        }));
    }
    let (socket, think) = (bind("client", index)?, site.get("think"));
    let server = place(site, "server", index % site.count("servers"));
    Ok(Worker::new(format!("client-{index}"), move |clock, tally| {
        let mut answer = [0; 64];
        while !clock.over() {
            clock.think(think, tally);
            let left = clock.left().max(Duration::from_millis(1));
            socket.set_read_timeout(Some(left))?;
            let answered = clock.wait(tally, || {
                socket.send_to(&[0; 64], &server)?;
                socket.recv(&mut answer)
            });
            // No answer means that the time is over or the server has ended.
            if answered.is_err() {
                break;
            }
            tally.units += 1;
        }
        Ok(())
    }))
}

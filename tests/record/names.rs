//! What threads wait for has the names that `/proc` knows.

use crate::support::holdup;
use crate::{done, place, recorder};
use holdup_testkit::needs;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A client of this process asks a server of it again and again, in calls that are not recorded,
/// while `record` looks on.
#[needs(tracepoints)]
#[test]
fn a_socket_is_called_by_its_peer() {
    let (_folder, file) = place();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut byte = [0];
            while server.read(&mut byte).is_ok_and(|n| n > 0) {
                thread::sleep(Duration::from_millis(2));
                server.write_all(&byte).unwrap();
            }
        });
        scope.spawn(|| {
            let mut byte = [1];
            while !over.load(Ordering::Relaxed) {
                client.write_all(&byte).unwrap();
                client.read_exact(&mut byte).unwrap();
            }
            client.shutdown(std::net::Shutdown::Both).unwrap();
        });
        done(recorder(&file).args(["--duration", "1s"]));
        over.store(true, Ordering::Relaxed);
    });
    let pid = std::process::id();
    let mut waits = holdup();
    waits.args(["waits", "-j", "-n", "0", "-p", &pid.to_string()]).arg(&file);
    let answer: Value = serde_json::from_slice(&done(&mut waits).stdout).unwrap();
    let rows = answer["rows"].as_array().unwrap();
    let to = format!("to {address} (");
    let is_it = |row: &&Value| row["object"].as_str().unwrap().starts_with(&to);
    let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("no {to} in {rows:#?}"));
    assert_eq!(row["kind"], "socket");
    assert!(row["waits"].as_u64() > Some(50), "{row}");
}

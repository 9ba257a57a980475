//! The peer of a Unix socket: the kernel provides it by netlink (`sock_diag(7)`), not in `/proc`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};

/// `SOCK_DIAG_BY_FAMILY`, and the end of the answer.
const BY_FAMILY: u16 = 20;
const DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// `UDIAG_SHOW_PEER`, and the attribute in the answer (`UNIX_DIAG_PEER`).
const SHOW_PEER: u32 = 4;
const PEER: u16 = 2;
/// Size of a message's header, of `struct unix_diag_msg`, and of an attribute's header.
const HEADER: usize = 16;
const MESSAGE: usize = 16;
const ATTRIBUTE: usize = 4;

/// For each connected socket the number of its peer.
pub(super) fn peers() -> io::Result<HashMap<u64, u64>> {
    let mut socket = File::from(open()?);
    let mut request = Vec::with_capacity(HEADER + 24);
    request.extend_from_slice(&((HEADER + 24) as u32).to_ne_bytes());
    request.extend_from_slice(&BY_FAMILY.to_ne_bytes());
    request.extend_from_slice(&DUMP.to_ne_bytes());
    request.extend_from_slice(&[0; 8]);
    // In any state, with any number.
    request.extend_from_slice(&[libc::AF_UNIX as u8, 0, 0, 0]);
    request.extend_from_slice(&u32::MAX.to_ne_bytes());
    request.extend_from_slice(&0_u32.to_ne_bytes());
    request.extend_from_slice(&SHOW_PEER.to_ne_bytes());
    request.extend_from_slice(&[0xff; 8]);
    socket.write_all(&request)?;
    let mut peers = HashMap::new();
    let mut answer = vec![0; 1 << 16];
    loop {
        let n = socket.read(&mut answer)?;
        if n == 0 || !take(&answer[..n], &mut peers) {
            return Ok(peers);
        }
    }
}

/// Parses messages; false after the last one, and for anything unexpected.
fn take(mut messages: &[u8], peers: &mut HashMap<u64, u64>) -> bool {
    while !messages.is_empty() {
        let Some((kind, body, rest)) = split(messages) else { return false };
        if kind == DONE || kind != BY_FAMILY {
            return false;
        }
        if let Some((number, peer)) = peer(body) {
            peers.insert(number.into(), peer.into());
        }
        messages = rest;
    }
    true
}

/// The first message: its type, its content, and the following messages.
fn split(messages: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let len = u32::from_ne_bytes(*messages.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(*messages.get(4..)?.first_chunk()?);
    let body = messages.get(HEADER..len)?;
    let next = len.next_multiple_of(4).min(messages.len());
    Some((kind, body, &messages[next..]))
}

/// The numbers of a socket and of its peer, if it has one.
fn peer(body: &[u8]) -> Option<(u32, u32)> {
    let number = u32::from_ne_bytes(*body.get(4..)?.first_chunk()?);
    let mut rest = body.get(MESSAGE..)?;
    loop {
        let len = u16::from_ne_bytes(*rest.first_chunk()?) as usize;
        let kind = u16::from_ne_bytes(*rest.get(2..)?.first_chunk()?);
        let value = rest.get(ATTRIBUTE..len)?;
        if kind == PEER {
            return Some((number, u32::from_ne_bytes(*value.first_chunk()?)));
        }
        rest = rest.get(len.next_multiple_of(4)..)?;
    }
}

#[allow(unsafe_code, reason = "a system call")]
fn open() -> io::Result<OwnedFd> {
    const SOCK_DIAG: i32 = 4;
    // SAFETY: it creates a descriptor, or returns an error.
    let fd =
        unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, SOCK_DIAG) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was just created, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_answers_end_the_list() {
        let mut peers = HashMap::new();
        let mut message = Vec::new();
        message.extend_from_slice(&40_u32.to_ne_bytes());
        message.extend_from_slice(&BY_FAMILY.to_ne_bytes());
        message.extend_from_slice(&[0; 10]);
        message.extend_from_slice(&[1, 1, 1, 0]);
        message.extend_from_slice(&7_u32.to_ne_bytes());
        message.extend_from_slice(&[0; 8]);
        message.extend_from_slice(&8_u16.to_ne_bytes());
        message.extend_from_slice(&PEER.to_ne_bytes());
        message.extend_from_slice(&9_u32.to_ne_bytes());
        assert!(take(&message, &mut peers));
        assert_eq!(peers, HashMap::from([(7, 9)]));
        for cut in 1..message.len() {
            assert!(!take(&message[..cut], &mut HashMap::new()), "{cut}");
        }
        let mut endless = message.clone();
        endless[32] = 0;
        assert!(take(&endless, &mut HashMap::new()));
    }
}

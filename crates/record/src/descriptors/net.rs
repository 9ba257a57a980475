//! Sockets by number: their addresses in `/proc/net`, by network namespace.

use super::{Link, inode, unix};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Maximal number of namespaces read: a host with more containers has names in some of them.
const NAMESPACES: usize = 64;
/// The state of a listening socket (`TCP_LISTEN`).
const LISTEN: u8 = 0x0a;

/// Names of sockets, by number.
///
/// The kernel lists its connections by walking a table whose size depends on memory, which takes
/// milliseconds. So a socket keeps its name, and connections are listed only if a socket has no
/// name and is not of another kind either.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    names: HashMap<u64, String>,
}

/// Sockets of a network namespace without names yet, and the place of that namespace in `/proc`.
struct Asked<'a> {
    net: PathBuf,
    is_own: bool,
    numbers: Vec<u64>,
    /// The owner of each socket: the name of the first process that has it.
    owners: &'a HashMap<u64, String>,
}

impl Sockets {
    /// Finds the missing names.
    pub(super) fn learn(&mut self, proc: &Path, links: &[Link]) {
        let numbers: HashSet<u64> = links.iter().filter_map(|link| inode(&link.to)).collect();
        if numbers.iter().all(|number| self.names.contains_key(number)) {
            return;
        }
        self.names.retain(|number, _| numbers.contains(number));
        let own = fs::read_link(proc.join("self/ns/net")).ok();
        let mut owners: HashMap<u64, String> = HashMap::new();
        let mut asked: HashMap<PathBuf, (PathBuf, Vec<u64>)> = HashMap::new();
        for link in links {
            let Some(number) = inode(&link.to) else { continue };
            let folder = proc.join(link.pid.0.to_string());
            let comm = || fs::read_to_string(folder.join("comm")).unwrap_or_default();
            owners.entry(number).or_insert_with(|| comm().trim_end().to_owned());
            if self.names.contains_key(&number) {
                continue;
            }
            let Ok(namespace) = fs::read_link(folder.join("ns/net")) else { continue };
            if asked.len() < NAMESPACES || asked.contains_key(&namespace) {
                let of = asked.entry(namespace).or_insert_with(|| (folder.join("net"), Vec::new()));
                of.1.push(number);
            }
        }
        for (namespace, (net, numbers)) in asked {
            let is_own = own.as_ref() == Some(&namespace);
            let asked = Asked { net, is_own, numbers, owners: &owners };
            self.names.extend(asked.names());
        }
    }

    /// `to 10.0.0.7:5432`, `on 0.0.0.0:80`, `on 10.0.0.7:80 from 10.0.0.9:51324`, with the process
    /// at the other end if it is on this machine. Empty if unknown.
    pub(super) fn name(&self, number: u64) -> String {
        self.names.get(&number).cloned().unwrap_or_default()
    }
}

impl Asked<'_> {
    /// The names; empty for a socket of a kind without names.
    fn names(mut self) -> HashMap<u64, String> {
        let mut names = HashMap::new();
        let text = fs::read_to_string(self.net.join("netlink")).unwrap_or_default();
        let nameless = text.lines().filter_map(|l| l.split_ascii_whitespace().last()?.parse().ok());
        names.extend(nameless.map(|number| (number, String::new())));
        let text = fs::read_to_string(self.net.join("unix")).unwrap_or_default();
        let local: HashMap<u64, &str> = text.lines().filter_map(line_of_unix).collect();
        let peers = if self.is_own { unix::peers().unwrap_or_default() } else { HashMap::new() };
        for (&number, own) in &local {
            names.insert(number, self.local(own, peers.get(&number), &local));
        }
        self.numbers.retain(|number| !names.contains_key(number));
        if !self.numbers.is_empty() {
            names.extend(self.connected());
        }
        names
    }

    fn who(&self, peer: Option<&u64>) -> String {
        match peer.and_then(|peer| self.owners.get(peer)) {
            Some(name) if !name.is_empty() => format!(" ({name})"),
            _ => String::new(),
        }
    }

    /// The name of a Unix socket: the client has no path, but its peer has the server's.
    fn local(&self, own: &str, peer: Option<&u64>, all: &HashMap<u64, &str>) -> String {
        let theirs = peer.and_then(|peer| all.get(peer)).copied().unwrap_or_default();
        match (own, theirs, self.who(peer)) {
            ("", "", who) if who.is_empty() => who,
            ("", "", who) => format!("to{who}"),
            ("", theirs, who) => format!("to {theirs}{who}"),
            (own, _, who) => format!("on {own}{who}"),
        }
    }

    /// Names of internet sockets.
    fn connected(&self) -> HashMap<u64, String> {
        let mut all = Vec::new();
        for (file, tcp) in [("tcp", true), ("tcp6", true), ("udp", false), ("udp6", false)] {
            let text = fs::read_to_string(self.net.join(file)).unwrap_or_default();
            all.extend(text.lines().filter_map(|line| line_of_inet(line, tcp)));
        }
        let listens = |s: &&(u64, Inet)| s.1.listens;
        let served: HashSet<u16> = all.iter().filter(listens).map(|s| s.1.local.port()).collect();
        let by_ends: HashMap<_, u64> =
            all.iter().map(|(number, s)| ((s.local, s.remote), *number)).collect();
        let name = |s: &Inet| {
            let peer = self.who(by_ends.get(&(s.remote, s.local)));
            match (s.remote.port() == 0, served.contains(&s.local.port())) {
                (true, _) => format!("on {}", s.local),
                (false, true) => format!("on {} from {}{peer}", s.local, s.remote),
                (false, false) => format!("to {}{peer}", s.remote),
            }
        };
        let asked: HashSet<&u64> = self.numbers.iter().collect();
        all.iter().filter(|s| asked.contains(&s.0)).map(|(n, s)| (*n, name(s))).collect()
    }
}

/// An internet socket.
struct Inet {
    local: SocketAddr,
    remote: SocketAddr,
    listens: bool,
}

/// `0: 0100007F:1B5A 0100007F:C350 01 00000000:00000000 … UID TIMEOUT INODE …`.
fn line_of_inet(line: &str, tcp: bool) -> Option<(u64, Inet)> {
    let mut words = line.split_ascii_whitespace();
    let (local, remote) = (address(words.nth(1)?)?, address(words.next()?)?);
    let state = u8::from_str_radix(words.next()?, 16).ok()?;
    let number = words.nth(5)?.parse().ok()?;
    Some((number, Inet { local, remote, listens: tcp && state == LISTEN }))
}

/// `0100007F:1B5A`: words in the byte order of the machine, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let word = u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let mut bytes = [0; 16];
            for (to, at) in bytes.chunks_exact_mut(4).zip((0..32).step_by(8)) {
                to.copy_from_slice(&word(at)?);
            }
            // An IPv4 client of an IPv6 socket is written like at its own end.
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// `ffff…: 00000002 00000000 00010000 0001 01 4711 /run/socket`; most have no path.
fn line_of_unix(line: &str) -> Option<(u64, &str)> {
    let mut rest = line;
    for _ in 0..6 {
        rest = rest.trim_start().split_once(' ')?.1;
    }
    let rest = rest.trim_start();
    let (number, path) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((number.parse().ok()?, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_that_people_write() {
        if cfg!(target_endian = "little") {
            assert_eq!(address("0100007F:1B5A").unwrap().to_string(), "127.0.0.1:7002");
            let six = "00000000000000000000000001000000:0050";
            assert_eq!(address(six).unwrap().to_string(), "[::1]:80");
            let four = "0000000000000000FFFF00000100007F:0050";
            assert_eq!(address(four).unwrap().to_string(), "127.0.0.1:80");
        }
        assert_eq!(address("x:1"), None);
    }

    #[test]
    fn paths_may_hold_blanks_and_most_sockets_have_none() {
        let with = "0000000029549e0a: 00000002 00000000 00010000 0001 01 62908 /run/a b";
        assert_eq!(line_of_unix(with), Some((62908, "/run/a b")));
        let short = "000000002a462ee3: 00000003 00000000 00000000 0001 03    68 @abstract";
        assert_eq!(line_of_unix(short), Some((68, "@abstract")));
        let without = "000000002a462ee3: 00000003 00000000 00000000 0001 03    68";
        assert_eq!(line_of_unix(without), Some((68, "")));
        assert_eq!(line_of_unix("Num       RefCount Protocol Flags    Type St Inode Path"), None);
    }
}

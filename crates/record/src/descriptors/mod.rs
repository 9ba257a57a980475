//! What descriptors refer to: `/proc/PID/fd`, read now and then during a recording.
//!
//! ```text
//!  a thread of its own            the thread that controls the recording
//!  waits for an order  ◄───────── a round is over, and a look is due: the time so far
//!  reads /proc         ─────────► the next round is over: the time after the look
//! ```
//!
//! A look lies between two event times: one read before it, and one read after it. Readers use it
//! only for descriptors that were the same during all of that time. The first look begins with the
//! recording, the second at the end of its first round, and each later one when twice as much time
//! has passed, but not sooner than a hundred times the CPU time of the last one. So looking takes
//! at most a hundredth of one CPU, and descriptors that live for a moment have no name.

mod net;
mod unix;

use crate::file::host::numbered;
use holdup_trace::{DescriptorKind, Descriptors, Nanos, Pid, Seen};
use net::Sockets;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The pause after a look, in multiples of its CPU time.
const REST: u32 = 100;
/// Maximal number of descriptors per look: a machine with more has names for some of them.
const MOST: usize = 1 << 18;

/// Everything seen so far.
#[derive(Debug)]
pub struct Looks {
    proc: PathBuf,
    all: Descriptors,
    sockets: Sockets,
    /// For each descriptor in the last look, its index in `all`.
    last: HashMap<(Pid, u32), usize>,
    /// When the next one may begin.
    next: Instant,
    began: Instant,
}

impl Looks {
    /// Looks at the processes in `proc`; the first look is due at once.
    pub fn new(proc: &Path) -> Looks {
        let now = Instant::now();
        Looks {
            proc: proc.to_owned(),
            all: Descriptors::default(),
            sockets: Sockets::default(),
            last: HashMap::new(),
            next: now,
            began: now,
        }
    }

    /// Whether a look is due.
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// Takes a look. It is not used before [`Looks::ends`] sets the time of its end.
    pub fn look(&mut self, before: Nanos) {
        let begin = own_cpu_time();
        let number = self.all.looks.len() as u32;
        // Until then it ends at the end of time: no event comes after that.
        self.all.looks.push((before, Nanos::MAX));
        let mut seen = HashMap::new();
        for found in look(&self.proc, &mut self.sockets) {
            let key = (found.pid, found.fd);
            let same = |&at: &usize| {
                let s: &Seen = &self.all.seen[at];
                (s.kind, &s.name) == (found.kind, &found.name)
            };
            let at = match self.last.get(&key).copied().filter(same) {
                Some(at) => at,
                None => {
                    self.all.seen.push(Seen { looks: (number, number), ..found });
                    self.all.seen.len() - 1
                }
            };
            self.all.seen[at].looks.1 = number;
            seen.insert(key, at);
        }
        self.last = seen;
        let took = own_cpu_time().saturating_sub(begin);
        let rest = took.saturating_mul(REST).max(self.began.elapsed());
        // The second look is due at once: processes started with the recording exist by now.
        self.next = Instant::now() + if number == 0 { Duration::ZERO } else { rest };
    }

    /// All looks so far were over at this time.
    pub fn ends(&mut self, after: Nanos) {
        for look in self.all.looks.iter_mut().rev().take_while(|look| look.1 == Nanos::MAX) {
            look.1 = after.max(look.0);
        }
    }

    /// All looks as the text of a file's section; `None` before the first look.
    pub fn text(&self) -> Option<String> {
        (!self.all.looks.is_empty()).then(|| self.all.text())
    }
}

/// A descriptor as `/proc` shows it.
struct Link {
    pid: Pid,
    fd: u32,
    to: String,
}

/// All current descriptors, named as far as possible.
fn look(proc: &Path, sockets: &mut Sockets) -> Vec<Seen> {
    let mut links = Vec::new();
    for pid in numbered(proc, "") {
        let folder = proc.join(pid.to_string()).join("fd");
        for fd in numbered(&folder, "") {
            let Ok(to) = fs::read_link(folder.join(fd.to_string())) else { continue };
            links.push(Link { pid: Pid(pid), fd, to: to.to_string_lossy().into_owned() });
        }
        if links.len() >= MOST {
            break;
        }
    }
    sockets.learn(proc, &links);
    links.into_iter().filter_map(|link| named(link, sockets)).collect()
}

/// Description of what a link refers to.
fn named(link: Link, sockets: &Sockets) -> Option<Seen> {
    let (kind, name) = match link.to.as_str() {
        "anon_inode:[eventfd]" => (DescriptorKind::Eventfd, String::new()),
        "anon_inode:[timerfd]" => (DescriptorKind::Timerfd, String::new()),
        to if to.starts_with("pipe:[") => (DescriptorKind::Pipe, String::new()),
        to if to.starts_with('/') => (DescriptorKind::File, to.to_owned()),
        to => (DescriptorKind::Socket, sockets.name(inode(to)?)),
    };
    Some(Seen { pid: link.pid, fd: link.fd, looks: (0, 0), kind, name })
}

/// CPU time of this thread; time waiting for a CPU does not count.
fn own_cpu_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split_ascii_whitespace().next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}

/// The number of a socket: `socket:[4711]`.
fn inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    /// The name of this process's descriptor in a look taken now.
    fn name(looks: &mut Looks, fd: &impl AsRawFd) -> (DescriptorKind, String) {
        looks.look(0);
        looks.ends(10);
        let text = looks.text().unwrap();
        let read = Descriptors::parse(text.as_bytes()).unwrap();
        let pid = Pid(std::process::id());
        let seen = read.get(pid, fd.as_raw_fd() as u32, 0, u64::MAX).unwrap();
        (seen.kind, seen.name.clone())
    }

    #[test]
    fn files_and_peers_have_names() {
        let mut looks = Looks::new(Path::new("/proc"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a file");
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(b"x").unwrap();
        let path = path.to_str().unwrap().to_owned();
        assert_eq!(name(&mut looks, &file), (DescriptorKind::File, path));

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let client = TcpStream::connect(at).unwrap();
        let (server, from) = listener.accept().unwrap();
        let socket = |name: String| (DescriptorKind::Socket, name);
        let own = fs::read_to_string("/proc/self/comm").unwrap().trim().to_owned();
        assert_eq!(name(&mut looks, &listener), socket(format!("on {at}")));
        assert_eq!(name(&mut looks, &client), socket(format!("to {at} ({own})")));
        assert_eq!(name(&mut looks, &server), socket(format!("on {at} from {from} ({own})")));
        assert!(!looks.is_due(), "the third look and those after it come later");
    }

    #[test]
    fn sockets_of_the_machine_itself_have_the_path_of_the_server() {
        let mut looks = Looks::new(Path::new("/proc"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let (server, _) = listener.accept().unwrap();
        let path = path.to_str().unwrap();
        assert_eq!(name(&mut looks, &listener).1, format!("on {path}"));
        assert!(name(&mut looks, &server).1.starts_with(&format!("on {path}")));
        // The kernel may not tell which process is at the other end.
        let client = name(&mut looks, &client).1;
        assert!(client.is_empty() || client.starts_with(&format!("to {path}")), "{client}");
    }

    #[test]
    fn what_is_the_same_in_many_looks_is_kept_once() {
        let mut looks = Looks::new(Path::new("/proc"));
        let file = fs::File::open("/dev/null").unwrap();
        name(&mut looks, &file);
        let first = looks.all.seen.len();
        name(&mut looks, &file);
        let own = |s: &&Seen| s.pid.0 == std::process::id() && s.fd == file.as_raw_fd() as u32;
        let seen: Vec<&Seen> = looks.all.seen.iter().filter(own).collect();
        assert_eq!((seen.len(), seen[0].looks), (1, (0, 1)));
        assert!(looks.all.seen.len() < 2 * first);
        assert_eq!(looks.all.looks, [(0, 10), (0, 10)]);
    }
}

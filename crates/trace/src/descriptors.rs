//! What descriptors of processes referred to, from looks that a recorder took now and then.
//!
//! Events say when a call created or closed a descriptor, but not which file or peer it refers to:
//! paths and addresses are behind pointers. A recorder that reads `/proc/PID/fd` meanwhile knows
//! this for descriptors that were open when it looked.

use crate::{Nanos, Pid};
use std::fmt::Write;

/// The first line of the text.
const MAGIC: &str = "holdup descriptors 1";

/// The kind of object that a descriptor refers to, as far as the tables distinguish kinds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DescriptorKind {
    /// A file, directory or device.
    File,
    /// A socket.
    Socket,
    /// A pipe.
    Pipe,
    /// An eventfd.
    Eventfd,
    /// A timerfd.
    Timerfd,
}

impl DescriptorKind {
    /// All of them.
    const ALL: [DescriptorKind; 5] = [
        DescriptorKind::File,
        DescriptorKind::Socket,
        DescriptorKind::Pipe,
        DescriptorKind::Eventfd,
        DescriptorKind::Timerfd,
    ];

    /// Its name in the `kind` column of waits.
    pub fn name(self) -> &'static str {
        match self {
            DescriptorKind::File => "file",
            DescriptorKind::Socket => "socket",
            DescriptorKind::Pipe => "pipe",
            DescriptorKind::Eventfd => "eventfd",
            DescriptorKind::Timerfd => "timerfd",
        }
    }

    fn of(word: &str) -> Option<DescriptorKind> {
        DescriptorKind::ALL.into_iter().find(|kind| kind.name() == word)
    }
}

/// One descriptor in successive looks, with the same target in all of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// The process.
    pub pid: Pid,
    /// Its number.
    pub fd: u32,
    /// The first and the last of the looks, as indexes in [`Descriptors::looks`].
    pub looks: (u32, u32),
    /// The kind of its target.
    pub kind: DescriptorKind,
    /// Its name, such as `/var/log/syslog` or `to 127.0.0.1:5432 (postgres)`; empty if only the
    /// kind is known.
    pub name: String,
}

/// Descriptors that a recorder looked at.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Descriptors {
    /// The times of the looks, each between an event before it and one after it, in order.
    pub looks: Vec<(Nanos, Nanos)>,
    /// What was seen, by process, number and look.
    pub seen: Vec<Seen>,
}

impl Descriptors {
    /// What a descriptor referred to that was the same from `since` to `until`: by the latest look
    /// in that span. `since` is 0 for a descriptor that no call in the trace created.
    pub fn get(&self, pid: Pid, fd: u32, since: Nanos, until: Nanos) -> Option<&Seen> {
        let from = self.seen.partition_point(|s| (s.pid, s.fd) < (pid, fd));
        let of = self.seen[from..].iter().take_while(|s| (s.pid, s.fd) == (pid, fd));
        let meanwhile = |s: &&Seen| {
            let (first, last) = (s.looks.0 as usize, s.looks.1 as usize);
            let looks = self.looks.get(first..=last).unwrap_or(&[]);
            looks.iter().any(|&(before, after)| before >= since && after <= until)
        };
        of.filter(meanwhile).max_by_key(|s| s.looks)
    }

    /// As text, which [`Descriptors::parse`] reads.
    pub fn text(&self) -> String {
        let mut text = format!("{MAGIC}\n");
        for (before, after) in &self.looks {
            let _ = writeln!(text, "look {before} {after}");
        }
        for s in &self.seen {
            let name: String =
                s.name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            let (kind, (first, last)) = (s.kind.name(), s.looks);
            let _ = writeln!(text, "{} {} {first} {last} {kind} {name}", s.pid.0, s.fd);
        }
        text
    }

    /// Parses the text of [`Descriptors::text`]. Damaged lines and lines of unknown kinds are
    /// skipped; `None` if it is not such a text.
    pub fn parse(text: &[u8]) -> Option<Descriptors> {
        let text = String::from_utf8_lossy(text);
        let mut lines = text.lines();
        if lines.next()? != MAGIC {
            return None;
        }
        let mut all = Descriptors::default();
        for line in lines {
            match line.strip_prefix("look ") {
                Some(times) => all.looks.extend(look(times)),
                None => all.seen.extend(seen(line)),
            }
        }
        all.seen.sort_by_key(|s| (s.pid, s.fd, s.looks));
        Some(all)
    }
}

fn look(times: &str) -> Option<(Nanos, Nanos)> {
    let (before, after) = times.split_once(' ')?;
    Some((before.parse().ok()?, after.parse().ok()?))
}

fn seen(line: &str) -> Option<Seen> {
    let mut words = line.splitn(6, ' ');
    let pid = Pid(words.next()?.parse().ok()?);
    let fd = words.next()?.parse().ok()?;
    let looks = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let kind = DescriptorKind::of(words.next()?)?;
    Some(Seen { pid, fd, looks, kind, name: words.next().unwrap_or("").to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptors() -> Descriptors {
        let seen = |fd, looks, kind, name: &str| Seen {
            pid: Pid(7),
            fd,
            looks,
            kind,
            name: name.to_owned(),
        };
        Descriptors {
            looks: vec![(0, 10), (20, 30), (40, 50)],
            seen: vec![
                seen(3, (0, 1), DescriptorKind::File, "/a b"),
                seen(3, (2, 2), DescriptorKind::Socket, "to 127.0.0.1:80 (web)"),
                seen(4, (0, 2), DescriptorKind::Pipe, ""),
            ],
        }
    }

    #[test]
    fn the_text_is_read_as_it_was_written() {
        let all = descriptors();
        assert_eq!(Descriptors::parse(all.text().as_bytes()), Some(all));
        assert_eq!(Descriptors::parse(b"something else"), None);
    }

    #[test]
    fn damaged_lines_tell_nothing() {
        let text = "holdup descriptors 1\nlook 1\nlook 1 2\n1 2\n7 3 0 0 moon x\n7 3 9 2 file /x\n";
        let all = Descriptors::parse(text.as_bytes()).unwrap();
        assert_eq!((all.looks.len(), all.seen.len()), (1, 1));
        assert_eq!(all.get(Pid(7), 3, 0, u64::MAX), None);
    }

    #[test]
    fn a_name_counts_only_if_the_descriptor_was_the_same_when_it_was_looked_at() {
        let all = descriptors();
        let name = |fd, since, until| Some(all.get(Pid(7), fd, since, until)?.name.as_str());
        assert_eq!(name(3, 0, 35), Some("/a b"));
        // Created after the second look began, or closed before the first one ended.
        assert_eq!(name(3, 21, u64::MAX), Some("to 127.0.0.1:80 (web)"));
        assert_eq!(name(3, 41, u64::MAX), None);
        assert_eq!(name(3, 0, 9), None);
        // Neither creation nor close was recorded: the latest look.
        assert_eq!(name(3, 0, u64::MAX), Some("to 127.0.0.1:80 (web)"));
        assert_eq!((name(4, 35, 60), name(5, 0, u64::MAX)), (Some(""), None));
    }
}

//! Resolves names on the command line to objects, threads or system calls of the trace.

use super::args::Asked;
use crate::exit::{Failure, Result, usage};
use holdup_passes::{Analysis, Group, LockBy};
use holdup_replay::{Change, ObjectId, Part, Program};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Most names that an error lists.
const LISTED: usize = 8;
/// A word of this many hexadecimal digits is an address even without `0x`.
const ADDRESS_DIGITS: usize = 8;

/// The objects, threads and calls that can be named.
pub(super) struct Chooser<'a> {
    analysis: &'a Analysis,
    program: &'a Program,
}

impl<'a> Chooser<'a> {
    pub(super) fn new(analysis: &'a Analysis, program: &'a Program) -> Chooser<'a> {
        Chooser { analysis, program }
    }

    /// The requested change of this program.
    pub(super) fn change(&self, asked: &Asked) -> Result<Change> {
        Ok(match asked {
            Asked::Lock { object, how } => Change::Lock(self.object(object)?, *how),
            Asked::Split { thread, parts } => {
                Change::Split(self.thread("--server", thread)?, *parts)
            }
            Asked::SpreadIrqs => Change::SpreadIrqs,
            Asked::Speed { thread, times } => {
                Change::Speed(self.thread("--speed", thread)?, *times)
            }
            Asked::Calls { name, factor } => self.calls(name, *factor)?,
            Asked::NoDevices => Change::NoDevices,
            Asked::AnyCpu => Change::AnyCpu,
            Asked::NoQuota => Change::NoQuota,
            Asked::Deal => Change::Deal,
        })
    }

    fn object(&self, word: &str) -> Result<ObjectId> {
        let objects = &self.program.objects;
        let all = || (0..objects.len()).map(|i| (i, objects[i].name.as_str()));
        let lower = word.to_lowercase();
        let address = address(&lower).or_else(|| self.lock_named(word));
        let exact: Vec<usize> = all().filter(|(_, name)| *name == word).map(|o| o.0).collect();
        let at: Vec<usize> = all()
            .filter(|(_, name)| address.is_some_and(|a| has_address(name, a)))
            .map(|o| o.0)
            .collect();
        let parts = || all().filter(|(_, name)| name.to_lowercase().contains(&lower)).map(|o| o.0);
        let mut fitting = if !exact.is_empty() {
            exact
        } else if !at.is_empty() {
            at
        } else {
            parts().collect()
        };
        fitting.sort_by_key(|&i| Reverse(objects[i].wait_ns));
        match fitting[..] {
            [one] => Ok(ObjectId(one as u32)),
            [] => {
                let known = objects.iter().map(|o| (o.name.as_str(), o.wait_ns));
                Err(unknown("--lock", "no thread of the trace waits for", word, known))
            }
            _ => Err(ambiguous("--lock", word, fitting.iter().map(|&i| objects[i].name.clone()))),
        }
    }

    /// The address of the kernel lock that `holdup locks` shows under this name, if it is one.
    fn lock_named(&self, word: &str) -> Option<u64> {
        let rows = self.analysis.locks(LockBy::Lock);
        let mut addresses: Vec<u64> = rows
            .iter()
            .filter(|row| row.name.as_ref().is_some_and(|name| name.as_deref() == Some(word)))
            .filter_map(|row| row.address.flatten())
            .collect();
        addresses.sort_unstable();
        addresses.dedup();
        if let [one] = addresses[..] { Some(one) } else { None }
    }

    fn thread(&self, option: &str, word: &str) -> Result<usize> {
        let threads = &self.program.threads;
        let all = || threads.iter().enumerate();
        if let Ok(tid) = word.parse::<u32>() {
            // An id may have been reused: the thread that ran most is meant.
            let found = all().filter(|(_, t)| t.tid == tid).max_by_key(|(_, t)| t.run_ns);
            return match found {
                Some((i, _)) => Ok(i),
                None => Err(usage(format!("{option}: no thread {tid} in the trace"))),
            };
        }
        let mut named: Vec<usize> = all().filter(|(_, t)| t.comm == word).map(|t| t.0).collect();
        named.sort_by_key(|&i| Reverse(threads[i].run_ns));
        match named[..] {
            [one] => Ok(one),
            [] => {
                let known = threads.iter().map(|t| (t.comm.as_str(), t.run_ns));
                Err(unknown(option, "no thread of the trace is called", word, known))
            }
            _ => {
                let ids = named.iter().map(|&i| threads[i].tid.to_string());
                Err(ambiguous(option, word, ids))
            }
        }
    }

    /// Each thread spends a part of its CPU time in the call; that part is scaled.
    fn calls(&self, name: &str, factor: f64) -> Result<Change> {
        let rows = self.analysis.syscalls(Group::Thread);
        if rows.is_empty() {
            let why =
                "--syscall: no system calls were recorded in this trace (raw_syscalls:sys_enter)";
            return Err(Failure::Unanswerable(why.to_owned()));
        }
        if !rows.iter().any(|row| row.name == name) {
            let mut time: HashMap<&str, u64> = HashMap::new();
            for row in &rows {
                *time.entry(row.name.as_str()).or_default() += row.cpu_ns.unwrap_or(0);
            }
            let known = time.into_iter();
            return Err(unknown("--syscall", "no thread of the trace calls", name, known));
        }
        let mut spent: HashMap<u32, u64> = HashMap::new();
        for row in rows.iter().filter(|row| row.name == name) {
            if let (Some(tid), Some(ns)) = (row.tid, row.cpu_ns) {
                *spent.entry(tid).or_default() += ns;
            }
        }
        // Rows are per thread id, which several threads may have had one after the other.
        let mut ran: HashMap<u32, u64> = HashMap::new();
        for t in &self.program.threads {
            *ran.entry(t.tid).or_default() += t.run_ns;
        }
        let of = |tid: u32| match (spent.get(&tid), ran.get(&tid)) {
            (Some(&ns), Some(&all)) if all > 0 => {
                1.0 - (1.0 - factor) * (ns as f64 / all as f64).min(1.0)
            }
            _ => 1.0,
        };
        Ok(Change::Scale {
            part: Part::Call(name.to_owned(), factor),
            factors: self.program.threads.iter().map(|t| of(t.tid)).collect(),
        })
    }
}

fn address(word: &str) -> Option<u64> {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let plain = digits.len() >= ADDRESS_DIGITS || word.starts_with("0x");
    if plain { u64::from_str_radix(digits, 16).ok() } else { None }
}

/// Whether one of the words of a name is this address.
fn has_address(name: &str, address: u64) -> bool {
    name.split(' ')
        .filter_map(|word| word.strip_prefix("0x"))
        .any(|digits| u64::from_str_radix(digits, 16) == Ok(address))
}

/// The error for an unknown name: lists the names of `known` that are most similar, or else those
/// that took most time.
fn unknown<'n>(
    option: &str,
    what: &str,
    word: &str,
    known: impl Iterator<Item = (&'n str, u64)>,
) -> Failure {
    let mut known: Vec<(&str, u64)> = known.collect();
    if known.is_empty() {
        return usage(format!("{option}: {what} '{word}', or for anything else"));
    }
    let near = |name: &str| {
        let whole = strsim::sorensen_dice(&name.to_lowercase(), &word.to_lowercase());
        (whole * 100.0) as u32
    };
    known.sort_by_key(|&(name, time)| (Reverse(near(name)), Reverse(time), name));
    let mut names: Vec<&str> = known.iter().map(|k| k.0).collect();
    names.dedup();
    names.truncate(LISTED);
    usage(format!("{option}: {what} '{word}'; the trace has {}", listed(&names, known.len())))
}

/// The error for a name that matches several.
fn ambiguous(option: &str, word: &str, fitting: impl ExactSizeIterator<Item = String>) -> Failure {
    let count = fitting.len();
    let names: Vec<String> = fitting.take(LISTED).collect();
    usage(format!(
        "{option}: '{word}' may mean any of {count} names: {}; write one of them",
        listed(&names, count)
    ))
}

fn listed<T: AsRef<str>>(names: &[T], of: usize) -> String {
    let list = names.iter().map(|name| format!("'{}'", name.as_ref())).collect::<Vec<_>>();
    let more = if of > list.len() { " ..." } else { "" };
    format!("{}{more}", list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_long_or_begin_with_0x() {
        assert_eq!(address("0xdead"), Some(0xdead));
        assert_eq!(address("dead"), None);
        assert_eq!(address("ff1100007fd99270"), Some(0xff11_0000_7fd9_9270));
        assert!(has_address("mutex 0x7f of orders", 0x7f));
        assert!(!has_address("mutex 0x7f12 of orders", 0x7f));
    }

    #[test]
    fn the_nearest_names_come_first() {
        let known = [("pipe 3", 2), ("mutex 0x1", 1)];
        let error = unknown("--lock", "nobody waits for", "mutx 0x1", known.into_iter());
        assert!(error.to_string().ends_with("the trace has 'mutex 0x1', 'pipe 3'"), "{error}");
    }
}

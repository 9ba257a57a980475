//! What runtimes say of locks that the kernel does not see: those of Go and of Java.
//!
//! Go schedules tasks of its own on threads. The kernel sees the threads sleep at a futex or in
//! epoll when there is no task to run, whatever the tasks wait for. User probes on the slow paths
//! of the runtime tell of the tasks: which one a thread runs, what one waits for, who lets it go
//! on.
//!
//! Java's threads are threads of the kernel, but each sleeps at a word of its own, whatever it
//! waits for. There the probes tell which monitor that is.

use std::fmt::Write;

/// What a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parked {
    /// A mutex.
    Mutex,
    /// To read what a readers-writer lock protects.
    ReadLock,
    /// To write it.
    WriteLock,
    /// Other tasks to be done.
    Group,
    /// A semaphore that nobody says the use of.
    Semaphore,
    /// A condition variable.
    Cond,
    /// A value from a channel.
    Receive,
    /// Room in a channel.
    Send,
    /// One of several channels.
    Select,
    /// Time to pass.
    Sleep,
    /// A descriptor to become ready.
    Io,
    /// Something of the runtime itself, such as its garbage collector; or what is not known.
    Runtime,
}

impl Parked {
    /// What the text means by which Go's runtime tells why a goroutine waits (`waitReasonStrings`
    /// of `runtime/runtime2.go`; what stands in brackets in dumps of goroutines).
    pub fn of_go(reason: &str) -> Parked {
        match reason.strip_suffix(" (durable)").unwrap_or(reason) {
            "sync.Mutex.Lock" => Parked::Mutex,
            "sync.RWMutex.RLock" => Parked::ReadLock,
            "sync.RWMutex.Lock" => Parked::WriteLock,
            "sync.WaitGroup.Wait" => Parked::Group,
            "semacquire" => Parked::Semaphore,
            "sync.Cond.Wait" => Parked::Cond,
            "chan receive" => Parked::Receive,
            "chan send" => Parked::Send,
            "select" => Parked::Select,
            "sleep" => Parked::Sleep,
            "IO wait" => Parked::Io,
            _ => Parked::Runtime,
        }
    }
}

/// What a runtime does, apart from parking a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runtime {
    /// Puts a task, at this address, on a queue of those that can run: it was parked, or is new.
    Readies,
    /// Has the current thread run this task.
    Runs,
    /// This task has ended.
    Ends,
    /// The current thread has no task to run, and is about to sleep.
    Idles,
    /// The task of the current thread wants the lock with the semaphore at this address, which
    /// another has.
    Asks,
    /// The task of the current thread gives that back, and others wait for it.
    GivesBack,
    /// The current thread wants the monitor at this address, which another has, and is about to
    /// sleep for it.
    AsksMonitor,
    /// It is about to sleep until somebody notifies those who wait at that monitor.
    AwaitsMonitor,
    /// It gives that monitor back, and lets one go on that sleeps for it.
    GivesMonitor,
}

impl Parked {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Parked::Mutex => "mutex",
            Parked::ReadLock => "read-lock",
            Parked::WriteLock => "write-lock",
            Parked::Group => "group",
            Parked::Semaphore => "semaphore",
            Parked::Cond => "cond",
            Parked::Receive => "receive",
            Parked::Send => "send",
            Parked::Select => "select",
            Parked::Sleep => "sleep",
            Parked::Io => "io",
            Parked::Runtime => "runtime",
        }
    }
}

impl Runtime {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Runtime::Readies => "readies task",
            Runtime::Runs => "runs task",
            Runtime::Ends => "ends task",
            Runtime::Idles => "has no task",
            Runtime::Asks => "asks for lock",
            Runtime::GivesBack => "gives back lock",
            Runtime::AsksMonitor => "asks for monitor",
            Runtime::AwaitsMonitor => "waits at monitor",
            Runtime::GivesMonitor => "gives back monitor",
        }
    }
}

/// The functions of Go's runtime that tell of goroutines, called `go:NAME` as events, and what is
/// done at their beginning; `None` is to park a goroutine ([`crate::What::TaskParks`]). All are
/// functions that run only where goroutines change: a lock that is free passes none of them.
///
/// `runqput` is where goroutines become ready, new ones too; `ready`, which one expects, is not
/// passed by new ones. `execute` and `stopm` run on the stack of the scheduler.
pub const GO_FUNCTIONS: &[(&str, Option<Runtime>)] = &[
    ("gopark", None),
    ("runqput", Some(Runtime::Readies)),
    ("execute", Some(Runtime::Runs)),
    ("goexit0", Some(Runtime::Ends)),
    ("stopm", Some(Runtime::Idles)),
    ("semacquire1", Some(Runtime::Asks)),
    ("semrelease1", Some(Runtime::GivesBack)),
];

/// The functions of HotSpot's `ObjectMonitor` that tell of monitors, called `java:NAME` as events
/// by the names they had up to JDK 21. A monitor that is free passes none of them.
pub const JAVA_FUNCTIONS: &[(&str, Runtime)] = &[
    ("EnterI", Runtime::AsksMonitor),
    ("ReenterI", Runtime::AsksMonitor),
    ("wait", Runtime::AwaitsMonitor),
    ("ExitEpilog", Runtime::GivesMonitor),
];

/// The first line of the text.
const MAGIC: &str = "holdup runtimes 1";

/// What the recorder knows of the runtimes whose events are in the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Runtimes {
    /// Of events by their number: why tasks wait, by the number that the event has for it.
    pub reasons: Vec<(u16, Vec<String>)>,
    /// Programs with such a runtime that it ran without probes in it.
    pub unprobed: Vec<String>,
}

impl Runtimes {
    /// As text, which [`Runtimes::parse`] reads.
    pub fn text(&self) -> String {
        let line = |text: &str| -> String {
            text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
        };
        let mut text = format!("{MAGIC}\n");
        for (event, reasons) in &self.reasons {
            for (number, reason) in reasons.iter().enumerate() {
                let _ = writeln!(text, "reason {event} {number} {}", line(reason));
            }
        }
        for program in &self.unprobed {
            let _ = writeln!(text, "unprobed {}", line(program));
        }
        text
    }

    /// Read the text of [`Runtimes::text`]. Damaged lines, and those of kinds that are not known,
    /// tell nothing; `None` where it is no such text.
    pub fn parse(text: &[u8]) -> Option<Runtimes> {
        let text = String::from_utf8_lossy(text);
        let mut lines = text.lines();
        if lines.next()? != MAGIC {
            return None;
        }
        let mut runtimes = Runtimes::default();
        for line in lines {
            runtimes.unprobed.extend(line.strip_prefix("unprobed ").map(str::to_owned));
            let Some((event, number, reason)) = reason(line) else { continue };
            let same = runtimes.reasons.iter_mut().find(|of| of.0 == event);
            let reasons = match same {
                Some(of) => &mut of.1,
                None => {
                    runtimes.reasons.push((event, Vec::new()));
                    &mut runtimes.reasons.last_mut()?.1
                }
            };
            if number == reasons.len() {
                reasons.push(reason);
            }
        }
        Some(runtimes)
    }

    /// What the numbers of an event mean.
    pub fn parked(&self, event: u16) -> Vec<Parked> {
        let Some((_, reasons)) = self.reasons.iter().find(|of| of.0 == event) else {
            return Vec::new();
        };
        // Before Go 1.20 all semaphores had one reason, and most were those of mutexes. Now those
        // of descriptors have it, and of the garbage collector.
        let told_apart = reasons.iter().any(|reason| Parked::of_go(reason) == Parked::Mutex);
        let parked = reasons.iter().map(|reason| match Parked::of_go(reason) {
            Parked::Semaphore if !told_apart => Parked::Mutex,
            parked => parked,
        });
        parked.collect()
    }
}

/// `reason 17 22 sync.Mutex.Lock`: of the event with the first number, the second means that.
fn reason(line: &str) -> Option<(u16, usize, String)> {
    let mut words = line.strip_prefix("reason ")?.splitn(3, ' ');
    let (event, number) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some((event, number, words.next().unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_stand_in_the_text_as_they_are_read() {
        let reasons = ["", "GC assist marking", "sync.Mutex.Lock"].map(str::to_owned).to_vec();
        let runtimes = Runtimes {
            reasons: vec![(17, reasons), (3, vec!["sleep".to_owned()])],
            unprobed: vec!["a server".to_owned()],
        };
        assert_eq!(Runtimes::parse(runtimes.text().as_bytes()), Some(runtimes.clone()));
        assert_eq!(runtimes.parked(17), [Parked::Runtime, Parked::Runtime, Parked::Mutex]);
        assert_eq!((runtimes.parked(3), runtimes.parked(4)), (vec![Parked::Sleep], vec![]));
    }

    #[test]
    fn a_semaphore_is_that_of_a_mutex_where_mutexes_have_no_reason_of_their_own() {
        let of = |reasons: &[&str]| {
            let reasons = reasons.iter().map(|&reason| reason.to_owned()).collect();
            Runtimes { reasons: vec![(1, reasons)], ..Runtimes::default() }.parked(1)
        };
        assert_eq!(of(&["semacquire", "sleep"]), [Parked::Mutex, Parked::Sleep]);
        assert_eq!(of(&["semacquire", "sync.Mutex.Lock"]), [Parked::Semaphore, Parked::Mutex]);
    }

    #[test]
    fn damaged_lines_tell_nothing() {
        assert_eq!(Runtimes::parse(b"something else\nreason 1 0 sleep"), None);
        let damaged = format!("{MAGIC}\nreason\nreason x 0 a\nreason 1 7 b\nother 1\nreason 1 0 c");
        let runtimes = Runtimes::parse(damaged.as_bytes()).unwrap();
        assert_eq!(runtimes.reasons, [(1, vec!["c".to_owned()])]);
    }
}

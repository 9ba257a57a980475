//! What runtimes (Go and Java) say about locks that the kernel does not see.
//!
//! Go schedules its own tasks on threads. The kernel only sees that threads without a task to run
//! sleep on a futex or in epoll, whatever the tasks wait for. User probes on the slow paths of the
//! runtime show the tasks: which one a thread runs, what one waits for, and which task wakes it.
//!
//! Java's threads are threads of the kernel, but each sleeps on a word of its own, whatever it
//! waits for. The probes tell which monitor it is.

use std::fmt::Write;

/// What a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parked {
    /// A mutex.
    Mutex,
    /// A readers-writer lock, for reading.
    ReadLock,
    /// A readers-writer lock, for writing.
    WriteLock,
    /// Completion of other tasks (a wait group).
    Group,
    /// A semaphore of unknown use.
    Semaphore,
    /// A condition variable.
    Cond,
    /// A value from a channel.
    Receive,
    /// Room in a channel.
    Send,
    /// One of several channels.
    Select,
    /// A time.
    Sleep,
    /// A descriptor to become ready.
    Io,
    /// Something within the runtime, such as its garbage collector; or unknown.
    Runtime,
}

impl Parked {
    /// Meaning of the text by which Go's runtime says why a goroutine waits (`waitReasonStrings` of
    /// `runtime/runtime2.go`; the text in brackets in goroutine dumps).
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
    /// Puts the task at this address, which was parked or is new, on a queue of runnable tasks.
    Readies,
    /// Makes the current thread run this task.
    Runs,
    /// This task has ended.
    Ends,
    /// The current thread has no task to run, and is about to sleep.
    Idles,
    /// The task of the current thread wants the lock with the semaphore at this address, which
    /// another task holds.
    Asks,
    /// The task of the current thread releases that lock, and others wait for it.
    GivesBack,
    /// The current thread wants the monitor at this address, which another thread holds, and is
    /// about to sleep for it.
    AsksMonitor,
    /// The current thread is about to sleep until it is notified on that monitor.
    AwaitsMonitor,
    /// The current thread releases that monitor, and wakes a thread that sleeps for it.
    GivesMonitor,
}

impl Parked {
    /// A short name.
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
    /// A description.
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

/// The functions of Go's runtime that show what goroutines do, called `go:NAME` as events, and the
/// meaning of a call; `None` parks a goroutine ([`crate::What::TaskParks`]). All of them run only
/// when goroutines change: taking a free lock calls none.
///
/// `runqput` is where goroutines become ready, including new ones; new ones do not pass `ready`, as
/// one might expect. `execute` and `stopm` run on the stack of the scheduler.
pub const GO_FUNCTIONS: &[(&str, Option<Runtime>)] = &[
    ("gopark", None),
    ("runqput", Some(Runtime::Readies)),
    ("execute", Some(Runtime::Runs)),
    ("goexit0", Some(Runtime::Ends)),
    ("stopm", Some(Runtime::Idles)),
    ("semacquire1", Some(Runtime::Asks)),
    ("semrelease1", Some(Runtime::GivesBack)),
];

/// The functions of HotSpot's `ObjectMonitor` that show what happens to monitors, called
/// `java:NAME` as events by the names they had up to JDK 21. Taking a free monitor calls none of
/// them.
pub const JAVA_FUNCTIONS: &[(&str, Runtime)] = &[
    ("EnterI", Runtime::AsksMonitor),
    ("ReenterI", Runtime::AsksMonitor),
    ("wait", Runtime::AwaitsMonitor),
    ("ExitEpilog", Runtime::GivesMonitor),
];

/// The first line of the text.
const MAGIC: &str = "holdup runtimes 1";

/// What the recorder knows about the runtimes whose events are in the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Runtimes {
    /// By event number: the reasons why tasks wait, indexed by the number in the event.
    pub reasons: Vec<(u16, Vec<String>)>,
    /// Programs with such a runtime that were recorded without probes.
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

    /// Parses the text of [`Runtimes::text`]. Damaged lines and lines of unknown kinds are skipped;
    /// `None` if it is not such a text.
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

    /// The meaning of the numbers of an event.
    pub fn parked(&self, event: u16) -> Vec<Parked> {
        let Some((_, reasons)) = self.reasons.iter().find(|of| of.0 == event) else {
            return Vec::new();
        };
        // Before Go 1.20 all semaphores had one reason, and most belonged to mutexes. Since then
        // this reason is used for the semaphores of descriptors and of the garbage collector.
        let distinguished = reasons.iter().any(|reason| Parked::of_go(reason) == Parked::Mutex);
        let parked = reasons.iter().map(|reason| match Parked::of_go(reason) {
            Parked::Semaphore if !distinguished => Parked::Mutex,
            parked => parked,
        });
        parked.collect()
    }
}

/// `reason 17 22 sync.Mutex.Lock`: for event 17, number 22 means this text.
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

//! Recordings of perf, taken apart so that they can be written again.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

use holdup_host::tracefs::Tracefs;
use holdup_perfdata::format::record::{FINISHED_ROUND, HEADER_ATTR};
use holdup_perfdata::format::{SECTION, header};
use holdup_record::file::{Description, Event, Running, Symbols, Target, TracingData, Writer};
use holdup_trace::Runtimes;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The events that the tests record.
pub const EVENTS: [&str; 3] = ["sched:sched_switch", "sched:sched_wakeup", "sched:sched_waking"];

/// What perf recorded: how the events were opened, and the data.
pub struct Recorded {
    pub events: Vec<Event>,
    pub data: Vec<u8>,
}

fn word(b: &[u8], at: usize) -> usize {
    usize::from_ne_bytes(b[at..at + 8].try_into().unwrap())
}

/// Have perf record [`EVENTS`] on all CPUs for a moment, with `options`.
pub fn record(file: &Path, options: &[&str]) {
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-a", "-e", &EVENTS.join(","), "-o"]).arg(file).args(options);
    let out = perf.args(["--", "sleep", "0.2"]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

impl Recorded {
    /// Takes a file of perf apart, as if attrs were `longer` by that many bytes.
    pub fn read(file: &Path, longer: usize) -> Recorded {
        let b = fs::read(file).unwrap();
        let section = |at: usize| &b[word(&b, at)..][..word(&b, at + 8)];
        let names = EVENTS.iter().copied().chain(["dummy:HG"]);
        let attr = |(entry, name): (&[u8], &str)| {
            let (attr, ids) = entry.split_at(entry.len() - SECTION);
            let ids = &b[word(ids, 0)..][..word(ids, 8)];
            let ids = ids.chunks(8).map(|id| word(id, 0) as u64).collect();
            Event::new(name, &[attr, &vec![0; longer]].concat(), ids)
        };
        let attrs = section(header::ATTRS).chunks(word(&b, header::ATTR_ENTRY));
        let events = attrs.zip(names).map(attr).collect();
        Recorded { events, data: section(header::DATA).to_vec() }
    }

    /// The description for writing it again.
    pub fn description(&self) -> Description {
        let proc = Path::new("/proc");
        let tracefs = Tracefs::find().unwrap();
        Description {
            events: self.events.clone(),
            command: vec!["holdup".into(), "record".into(), "--".into(), "sleep 1".into()],
            clock: None,
            tracing: TracingData::read(tracefs.root(), EVENTS).unwrap(),
            runtimes: Runtimes::default(),
            symbols: Symbols::read(&proc.join("kallsyms")),
            running: Running::read(proc, Target::Machine, false),
            compression: None,
        }
    }

    /// Writes the data again, in perf's rounds, each cut somewhere, without perf's own records.
    pub fn write(&self, to: &mut Writer) {
        let (mut start, mut at) = (0, 0);
        while at < self.data.len() {
            let begin = at;
            at += u16::from_ne_bytes([self.data[at + 6], self.data[at + 7]]) as usize;
            let kind = u32::from(self.data[begin]);
            if kind == FINISHED_ROUND || kind >= HEADER_ATTR {
                let (front, wrapped) =
                    self.data[start..begin].split_at((begin - start) / 2 / 8 * 8);
                to.data(front, wrapped).unwrap();
                if kind == FINISHED_ROUND {
                    to.round().unwrap();
                }
                start = at;
            }
        }
        to.data(&self.data[start..], &[]).unwrap();
    }
}

/// perf's standard output and standard error.
pub fn perf(args: &[&str], file: &Path) -> (String, String) {
    printed(Command::new("perf").args(args).arg("-i").arg(file))
}

/// The same for a file that comes through a pipe.
pub fn perf_of_pipe(args: &[&str], file: &Path) -> (String, String) {
    let mut cat = Command::new("cat").arg(file).stdout(Stdio::piped()).spawn().unwrap();
    let pipe = cat.stdout.take().unwrap();
    let printed = printed(Command::new("perf").args(args).args(["-i", "-"]).stdin(pipe));
    cat.wait().unwrap();
    printed
}

fn printed(perf: &mut Command) -> (String, String) {
    let out = perf.output().unwrap();
    let text = |b: Vec<u8>| String::from_utf8_lossy(&b).into_owned();
    (text(out.stdout), text(out.stderr))
}

//! How far reading is, on standard error: for people who wait at a terminal, and for nobody else.
//!
//! ```text
//! events 43 %, 2.1 of 4.9 GB, 21.3 M events/s, 3 s left
//! ```
//!
//! A thread of its own looks at the counters of [`holdup_trace::progress`] and draws one line over
//! and over. Whoever is about to write calls [`end`] first, which takes the line away.

use holdup_trace::progress::{Progress, Stage, snapshot};
use std::io::{IsTerminal, Write, stderr};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What takes no longer needs no line.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks at the counters.
const STEP: Duration = Duration::from_millis(200);
/// A rate over less time than this says little about the rest.
const STEADY: Duration = Duration::from_millis(500);

/// The thread that draws, while there is one.
static DRAWING: Mutex<Option<(Sender<()>, JoinHandle<()>)>> = Mutex::new(None);

/// Draw from now on, if standard error is a terminal that can take a line back.
pub(crate) fn start(quiet: bool) {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    let mut drawing = DRAWING.lock().unwrap_or_else(|e| e.into_inner());
    if quiet || dumb || drawing.is_some() || !stderr().is_terminal() {
        return;
    }
    let (stop, stopped) = channel();
    let thread = std::thread::Builder::new().name("progress".into()).spawn(move || draw(&stopped));
    *drawing = thread.ok().map(|thread| (stop, thread));
}

/// Take the line away, and draw no more.
pub(crate) fn end() {
    let drawing = DRAWING.lock().unwrap_or_else(|e| e.into_inner()).take();
    if let Some((stop, thread)) = drawing {
        drop(stop);
        let _ = thread.join();
    }
}

fn draw(stopped: &Receiver<()>) {
    let began = Instant::now();
    // The stage in hand, and when it was first seen.
    let (mut stage, mut since) = (snapshot().number, began);
    let mut drawn = false;
    while stopped.recv_timeout(STEP) == Err(RecvTimeoutError::Timeout) {
        let now = snapshot();
        if now.number != stage {
            (stage, since) = (now.number, Instant::now());
        }
        if began.elapsed() < PATIENCE {
            continue;
        }
        let columns =
            terminal_size::terminal_size_of(stderr()).map_or(80, |(width, _)| width.0.into());
        // The last column is left free: some terminals go on to the next line behind it.
        let line: String =
            line(&now, since.elapsed()).chars().take(usize::max(columns, 1) - 1).collect();
        drawn |= write(&format!("\r\x1b[K{line}"));
    }
    if drawn {
        write("\r\x1b[K");
    }
}

/// Write at once, so that nothing comes between; false if it cannot be written.
fn write(text: &str) -> bool {
    let mut err = stderr().lock();
    err.write_all(text.as_bytes()).and_then(|()| err.flush()).is_ok()
}

/// How far it is after `elapsed` in the stage.
fn line(now: &Progress, elapsed: Duration) -> String {
    let word = match now.stage {
        Stage::Idle => return String::new(),
        Stage::Unpacking if now.total.is_some() => "unpacking",
        Stage::Unpacking => "reading",
        Stage::Indexing => "indexing",
        Stage::Events => "events",
    };
    let mut parts = Vec::new();
    // A reader that does not say how far it is has done 0.
    match now.total.filter(|_| now.done > 0) {
        Some(total) => {
            let done = now.done.min(total);
            let pct = u128::from(done) * 100 / u128::from(total);
            parts.push(format!("{word} {pct} %"));
            parts.push(size(done, Some(total)));
        }
        None if now.done > 0 => parts.push(format!("{word} {}", size(now.done, None))),
        None => parts.push(word.to_owned()),
    }
    if elapsed >= STEADY {
        let seconds = elapsed.as_secs_f64();
        if now.events > 0 {
            let per_second = now.events as f64 / seconds;
            parts.push(match per_second {
                r if r >= 1e6 => format!("{:.1} M events/s", r / 1e6),
                r => format!("{r:.0} events/s"),
            });
        }
        if let Some(rest) = now.total.and_then(|total| total.checked_sub(now.done))
            && now.done > 0
        {
            let left = (rest as f64 / now.done as f64 * seconds).ceil() as u64;
            parts.push(match left {
                0..120 => format!("{left} s left"),
                _ => format!("{} min left", left.div_ceil(60)),
            });
        }
    }
    parts.join(", ")
}

/// `2.1 of 4.9 GB`
fn size(done: u64, total: Option<u64>) -> String {
    let (unit, name) = match total.unwrap_or(done) {
        0..1_000_000 => (1e3, "KB"),
        1_000_000..1_000_000_000 => (1e6, "MB"),
        _ => (1e9, "GB"),
    };
    let show = |bytes: u64| format!("{:.1}", bytes as f64 / unit);
    match total {
        Some(total) => format!("{} of {} {name}", show(done), show(total)),
        None => format!("{} {name}", show(done)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_known_and_no_more() {
        let of = |stage, done, total, events, ms| {
            let now = Progress { stage, done, total, events, number: 1 };
            line(&now, Duration::from_millis(ms))
        };
        let gb = 1_000_000_000;
        assert_eq!(
            of(Stage::Events, 2 * gb, Some(8 * gb), 42_000_000, 2_000),
            "events 25 %, 2.0 of 8.0 GB, 21.0 M events/s, 6 s left"
        );
        assert_eq!(of(Stage::Unpacking, 5_000_000, None, 0, 9_000), "reading 5.0 MB");
        assert_eq!(of(Stage::Unpacking, 0, None, 0, 9_000), "reading");
        assert_eq!(
            of(Stage::Unpacking, 500, Some(1_000), 0, 9_000),
            "unpacking 50 %, 0.5 of 1.0 KB, 9 s left"
        );
        assert_eq!(of(Stage::Events, 0, Some(gb), 7_000, 1_000), "events, 7000 events/s");
        assert_eq!(
            of(Stage::Indexing, gb / 2, Some(gb), 0, 100),
            "indexing 50 %, 0.5 of 1.0 GB",
            "too early for a rate"
        );
        assert_eq!(of(Stage::Events, 9 * gb, Some(8 * gb), 0, 100), "events 100 %, 8.0 of 8.0 GB");
        assert_eq!(of(Stage::Idle, 1, Some(2), 3, 4_000), "");
        assert_eq!(
            of(Stage::Indexing, 1_000, Some(61_000), 0, 60_000),
            "indexing 1 %, 1.0 of 61.0 KB, 60 min left"
        );
    }
}

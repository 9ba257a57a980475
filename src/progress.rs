//! Progress of reading, on standard error, only if that is a terminal.
//!
//! ```text
//! events 43 %, 2.1 of 4.9 GB, 21.3 M events/s, 3 s left
//! ```
//!
//! A separate thread looks at the counters of [`holdup_trace::progress`] and redraws one line.
//! Before other output, callers must call [`end`], which removes the line.

use holdup_fleet::Progress as Fleet;
use holdup_trace::progress::{Progress, Stage, snapshot};
use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Shorter operations show no line.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two looks at the counters.
const STEP: Duration = Duration::from_millis(200);
/// A rate over less time than this is too uncertain for an estimate.
const STEADY: Duration = Duration::from_millis(500);

/// The thread that draws, while there is one.
static DRAWING: Mutex<Option<(Sender<()>, JoinHandle<()>)>> = Mutex::new(None);

/// Draw from now on, if standard error is a terminal that can erase a line.
pub(crate) fn start(quiet: bool) {
    // The current stage, and when it was first seen.
    let (mut stage, mut since) = (snapshot().number, Instant::now());
    start_with(quiet, move |_, _| {
        let now = snapshot();
        if now.number != stage {
            (stage, since) = (now.number, Instant::now());
        }
        line(&now, since.elapsed())
    });
}

/// [`start`] for many traces: draws a bar.
pub(crate) fn start_fleet(quiet: bool, fleet: Arc<Fleet>) {
    start_with(quiet, move |elapsed, columns| bar(&fleet, elapsed, columns));
}

/// Draw the result of `say`, which gets the elapsed time and the width in columns.
fn start_with(quiet: bool, say: impl FnMut(Duration, usize) -> String + Send + 'static) {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    let mut drawing = DRAWING.lock().unwrap_or_else(|e| e.into_inner());
    if quiet || dumb || drawing.is_some() || !stderr().is_terminal() {
        return;
    }
    let (stop, stopped) = channel();
    let thread =
        std::thread::Builder::new().name("progress".into()).spawn(move || draw(&stopped, say));
    *drawing = thread.ok().map(|thread| (stop, thread));
}

/// Remove the line, and stop drawing.
pub(crate) fn end() {
    let drawing = DRAWING.lock().unwrap_or_else(|e| e.into_inner()).take();
    if let Some((stop, thread)) = drawing {
        drop(stop);
        let _ = thread.join();
    }
}

fn draw(stopped: &Receiver<()>, mut say: impl FnMut(Duration, usize) -> String) {
    let began = Instant::now();
    let mut drawn = false;
    while stopped.recv_timeout(STEP) == Err(RecvTimeoutError::Timeout) {
        let columns =
            terminal_size::terminal_size_of(stderr()).map_or(80, |(width, _)| width.0.into());
        // The last column is left free: some terminals wrap after it.
        let columns = usize::max(columns, 1) - 1;
        let line: String = say(began.elapsed(), columns).chars().take(columns).collect();
        if began.elapsed() < PATIENCE {
            continue;
        }
        drawn |= write(&format!("\r\x1b[K{line}"));
    }
    if drawn {
        write("\r\x1b[K");
    }
}

/// Write in one go, so that no other output comes in between; false if that failed.
fn write(text: &str) -> bool {
    let mut err = stderr().lock();
    err.write_all(text.as_bytes()).and_then(|()| err.flush()).is_ok()
}

/// Width of the bar in columns, if there is room next to the text.
const BAR: usize = 30;

/// How far a fleet is: `[######......] 4213 of 10000 files, 3 failed, 52.1 traces/s, 2 min left`.
fn bar(fleet: &Fleet, elapsed: Duration, columns: usize) -> String {
    let (done, items) = (fleet.done.load(Relaxed), fleet.items.load(Relaxed));
    if items == 0 {
        return "looking for traces".to_owned();
    }
    let mut parts = vec![format!("{done} of {items} files")];
    if done == items {
        parts.push("writing the tables".to_owned());
    }
    match fleet.failed.load(Relaxed) {
        0 => {}
        failed => parts.push(format!("{failed} failed")),
    }
    let (judged, seconds) = (fleet.judged.load(Relaxed), elapsed.as_secs_f64());
    if judged > 0 && elapsed >= STEADY && done < items {
        parts.push(format!("{:.1} traces/s", judged as f64 / seconds));
        parts.push(left((items - done) as f64 / done as f64 * seconds));
    }
    let words = parts.join(", ");
    let room = columns.saturating_sub(words.len() + 3).min(BAR);
    if room < 10 {
        return words;
    }
    let full = room * done / items;
    format!("[{}{}] {words}", "#".repeat(full), ".".repeat(room - full))
}

/// `12 s left`.
fn left(seconds: f64) -> String {
    match seconds.ceil() as u64 {
        left @ 0..120 => format!("{left} s left"),
        left => format!("{} min left", left.div_ceil(60)),
    }
}

/// The progress line, after `elapsed` in the stage.
fn line(now: &Progress, elapsed: Duration) -> String {
    let word = match now.stage {
        Stage::Idle => return String::new(),
        Stage::Unpacking if now.total.is_some() => "unpacking",
        Stage::Unpacking => "reading",
        Stage::Indexing => "indexing",
        Stage::Events => "events",
    };
    let mut parts = Vec::new();
    // Readers that report no progress have `done` 0.
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
            parts.push(left(rest as f64 / now.done as f64 * seconds));
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

    #[test]
    fn a_bar_shows_what_is_done_and_leaves_room_for_the_words() {
        let fleet = Fleet::default();
        let of = |columns| bar(&fleet, Duration::from_secs(10), columns);
        assert_eq!(of(80), "looking for traces");
        fleet.items.store(400, Relaxed);
        assert_eq!(of(80), format!("[{}] 0 of 400 files", ".".repeat(30)));
        fleet.done.store(100, Relaxed);
        fleet.judged.store(90, Relaxed);
        let words = "100 of 400 files, 9.0 traces/s, 30 s left";
        assert_eq!(of(100), format!("[{}{}] {words}", "#".repeat(7), ".".repeat(23)));
        assert_eq!(of(54), format!("[##........] {words}")[..]);
        assert_eq!(of(40), words);
        fleet.failed.store(2, Relaxed);
        fleet.done.store(400, Relaxed);
        let words = "400 of 400 files, writing the tables, 2 failed";
        assert_eq!(of(59), format!("[{}] {words}", "#".repeat(10)));
    }
}

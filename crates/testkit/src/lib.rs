//! What tests share: traces built by hand, and access to recordings outside the repository.
//!
//! Development only.
//!
//! ```
//! use holdup_testkit::TraceBuilder;
//! let trace = TraceBuilder::new(2)
//!     .switch(100, 0, 0, 42, "R")     // the idle task leaves CPU 0 to thread 42
//!     .sys_enter(150, 0, 42, 0)       // which calls read(2)
//!     .switch(200, 0, 42, 0, "S")     // and sleeps in it
//!     .build();
//! assert_eq!(holdup_trace::Reader::info(&trace).span, Some((100, 200)));
//! ```

mod builder;
mod by_cpu;
mod chosen;
mod napping;
mod perfetto;
mod repeated;
mod spare;
mod unflagged;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

pub use builder::{MemTrace, TraceBuilder};
pub use by_cpu::ByCpu;
pub use chosen::ChosenCalls;
pub use holdup_needs::needs;
pub use napping::Napping;
pub use perfetto::{Generic, Packing, PerfettoForm, perfetto};
pub use repeated::Repeated;
pub use spare::SpareCpus;
pub use unflagged::Unflagged;

/// The results of `judge` for each, in order; two run at a time.
pub fn in_parallel<T: Send, R: Send>(all: Vec<T>, judge: impl Fn(T) -> R + Sync) -> Vec<R> {
    let queue = Mutex::new(all.into_iter().enumerate());
    // After a panic in a test the poisoned lock's content is still valid.
    let next = || queue.lock().unwrap_or_else(|e| e.into_inner()).next();
    let work = || std::iter::from_fn(next).map(|(i, one)| (i, judge(one))).collect::<Vec<_>>();
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        let results = workers.into_iter().map(|w| w.join());
        results.flat_map(|r| r.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    done.sort_by_key(|d| d.0);
    done.into_iter().map(|d| d.1).collect()
}

/// Recordings too many for the repository, looked for next to it. A test that uses them is marked
/// `#[needs(corpus)]` and is ignored if they are missing.
pub fn corpus() -> &'static Path {
    Path::new(holdup_needs::corpus!())
}

/// The packed recordings in a folder and all below it, by name.
pub fn recordings(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(recordings(&path));
        } else if [".data.zst", ".dat.zst", ".txt.zst"].iter().any(|end| name.ends_with(end)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

//! How far reading has come, for display.
//!
//! A process reads one trace at a time, so there is one set of counters, and readers need no handle
//! to reach it (`holdup fleet` reads several, and shows its own counts instead). Readers advance it
//! by block, batch or segment, never by event; the display takes a [`snapshot`] now and then.
//! Nothing here prints, and nothing depends on it.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// What is being done with the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing that has a length.
    Idle,
    /// Reading a stream, or unpacking a wrapper.
    Unpacking,
    /// The first look at a file, when it is opened.
    Indexing,
    /// Going through the events in order.
    Events,
}

impl Stage {
    const ALL: [Stage; 4] = [Stage::Idle, Stage::Unpacking, Stage::Indexing, Stage::Events];
}

/// How far reading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// Bytes done in this stage.
    pub done: u64,
    /// Bytes to do in this stage, if known. A reader may read some bytes twice or not at all, so
    /// `done` need not end exactly at this value.
    pub total: Option<u64>,
    /// Events handed out in this stage.
    pub events: u64,
    /// How many stages have begun; a changed number means a new stage.
    pub number: u64,
}

static STAGE: AtomicU8 = AtomicU8::new(0);
static NUMBER: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);
/// Bytes to do; 0 if unknown.
static TOTAL: AtomicU64 = AtomicU64::new(0);
/// Bytes of the file that was indexed last, which contains the events.
static INDEXED: AtomicU64 = AtomicU64::new(0);
static EVENTS: AtomicU64 = AtomicU64::new(0);

fn begin(stage: Stage, total: u64) {
    // A display that reads between two of these lines shows one odd figure, once.
    DONE.store(0, Relaxed);
    EVENTS.store(0, Relaxed);
    TOTAL.store(total, Relaxed);
    STAGE.store(stage as u8, Relaxed);
    NUMBER.fetch_add(1, Relaxed);
}

/// A stream is read or unpacked; `total` is the length of its source, if known.
pub fn unpacking(total: Option<u64>) {
    begin(Stage::Unpacking, total.unwrap_or(0));
}

/// A file of `total` bytes is looked at for the first time.
pub fn indexing(total: u64) {
    INDEXED.store(total, Relaxed);
    begin(Stage::Indexing, total);
}

/// The events of the file indexed last are read in order.
pub fn events() {
    begin(Stage::Events, INDEXED.load(Relaxed));
}

/// Reading is over for now.
pub fn idle() {
    begin(Stage::Idle, 0);
}

/// This many bytes more are done. Meant for blocks of at least some KiB.
pub fn advance(bytes: u64) {
    DONE.fetch_add(bytes, Relaxed);
}

/// This many events more were handed out. Meant for batches.
pub fn handed_out(events: u64) {
    EVENTS.fetch_add(events, Relaxed);
}

/// The current state.
pub fn snapshot() -> Progress {
    let total = TOTAL.load(Relaxed);
    Progress {
        stage: Stage::ALL[STAGE.load(Relaxed) as usize % Stage::ALL.len()],
        done: DONE.load(Relaxed),
        total: (total > 0).then_some(total),
        events: EVENTS.load(Relaxed),
        number: NUMBER.load(Relaxed),
    }
}

//! Many traces judged at once, by as many workers as there are jobs.

use crate::error::FleetError;
use crate::find::Item;
use crate::journal::Journal;
use crate::one::{Known, analyse, look};
use crate::record::{Head, Record, Verdict};
use crate::settings::Settings;
use crate::store::{Entry, Store};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The progress of a run, for display.
#[derive(Debug, Default)]
pub struct Progress {
    /// Items to do.
    pub items: AtomicUsize,
    /// Items done.
    pub done: AtomicUsize,
    /// Traces judged by this run.
    pub judged: AtomicUsize,
    /// Items that could not be read.
    pub failed: AtomicUsize,
    /// Bytes of the traces judged by this run.
    pub bytes: AtomicU64,
}

/// A worker's result for an item.
enum Done {
    /// A final result without judging.
    Settled(Head),
    /// It was judged; whether to keep the result.
    Judged(Box<Record>, bool),
    /// Another item has the same content, whose result is known or will be.
    Same(Head),
}

/// Judge the items that the journal does not know yet, and add them to it. Returns the entry of
/// each item, in their order.
///
/// # Errors
/// The journal cannot be written. Errors of an item are recorded with it.
pub fn run(
    items: &[Item],
    journal: &mut Journal,
    settings: &Settings,
    jobs: usize,
    progress: &Progress,
) -> Result<Vec<Entry>, FleetError> {
    progress.items.store(items.len(), Relaxed);
    let known = Contents::of(journal.store());
    let key = journal.store().key().to_owned();
    let next = AtomicUsize::new(0);
    let order = largest_first(items);
    let mut found: BTreeMap<usize, Entry> = BTreeMap::new();
    let mut same: Vec<(usize, Head)> = Vec::new();
    thread::scope(|scope| {
        // A full channel makes workers wait for the journal, so that records do not fill memory.
        let (hand_in, handed_in) = sync_channel(jobs);
        for _ in 0..jobs.clamp(1, items.len().max(1)) {
            let hand_in = hand_in.clone();
            let (known, key, next, order) = (&known, &key, &next, &order);
            scope.spawn(move || {
                while let Some(&i) = order.get(next.fetch_add(1, Relaxed)) {
                    if hand_in.send((i, work(&items[i], known, settings, key))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(hand_in);
        for (i, done) in handed_in {
            progress.done.fetch_add(1, Relaxed);
            let entry = match done {
                Done::Settled(head) => Entry { head, place: None },
                Done::Same(head) => {
                    same.push((i, head));
                    continue;
                }
                Done::Judged(record, keep) => {
                    progress.judged.fetch_add(1, Relaxed);
                    progress.bytes.fetch_add(record.head.bytes, Relaxed);
                    let head = record.head.clone();
                    Entry { head, place: keep.then(|| journal.add(*record)).transpose()? }
                }
            };
            let failed = matches!(entry.head.result, Verdict::Failed { .. });
            progress.failed.fetch_add(failed.into(), Relaxed);
            found.insert(i, entry);
        }
        Ok::<(), FleetError>(())
    })?;
    let by_content: HashMap<String, Entry> = (found.values())
        .filter_map(|entry| Some((entry.head.hash.clone()?, entry.clone())))
        .collect();
    for (i, head) in same {
        let hash = head.hash.as_deref().unwrap_or_default();
        let judged = by_content.get(hash).or_else(|| journal.store().of_content(hash));
        let entry = match judged {
            Some(judged) => Entry {
                head: Head { seconds: 0.0, result: judged.head.result.clone(), ..head },
                place: judged.place,
            },
            // The judged copy has changed meanwhile.
            None => Entry { head, place: None },
        };
        found.insert(i, entry);
    }
    journal.sync()?;
    Ok(found.into_values().collect())
}

/// The contents that are being judged or have been judged.
struct Contents {
    by_path: HashMap<String, Head>,
    claimed: Mutex<HashSet<String>>,
}

impl Contents {
    fn of(store: &Store) -> Contents {
        let heads = || store.entries().iter().map(|e| &e.head);
        Contents {
            by_path: heads().map(|head| (head.path.clone(), head.clone())).collect(),
            claimed: Mutex::new(heads().filter_map(|head| head.hash.clone()).collect()),
        }
    }

    /// The content of an unchanged file.
    fn unchanged(&self, path: &str, stamp: crate::Stamp) -> Option<String> {
        self.by_path.get(path).filter(|head| head.stamp() == stamp)?.hash.clone()
    }

    /// Claim a content. Returns false if another worker judges it or has judged it.
    fn claim(&self, hash: &str) -> bool {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner).insert(hash.to_owned())
    }
}

fn work(item: &Item, known: &Contents, settings: &Settings, key: &str) -> Done {
    match look(item, key, &|path, stamp| known.unchanged(path, stamp)) {
        Known::Settled(head) => Done::Settled(head),
        Known::Trace { hash, stamp } if known.claim(&hash) => {
            let (record, keep) = analyse(item, settings, key, hash, stamp);
            Done::Judged(Box::new(record), keep)
        }
        Known::Trace { hash, stamp } => Done::Same(Head {
            made_by: key.to_owned(),
            hash: Some(hash),
            path: item.path.to_string_lossy().into_owned(),
            bytes: stamp.bytes,
            mtime_ns: stamp.mtime_ns,
            ctime_ns: stamp.ctime_ns,
            seconds: 0.0,
            result: Verdict::Failed {
                error:
                    "this file, or another file with the same content, changed while it was read"
                        .into(),
            },
        }),
    }
}

/// Large traces first: begun last, they would keep one worker busy when the others are done.
fn largest_first(items: &[Item]) -> Vec<usize> {
    let bytes = |item: &Item| item.path.metadata().map_or(0, |m| m.len());
    let mut order: Vec<(u64, usize)> =
        items.iter().enumerate().map(|(i, item)| (bytes(item), i)).collect();
    order.sort_by_key(|&(bytes, i)| (std::cmp::Reverse(bytes), i));
    order.into_iter().map(|(_, i)| i).collect()
}

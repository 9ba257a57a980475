//! Threads that may wait for each other without sleeping.
//!
//! They are threads of one process; or, if a process has only one that does so, those of all such
//! processes of its program.

use holdup_passes::{Analysis, Slot};
use std::collections::BTreeMap;

/// Threads of one program, and what is known about each.
pub(crate) struct Peers<T> {
    /// They belong to several processes.
    pub(crate) between_processes: bool,
    pub(crate) threads: Vec<(Slot, T)>,
}

/// Divides these threads among programs. A thread without any other is left out.
pub(crate) fn peers<T>(
    analysis: &Analysis,
    threads: impl Iterator<Item = (Slot, T)>,
) -> Vec<Peers<T>> {
    let mut processes: BTreeMap<Option<u32>, Vec<(Slot, T)>> = BTreeMap::new();
    for (slot, of) in threads {
        processes.entry(analysis.pid(analysis.thread(slot))).or_default().push((slot, of));
    }
    let mut all = Vec::new();
    let mut lone: BTreeMap<Vec<u8>, Vec<(Slot, T)>> = BTreeMap::new();
    for mut threads in processes.into_values() {
        match &threads[..] {
            [(slot, _)] => {
                let program = analysis.role(analysis.thread(*slot));
                lone.entry(program).or_default().append(&mut threads);
            }
            _ => all.push(Peers { between_processes: false, threads }),
        }
    }
    let several = lone.into_values().filter(|threads| threads.len() > 1);
    all.extend(several.map(|threads| Peers { between_processes: true, threads }));
    all
}

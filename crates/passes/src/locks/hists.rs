//! How long kernel locks were waited for and held, by powers of two.

use super::LockSource;
use super::row::{LockBy, LockRow};
use crate::Analysis;
use crate::hist::HistRow;

impl Analysis {
    /// Histograms of the `most` locks (or callers, types, threads) with the longest waits, from
    /// these events. Holds come from lockdep.
    pub fn lock_hists(&self, by: LockBy, source: LockSource, most: usize) -> Vec<HistRow> {
        let mut locks = self.locks_with_sums(by, source);
        locks.sort_by_key(|(row, _)| {
            std::cmp::Reverse((row.wait_total_ns, row.contended, row.acquired))
        });
        let mut rows = Vec::new();
        for (row, sum) in locks.iter().take(most) {
            let (kind, object) = (row.lock_type.clone().flatten(), named(row));
            rows.extend(HistRow::of("wait", kind.clone(), &object, &sum.waits.octaves()));
            if let Some(dep) = &sum.dep {
                rows.extend(HistRow::of("hold", kind, &object, &dep.holds.octaves));
            }
        }
        rows
    }
}

/// What a row is about, without its type.
fn named(row: &LockRow) -> String {
    let flat = |text: &Option<Option<String>>| text.clone().flatten();
    let address = row.address.flatten().map(|address| format!("{address:#x}"));
    let thread = row.comm.as_ref().map(|comm| match row.tid.flatten() {
        Some(tid) => format!("{comm} ({tid})"),
        None => comm.clone(),
    });
    let words = [flat(&row.name), address, flat(&row.caller), thread];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

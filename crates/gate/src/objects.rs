//! A run's information about the objects that its threads waited for.

use crate::figures::wait_key;
use holdup_attribution::{Attribution, WaitsBy};
use holdup_diagnose::{Diagnosis, Finding};
use holdup_trace::Tid;

/// The object of a kind that a program waited for longest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its key in [`crate::metric::Table::Waits`].
    pub key: String,
    /// The waiters and holders, in words.
    pub threads: String,
}

/// The longest wait of each key, longest first. The gain of a fix is known only for the verdict's
/// object.
pub(crate) fn objects(judged: &Attribution<'_>, diagnosis: &Diagnosis) -> Vec<Object> {
    let verdict = &diagnosis.verdict;
    let holds = |f: &&Finding| f.class == verdict.class && f.ruled_out.is_none();
    let finding = diagnosis.findings.iter().find(holds);
    let named = |object: &str| finding.filter(|f| f.culprits.iter().any(|c| c.id == object));
    let mut all: Vec<Object> = Vec::new();
    let mut rows = judged.waits(WaitsBy::Object);
    rows.sort_by(|a, b| {
        b.wait_total_ns.cmp(&a.wait_total_ns).then_with(|| a.object.cmp(&b.object))
    });
    for row in rows {
        let key = wait_key(&row);
        if all.iter().any(|o| o.key == key) {
            continue;
        }
        let threads = if row.waiters == 1 { "thread waits" } else { "threads wait" };
        let mut threads = format!("{} {threads} for {}", row.waiters, row.object);
        let held: Vec<String> = (row.holders.iter().take(3))
            .map(|h| format!("{} ({}) {:.0} %", h.comm, Tid(h.tid).words(), h.pct_explained))
            .collect();
        if !held.is_empty() {
            threads += &format!("; held meanwhile by {}", held.join(", "));
        } else if let Some(waker) = row.top_waker {
            threads += &format!("; mostly woken by {}", Tid(waker).words());
        }
        if let Some(worth) = named(&row.object).map(|f| &f.worth) {
            threads += &format!(
                ". Without these waits the work would be {:.2} times as fast",
                worth.times
            );
        }
        all.push(Object { key, threads });
    }
    all
}

//! What holders did, a row for each part: the table of waits as lists, for users who add up.

use crate::{Attribution, WaitsBy, WaitsRow};
use holdup_passes::{HolderTime, percent};
use serde::Serialize;

/// One activity of the holders of an object while other threads waited for the object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HoldingRow {
    /// Kind of the object: `futex`, `semop`, `kernel-lock` …
    pub kind: &'static str,
    /// What a futex is used for: `mutex`, `semaphore` …
    pub usage: Option<&'static str>,
    /// Address, id or descriptor of the object.
    pub object: String,
    /// Process of the waiting threads; `null` if there are several processes, or if it is not
    /// known.
    pub pid: Option<u32>,
    /// Name of the process of the waiting threads, or of the thread that waited longest.
    pub comm: String,
    /// Activity of the holders: `user`, `preempted`, `disk` …; docs/waits.md lists all.
    pub did: &'static str,
    /// The system call in which the holders did this; `null` outside of calls.
    pub call: Option<String>,
    /// What the holders slept for; `null` if they ran or were ready.
    pub waited_for: Option<String>,
    /// For how long the holders did this. The rows of an object add up to the time for which it was
    /// held while threads waited for it.
    pub hold_ns: u64,
    /// Part of the time for which the object was held while threads waited for it, in per cent.
    pub pct_held: f64,
}

impl Attribution<'_> {
    /// What holders did, in the order of the table of waits, for each object longest first.
    pub fn holding(&self) -> Vec<HoldingRow> {
        self.waits(WaitsBy::Object).iter().flat_map(of_object).collect()
    }
}

fn of_object(waits: &WaitsRow) -> Vec<HoldingRow> {
    let all = waits.holders_did.iter().map(|t| t.ns).sum();
    let row = |time: &HolderTime, waited_for: Option<String>, ns: u64| HoldingRow {
        kind: waits.kind,
        usage: waits.usage,
        object: waits.object.clone(),
        pid: waits.pid,
        comm: waits.comm.clone(),
        did: time.did,
        call: time.call.clone(),
        waited_for,
        hold_ns: ns,
        pct_held: percent(ns, all),
    };
    let of_time = |time: &HolderTime| {
        let named: u64 = time.objects.iter().map(|o| o.ns).sum();
        let mut rows: Vec<HoldingRow> =
            time.objects.iter().map(|o| row(time, Some(o.object.clone()), o.ns)).collect();
        let rest = time.ns.saturating_sub(named);
        if rest > 0 {
            rows.push(row(time, None, rest));
        }
        rows
    };
    waits.holders_did.iter().flat_map(of_time).collect()
}

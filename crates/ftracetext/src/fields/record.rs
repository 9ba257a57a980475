//! perf's sideband records, which `perf script --show-task-events` and similar options print as
//! lines.

use super::Context;
use crate::scan::{dec, find_word, int, trim, trim_start};
use holdup_trace::{Pid, Tid, What};

/// `(exec)? : name:pid/tid`, as in `PERF_RECORD_COMM exec: sh:12/12`.
pub(super) fn comm(body: &[u8], cx: &mut Context<'_>) -> Option<What> {
    let exec = body.starts_with(b"exec");
    let body = body.strip_prefix(b"exec").unwrap_or(body);
    let body = trim(body.strip_prefix(b":").unwrap_or(body));
    let colon = body.iter().rposition(|&b| b == b':')?;
    let (pid, tid) = pair(&body[colon + 1..], b'/')?;
    Some(What::Comm { tid, pid, comm: cx.name(tid.0, &body[..colon]), exec })
}

/// `(pid:tid):(ppid:ptid)`.
pub(super) fn fork(body: &[u8]) -> Option<What> {
    let ((pid, tid), (parent_pid, parent_tid)) = four(body)?;
    Some(What::TaskNew { tid, pid, parent_tid, parent_pid })
}

/// `(pid:tid):(ppid:ptid)` as well.
pub(super) fn exit(body: &[u8]) -> Option<What> {
    let ((pid, tid), _) = four(body)?;
    Some(What::TaskEnd { tid, pid })
}

/// `OUT preempt  next pid/tid:  12/12`, `IN   prev pid/tid: …`, or without the other thread.
pub(super) fn switch(body: &[u8]) -> Option<What> {
    let out = body.starts_with(b"OUT");
    if !out && !body.starts_with(b"IN") {
        return None;
    }
    let other =
        find_word(body, 0, b"pid/tid:").and_then(|at| pair(trim_start(&body[at + 8..]), b'/'));
    let preempt = find_word(body, 0, b"preempt").is_some();
    Some(What::ContextSwitch { out, preempt, other: other.map_or(Tid::UNKNOWN, |o| o.1) })
}

/// `lost 12`.
pub(super) fn lost(body: &[u8]) -> Option<What> {
    let at = find_word(body, 0, b"lost ")?;
    Some(What::Lost { count: int(trim_start(&body[at + 5..]))? })
}

type Ids = (Pid, Tid);

fn four(body: &[u8]) -> Option<(Ids, Ids)> {
    let inner = body.strip_prefix(b"(")?;
    let close = inner.iter().position(|&b| b == b')')?;
    let rest = inner[close..].strip_prefix(b"):(")?;
    Some((pair(inner, b':')?, pair(rest, b':')?))
}

fn pair(s: &[u8], separator: u8) -> Option<Ids> {
    let (a, n) = dec_or_unknown(s)?;
    let rest = s.get(n..)?.strip_prefix(&[separator])?;
    let (b, _) = dec_or_unknown(rest)?;
    Some((Pid(a), Tid(b)))
}

fn dec_or_unknown(s: &[u8]) -> Option<(u32, usize)> {
    if s.starts_with(b"-1") {
        return Some((u32::MAX, 2));
    }
    let (n, len) = dec(s)?;
    Some((u32::try_from(n).ok()?, len))
}

//! `sched:*`.

use super::{Context, bracketed, cpu, tid};
use crate::scan::{Keys, dec, find_word, int, pointer, trim, trim_end, word};
use holdup_trace::{Cpu, NameId, Nanos, StatKind, StateTable, TaskState, Tid, What};

/// `prev_comm=… prev_pid=… prev_prio=… prev_state=S ==> next_comm=… next_pid=… next_prio=…`; raw
/// dialects print the state as a number and no arrow.
#[inline]
pub(super) fn switch(body: &[u8], cx: &mut Context<'_>) -> Option<What> {
    let mut k = Keys::new(body);
    let Some(prev_comm) = k.text_before(b"prev_comm=", b"prev_pid=", b"prev_prio=") else {
        return switch_plugin(body, cx);
    };
    let prev = tid(k.int(b"prev_pid=")?);
    let prev_prio = k.int(b"prev_prio=")? as i16;
    let state = word(k.rest(b"prev_state=")?);
    let next_comm = k.text(b"next_comm=", b"next_pid=")?;
    let next = tid(k.int(b"next_pid=")?);
    let next_prio = k.int(b"next_prio=")? as i16;
    Some(What::Switch {
        prev,
        next,
        prev_state: state_of(state),
        prev_comm: cx.name(prev.0, prev_comm),
        next_comm: cx.name(next.0, next_comm),
        prev_prio,
        next_prio,
    })
}

/// trace-cmd's own rendering: `swapper/1:0 [120] R ==> rcu_preempt:15 [120]`.
fn switch_plugin(body: &[u8], cx: &mut Context<'_>) -> Option<What> {
    let arrow = memchr::memmem::rfind(body, b" ==> ")?;
    let (next_comm, next, next_prio) = task(&body[arrow + 5..])?;
    let left = trim_end(&body[..arrow]);
    let space = left.iter().rposition(|&b| b == b' ')?;
    let (prev_comm, prev, prev_prio) = task(&left[..space])?;
    Some(What::Switch {
        prev,
        next,
        prev_state: if cx.old_states {
            old_state(&left[space + 1..])
        } else {
            state_of(&left[space + 1..])
        },
        prev_comm: cx.name(prev.0, prev_comm),
        next_comm: cx.name(next.0, next_comm),
        prev_prio,
        next_prio,
    })
}

/// `comm:pid [prio]`.
fn task(s: &[u8]) -> Option<(&[u8], Tid, i16)> {
    let (prio, s) = bracketed(s)?;
    let s = trim_end(s);
    let colon = s.iter().rposition(|&b| b == b':')?;
    Some((trim(&s[..colon]), tid(int(&s[colon + 1..])?), prio as i16))
}

/// The state as the raw field's number or as letters; Linux 2.6.31 put the letters into brackets.
#[inline]
fn state_of(s: &[u8]) -> TaskState {
    match s {
        // The kernel prints bits without a letter in its own table this way. All bits that have
        // letters are below 0x100 in every table.
        [b'0', b'x', ..] if int(s).is_none_or(|n| n > 0x100) => TaskState::UNKNOWN,
        [b'0'..=b'9', ..] => int(s).map_or(TaskState::UNKNOWN, |n| StateTable::assumed().state(n)),
        // `-1` of 2.6: asleep, with a number that is no bit.
        [b'-', ..] => TaskState::UNKNOWN,
        [b'(', letters @ .., b')'] => TaskState::from_text(letters),
        _ => TaskState::from_text(s),
    }
}

/// The letters of trace-cmd's plugin before it took them from the event's format: one per bit, in
/// the order of kernels long gone. So it prints a zombie as `X` and an idle kernel thread as `W`.
fn old_state(s: &[u8]) -> TaskState {
    const LETTERS: &[u8; 8] = b"SDTtZXxW";
    TaskState(
        s.iter()
            .filter_map(|c| LETTERS.iter().position(|l| l == c))
            .fold(0, |bits, i| bits | 1 << i),
    )
}

/// Whether a switch in trace-cmd's rendering has an idle kernel thread as `W`, or as `I`. This
/// distinguishes old letters from new ones, since every system has such threads.
pub(crate) fn idle_letters(body: &[u8]) -> (bool, bool) {
    if body.starts_with(b"prev_comm=") {
        return (false, false);
    }
    match memchr::memmem::find(body, b"] W ==> ") {
        Some(_) => (true, false),
        None => (false, memchr::memmem::find(body, b"] I ==> ").is_some()),
    }
}

/// The fields of the three wake-ups.
pub(super) struct Wake {
    pub(super) tid: Tid,
    pub(super) comm: NameId,
    pub(super) prio: i16,
    pub(super) target: Cpu,
}

/// `comm=… pid=… prio=… [success=1] target_cpu=000`, or trace-cmd's
/// `comm:pid [prio] success=1 CPU:003` (`<CANT FIND FIELD success>` in place of the third).
#[inline]
pub(super) fn wake(body: &[u8], cx: &mut Context<'_>) -> Option<Wake> {
    let mut k = Keys::new(body);
    if let Some(comm) = k.text(b"comm=", b"pid=") {
        let tid = tid(k.int(b"pid=")?);
        let prio = k.int(b"prio=")? as i16;
        // The kernel prints it as %03d; very old ones call it `cpu`.
        let target = k.int(b"target_cpu=").or_else(|| k.int(b"cpu="));
        return Some(Wake {
            tid,
            comm: cx.name(tid.0, comm),
            prio,
            target: target.map_or(Cpu::UNKNOWN, cpu),
        });
    }
    let target = memchr::memmem::rfind(body, b"CPU:").and_then(|i| dec(&body[i + 4..]));
    let (comm, tid, prio) = task(body)?;
    Some(Wake {
        tid,
        comm: cx.name(tid.0, comm),
        prio,
        target: target.map_or(Cpu::UNKNOWN, |t| cpu(t.0)),
    })
}

/// `comm=… pid=… prio=… orig_cpu=… dest_cpu=…`.
pub(super) fn migrate(body: &[u8], cx: &mut Context<'_>) -> Option<What> {
    let mut k = Keys::new(body);
    cx.unread(k.text(b"comm=", b"pid="));
    let tid = tid(k.int(b"pid=")?);
    Some(What::Migrate { tid, from: cpu(k.int(b"orig_cpu=")?), to: cpu(k.int(b"dest_cpu=")?) })
}

/// `comm=… pid=… child_comm=… child_pid=…`; raw: `parent_comm=… parent_pid=…`.
pub(super) fn fork(body: &[u8], cx: &mut Context<'_>) -> Option<What> {
    let mut k = Keys::new(body);
    let comm = k.text_before(b"comm=", b"pid=", b"child_comm=");
    cx.unread(comm);
    let parent = if comm.is_some() {
        k.int(b"pid=")
    } else {
        cx.unread(k.text_before(b"parent_comm=", b"parent_pid=", b"child_comm="));
        k.int(b"parent_pid=").or_else(|| k.int(b"pid="))
    };
    let child_comm = k.text(b"child_comm=", b"child_pid=").unwrap_or(b"");
    let child = tid(k.int(b"child_pid=")?);
    Some(What::Fork { parent: tid(parent?), child, child_comm: cx.name(child.0, child_comm) })
}

/// `filename=… pid=… old_pid=…`.
pub(super) fn exec(body: &[u8], cx: &mut Context<'_>) -> Option<What> {
    let mut k = Keys::new(body);
    let filename = k.text(b"filename=", b"pid=").unwrap_or(b"");
    let tid_ = tid(k.int(b"pid=")?);
    Some(What::Exec {
        tid: tid_,
        old: tid(k.int(b"old_pid=")?),
        filename: cx.name(tid_.0, filename),
    })
}

/// `dst_root=… dst_id=… dst_level=… dst_path=… pid=… comm=…`.
pub(super) fn attach_task(body: &[u8], cx: &mut Context<'_>) -> Option<What> {
    let mut k = Keys::new(body);
    let root = k.int(b"dst_root=")? as u32;
    let path = k.text(b"dst_path=", b"pid=").unwrap_or(b"");
    let tid = tid(k.int(b"pid=")?);
    Some(What::AttachTask { tid, root, path: cx.name(tid.0, path) })
}

/// `comm=… pid=… prio=…`.
pub(super) fn exit(body: &[u8], cx: &mut Context<'_>) -> Option<What> {
    let mut k = Keys::new(body);
    let comm = k.text(b"comm=", b"pid=").unwrap_or(b"");
    let tid = tid(k.int(b"pid=")?);
    Some(What::Exit { tid, comm: cx.name(tid.0, comm) })
}

/// `comm=… pid=… KEY… [ns]`.
#[inline]
pub(super) fn stat(body: &[u8], key: &[u8], cx: &mut Context<'_>) -> Option<(Tid, Nanos)> {
    let mut k = Keys::new(body);
    cx.unread(k.text(b"comm=", b"pid="));
    Some((tid(k.int(b"pid=")?), k.int(key)?))
}

/// `comm=… pid=… delay=… [ns]`.
#[inline]
pub(super) fn delay(body: &[u8], kind: StatKind, cx: &mut Context<'_>) -> Option<What> {
    stat(body, b"delay=", cx).map(|(tid, delay)| What::StatDelay { kind, tid, delay })
}

/// `pid=… iowait=… caller=worker_thread+0x534/0x820 [delay=…]`; raw dialects call the second
/// `io_wait`, and print the caller as a number, as do recorders without the kernel's symbols.
pub(super) fn blocked_reason(body: &[u8], cx: &mut Context<'_>) -> Option<What> {
    let mut k = Keys::new(body);
    let tid = tid(k.int(b"pid=")?);
    let io_wait = k.int(b"iowait=").or_else(|| k.int(b"io_wait="))? != 0;
    let caller = word(k.rest(b"caller=")?);
    // No function's name consists only of this many hexadecimal digits.
    let (address, name) = match pointer(caller) {
        Some((address, len)) if len == caller.len() && (len >= 8 || address == 0) => {
            (address, &b""[..])
        }
        // The function's size says nothing about the sleep, and addresses do not come with it.
        _ => (0, caller.split(|&b| b == b'/').next().unwrap_or(caller)),
    };
    Some(What::BlockedReason { tid, io_wait, caller: address, name: cx.name(tid.0, name) })
}

/// `comm=… pid=… oldprio=… newprio=…`.
pub(super) fn pi_setprio(body: &[u8], cx: &mut Context<'_>) -> Option<What> {
    let mut k = Keys::new(body);
    cx.unread(k.text(b"comm=", b"pid="));
    // Some versions print both priorities of a deadline task; the first is the kernel's number.
    find_word(body, 0, b"newprio=")?;
    Some(What::PiSetPrio {
        tid: tid(k.int(b"pid=")?),
        old: k.int(b"oldprio=")? as i16,
        new: k.int(b"newprio=")? as i16,
    })
}

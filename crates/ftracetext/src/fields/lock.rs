//! `lock:*`.

use super::{Context, without_address};
use crate::scan::{Keys, blank, int, pointer, trim, trim_end, trim_start};
use holdup_trace::{NameId, StackRef, What};

/// `0xff… (flags=SPIN|MUTEX)`, numeric flags, or raw `lock_addr=0xff… flags=33`.
#[inline]
pub(super) fn contention_begin(body: &[u8]) -> Option<What> {
    let mut k = Keys::new(body);
    let lock = lock_address(body, &mut k)?;
    let flags = flags(k.rest(b"flags=")?);
    Some(What::ContentionBegin { lock, flags, stack: StackRef::NONE })
}

/// `0xff… (ret=0)`, or raw `lock_addr=0xff… ret=0`.
#[inline]
pub(super) fn contention_end(body: &[u8]) -> Option<What> {
    let mut k = Keys::new(body);
    let lock = lock_address(body, &mut k)?;
    Some(What::ContentionEnd { lock, ret: k.int(b"ret=")? as i32 })
}

/// `0xff…`, or raw `lock_addr=0xff…`.
#[inline]
pub(super) fn contended_release(body: &[u8]) -> Option<What> {
    let lock = lock_address(body, &mut Keys::new(body))?;
    Some(What::ContendedRelease { lock })
}

fn lock_address(body: &[u8], k: &mut Keys<'_>) -> Option<u64> {
    match pointer(body) {
        Some((lock, _)) => Some(lock),
        None => Some(pointer(k.rest(b"lock_addr=")?)?.0),
    }
}

/// `LCB_F_*` by name or number.
fn flags(s: &[u8]) -> u32 {
    let end = s.iter().position(|&b| b == b')' || blank(b)).unwrap_or(s.len());
    let s = &s[..end];
    if let Some(n) = int(s) {
        return n as u32;
    }
    s.split(|&b| b == b'|').fold(0, |bits, name| {
        bits | match name {
            b"SPIN" => 1,
            b"READ" => 2,
            b"WRITE" => 4,
            b"RT" => 8,
            b"PERCPU" => 16,
            b"MUTEX" => 32,
            _ => int(name).unwrap_or(0) as u32,
        }
    })
}

/// The fields of the lockdep events.
pub(super) struct Lockdep {
    pub(super) lock: u64,
    pub(super) name: NameId,
    pub(super) flags: u32,
}

/// `0xff… [try ][read ]name`, or raw `flags=2 name=… lockdep_addr=0xff…`.
#[inline]
pub(super) fn lockdep(body: &[u8], acquire: bool, cx: &mut Context<'_>) -> Option<Lockdep> {
    let Some((lock, n)) = pointer(body) else { return lockdep_raw(body, cx) };
    let mut name = trim_start(&body[n..]);
    let mut flags = 0;
    if acquire {
        for (word, bit) in [(&b"try "[..], 1), (b"read ", 2)] {
            if let Some(rest) = name.strip_prefix(word) {
                name = rest;
                flags |= bit;
            }
        }
    }
    Some(Lockdep {
        lock,
        name: cx.name((lock >> 4) as u32, without_address(trim_end(name))),
        flags,
    })
}

fn lockdep_raw(body: &[u8], cx: &mut Context<'_>) -> Option<Lockdep> {
    let mut k = Keys::new(body);
    let flags = k.int(b"flags=").unwrap_or(0) as u32;
    let name = trim(k.text(b"name=", b"lockdep_addr=")?);
    let lock = pointer(k.rest(b"lockdep_addr=")?)?.0;
    Some(Lockdep { lock, name: cx.name((lock >> 4) as u32, name), flags })
}

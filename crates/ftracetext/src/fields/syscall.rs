//! `raw_syscalls:*` and `syscalls:*`.

use super::Context;
use crate::scan::{Keys, blank, dec, hex, int, near, trim_start};
use holdup_trace::{ArgsRef, What};

/// `NR 202 (7f.., 80, …)`; raw: `id=202 args=ARRAY[c0, 14, …]`, `id: 0xca`.
#[inline]
pub(super) fn enter(body: &[u8], cx: &mut Context<'_>) -> Option<What> {
    if let Some(rest) = body.strip_prefix(b"NR ") {
        let nr = int(rest)? as u32;
        let args = match near(rest, b'(') {
            Some(open) => cx.batch.push_args(hex_list(&rest[open + 1..])),
            None => ArgsRef::NONE,
        };
        return Some(What::SysEnter { nr, args });
    }
    let mut k = Keys::new(body);
    let nr = id(&mut k)?;
    let args = match k.rest(b"args=ARRAY[") {
        Some(list) => cx.batch.push_args(byte_list(list)),
        None => ArgsRef::NONE,
    };
    Some(What::SysEnter { nr, args })
}

/// `NR 202 = 0`; raw: `id=202 ret=0`.
#[inline]
pub(super) fn exit(body: &[u8]) -> Option<What> {
    if let Some(rest) = body.strip_prefix(b"NR ") {
        let nr = int(rest)? as u32;
        let equals = near(rest, b'=')?;
        return Some(What::SysExit { nr, ret: int(trim_start(&rest[equals + 1..]))? as i64 });
    }
    let mut k = Keys::new(body);
    let nr = id(&mut k)?;
    let ret = k.rest(b"ret=").or_else(|| k.rest(b"ret:"))?;
    Some(What::SysExit { nr, ret: int(trim_start(ret))? as i64 })
}

fn id(k: &mut Keys<'_>) -> Option<u32> {
    let text = k.rest(b"id=").or_else(|| k.rest(b"id:"))?;
    int(trim_start(text)).map(|n| n as u32)
}

/// `(fd: 3, buf: 7ffe…, count: 1)` of the kernel, where every number is hexadecimal;
/// `fd: 0x00000003, …` of perf; `__syscall_nr=0 fd=3 …` of raw dialects.
#[inline]
pub(super) fn enter_named(body: &[u8], nr: u32, cx: &mut Context<'_>) -> Option<What> {
    let mut k = Keys::new(body);
    if let Some(nr) = k.int(b"__syscall_nr=").or_else(|| k.int(b"nr=")) {
        return Some(What::SysEnter { nr: nr as u32, args: cx.batch.push_args(raw_list(body)) });
    }
    let list = body.strip_prefix(b"(").unwrap_or(body);
    let list = list.strip_suffix(b")").unwrap_or(list);
    Some(What::SysEnter { nr, args: cx.batch.push_args(named_list(list)) })
}

/// `0x0`; raw: `__syscall_nr=0 ret=1`.
#[inline]
pub(super) fn exit_named(body: &[u8], nr: u32) -> Option<What> {
    let mut k = Keys::new(body);
    if let Some(ret) = k.int(b"ret=") {
        let nr = k.int(b"__syscall_nr=").or_else(|| k.int(b"nr=")).map_or(nr, |n| n as u32);
        return Some(What::SysExit { nr, ret: ret as i64 });
    }
    Some(What::SysExit { nr, ret: int(body)? as i64 })
}

/// `a, 1, 7ffe…)`.
#[inline]
fn hex_list(mut s: &[u8]) -> [u64; 6] {
    let mut args = [0; 6];
    for arg in &mut args {
        s = trim_start(s);
        // Most arguments are small.
        let small = match s {
            [digit @ b'0'..=b'9', b',' | b')', ..] => Some(((digit - b'0') as u64, 1)),
            [b'0', b'x', rest @ ..] => {
                s = rest;
                None
            }
            _ => None,
        };
        let Some((n, len)) = small.or_else(|| hex(s)) else { break };
        *arg = n;
        s = &s[len..];
        match s.first() {
            Some(b',') => s = &s[1..],
            _ => break,
        }
    }
    args
}

/// `c0, 14, 09, …]`: the bytes of six longs, least significant first; the length of the list gives
/// the width of a long.
fn byte_list(s: &[u8]) -> [u64; 6] {
    let mut bytes = [0u8; 48];
    let mut n = 0;
    for part in s.split(|&b| b == b',') {
        let Some((byte, len)) = hex(trim_start(part)) else { break };
        if n < bytes.len() {
            bytes[n] = byte as u8;
            n += 1;
        }
        if trim_start(part).get(len) == Some(&b']') {
            break;
        }
    }
    let width = n / 6;
    std::array::from_fn(|i| {
        let long = bytes.get(i * width..(i + 1) * width).unwrap_or(&[]);
        long.iter().rev().fold(0, |v, &b| v << 8 | b as u64)
    })
}

/// The numbers after the `: ` of each `name: value`. A value may be followed by its meaning in
/// quotes or parentheses, which may contain commas.
fn named_list(mut s: &[u8]) -> [u64; 6] {
    let mut args = [0; 6];
    for arg in &mut args {
        let Some(colon) = s.iter().position(|&b| b == b':') else { break };
        s = trim_start(&s[colon + 1..]);
        let digits = s.strip_prefix(b"0x").unwrap_or(s);
        *arg = hex(digits).map_or(0, |h| h.0);
        let mut quoted = false;
        let comma = s.iter().position(|&b| {
            quoted ^= b == b'"';
            b == b',' && !quoted
        });
        match comma {
            Some(comma) => s = &s[comma + 1..],
            None => break,
        }
    }
    args
}

/// The values of all `key=value` pairs except the first, which is the number of the call.
fn raw_list(body: &[u8]) -> [u64; 6] {
    let mut args = [0; 6];
    let pairs = body
        .split(|&b| blank(b))
        .filter_map(|w| w.iter().position(|&b| b == b'=').map(|i| &w[i + 1..]));
    for (arg, value) in args.iter_mut().zip(pairs.skip(1)) {
        *arg = if dec(value).is_some() || value.starts_with(b"-") {
            int(value).unwrap_or(0)
        } else {
            0
        };
    }
    args
}

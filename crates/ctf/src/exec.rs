//! Executes plans: reads bytes into registers.

use crate::plan::{Count, Dest, Load, NOTED, NOTED_DATA, Plain, Step};
use std::ops::Range;

/// Where plans store the values they read. Registers that a plan does not write keep their value.
pub(crate) struct Regs {
    pub(crate) int: [u64; 256],
    /// Byte offset in the packet and length.
    pub(crate) text: [(u32, u32); 8],
    /// The last time read, and its width in bits; 0 is none.
    pub(crate) time: (u64, u8),
    /// Positions of text and bytes, for plans that note all of them.
    pub(crate) spots: Vec<Spot>,
}

/// The position of text or bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Range of bits in the packet.
    pub bits: Range<u64>,
    /// Bytes of memory, not text.
    pub data: bool,
    /// The slot in which the plan stores it.
    pub(crate) slot: u8,
}

impl Regs {
    #[inline(always)]
    fn text(&mut self, slot: u8, from: u64, len: u64) {
        self.text[usize::from(slot & 7)] = (from as u32, len as u32);
        if slot & NOTED != 0 {
            self.note(slot, from * 8, len.saturating_mul(8));
        }
    }

    #[cold]
    fn note(&mut self, slot: u8, from: u64, len: u64) {
        let data = slot & NOTED_DATA == NOTED_DATA;
        self.spots.push(Spot { bits: from..from.saturating_add(len), data, slot: slot & 7 });
    }
}

impl Regs {
    pub(crate) fn new() -> Regs {
        Regs { int: [0; 256], text: [(0, 0); 8], time: (0, 0), spots: Vec::new() }
    }
}

/// The data ends before the plan does, or has a value that no plan covers.
#[derive(Debug)]
pub(crate) struct Short;

/// Read `steps` from `data`, whose first `end` bits count, at bit `at`.
#[inline]
pub(crate) fn run(
    steps: &[Step],
    data: &[u8],
    at: &mut u64,
    end: u64,
    regs: &mut Regs,
) -> Result<(), Short> {
    for step in steps {
        match step {
            Step::Block { bits, plain, loads, texts } => {
                let start = *at;
                if end.saturating_sub(start) < *bits {
                    return Err(Short);
                }
                for load in plain {
                    let value = whole_bytes(data, start, load);
                    regs.int[usize::from(load.register)] = value;
                }
                for load in loads {
                    let value = integer(data, start + u64::from(load.offset), load);
                    match load.dest {
                        Dest::Register(r) => regs.int[usize::from(r)] = value,
                        Dest::Time => regs.time = (value, load.size),
                        Dest::Nowhere => {}
                    }
                }
                for text in texts {
                    let from = start / 8 + u64::from(text.offset);
                    regs.text(text.slot, from, text.len.into());
                }
                *at = start + bits;
            }
            Step::Align(to) => align(at, *to)?,
            Step::Str(slot) => {
                align(at, 8)?;
                let from = (*at / 8) as usize;
                let bytes = data.get(from..(end / 8) as usize).ok_or(Short)?;
                let len = nul(bytes).ok_or(Short)?;
                if let Some(slot) = slot {
                    regs.text(*slot, from as u64, len as u64);
                }
                *at = (from + len + 1) as u64 * 8;
            }
            other => dynamic(other, data, at, end, regs)?,
        }
    }
    Ok(())
}

/// The rarer steps.
#[inline(never)]
fn dynamic(step: &Step, data: &[u8], at: &mut u64, end: u64, regs: &mut Regs) -> Result<(), Short> {
    match step {
        Step::Sequence { count, size, stride, text } => {
            let n = times(*count, regs);
            if n == 0 {
                return Ok(());
            }
            let bits = stride.checked_mul(n - 1).and_then(|b| b.checked_add(*size)).ok_or(Short)?;
            if end.saturating_sub(*at) < bits {
                return Err(Short);
            }
            if let Some(slot) = text {
                match slot & NOTED_DATA {
                    // Data that is not made of whole bytes.
                    NOTED_DATA => regs.note(*slot, *at, bits),
                    _ => regs.text(*slot, *at / 8, n),
                }
            }
            *at += bits;
        }
        Step::Repeat { count, body } => {
            for _ in 0..times(*count, regs) {
                let before = *at;
                run(body, data, at, end, regs)?;
                // Elements of zero bits: any number of them reads nothing.
                if *at == before {
                    break;
                }
            }
        }
        Step::Choose { tag, signed, ranges, options } => {
            let tag = regs.int[usize::from(*tag)];
            let tag = if *signed { i128::from(tag as i64) } else { i128::from(tag) };
            let option = ranges.iter().find(|r| (r.0..=r.1).contains(&tag)).ok_or(Short)?.2;
            run(options.get(usize::from(option)).ok_or(Short)?, data, at, end, regs)?;
        }
        // `run` handles these itself.
        Step::Block { .. } | Step::Align(_) | Step::Str(_) => {}
    }
    Ok(())
}

fn times(count: Count, regs: &Regs) -> u64 {
    match count {
        Count::Fixed(n) => n,
        Count::Register(r) => regs.int[usize::from(r)],
    }
}

#[inline(always)]
fn align(at: &mut u64, to: u32) -> Result<(), Short> {
    // A power of two, without a division.
    let below = u64::from(to) - 1;
    *at = at.checked_add(below).ok_or(Short)? & !below;
    Ok(())
}

fn nul(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&b| b == 0)
}

#[inline(always)]
fn bytes<const N: usize>(data: &[u8], at: usize) -> [u8; N] {
    match data.get(at..).and_then(|b| b.first_chunk()) {
        Some(chunk) => *chunk,
        None => [0; N],
    }
}

/// An integer of a block that starts at bit `start`, widened to 64 bits.
#[inline(always)]
fn whole_bytes(data: &[u8], start: u64, load: &Plain) -> u64 {
    let first = (start / 8) as usize + load.byte as usize;
    match data.get(first..).and_then(|b| b.first_chunk()) {
        Some(&window) if start.is_multiple_of(8) => {
            let unused = 64 - u32::from(load.size);
            let high = u64::from_le_bytes(window) << unused;
            if load.signed { ((high as i64) >> unused) as u64 } else { high >> unused }
        }
        // The last bytes of the packet, or a block that starts within a byte.
        _ => rare(data, start + u64::from(load.byte) * 8, &load.load()),
    }
}

/// An integer at bit `at`, widened to 64 bits.
#[inline(always)]
fn integer(data: &[u8], at: u64, load: &Load) -> u64 {
    let (first, shift, size) = ((at / 8) as usize, (at % 8) as u32, u32::from(load.size));
    // Fast path for most: little endian, within eight bytes inside the data.
    if !load.big
        && (1..=64 - shift).contains(&size)
        && let Some(&window) = data.get(first..).and_then(|b| b.first_chunk())
    {
        let high = u64::from_le_bytes(window) << (64 - shift - size);
        return match load.signed {
            true => ((high as i64) >> (64 - size)) as u64,
            false => high >> (64 - size),
        };
    }
    rare(data, at, load)
}

/// [`integer`] for fields that the fast path does not cover.
#[inline(never)]
fn rare(data: &[u8], at: u64, load: &Load) -> u64 {
    let raw = if at.is_multiple_of(8) {
        let byte = (at / 8) as usize;
        match (load.size, load.big) {
            (32, false) => u64::from(u32::from_le_bytes(bytes(data, byte))),
            (64, false) => u64::from_le_bytes(bytes(data, byte)),
            (8, _) => u64::from(bytes::<1>(data, byte)[0]),
            (16, false) => u64::from(u16::from_le_bytes(bytes(data, byte))),
            (16, true) => u64::from(u16::from_be_bytes(bytes(data, byte))),
            (32, true) => u64::from(u32::from_be_bytes(bytes(data, byte))),
            (64, true) => u64::from_be_bytes(bytes(data, byte)),
            _ => packed(data, at, load),
        }
    } else {
        packed(data, at, load)
    };
    if load.signed && load.size < 64 {
        let unused = 64 - u32::from(load.size);
        (((raw << unused) as i64) >> unused) as u64
    } else {
        raw
    }
}

/// An integer of any size at any bit: little endian counts bits from a byte's lowest, big endian
/// from its highest (CTF 1.8, 4.1.5).
fn packed(data: &[u8], at: u64, load: &Load) -> u64 {
    let first = (at / 8) as usize;
    let shift = (at % 8) as u32;
    let size = u32::from(load.size);
    // Nearly all integers fit into eight bytes; this is for those with all eight inside the data.
    if shift + size <= 64
        && let Some(&window) = data.get(first..).and_then(|b| b.first_chunk())
    {
        let unused = 64 - shift - size;
        return match load.big {
            true => u64::from_be_bytes(window) << shift >> (64 - size),
            false => u64::from_le_bytes(window) << unused >> (64 - size),
        };
    }
    let n = ((shift + size) as usize).div_ceil(8);
    let mut window = [0u8; 16];
    for (to, from) in window.iter_mut().zip(data.get(first..).unwrap_or(&[]).iter().take(n)) {
        *to = *from;
    }
    let mask = if size >= 64 { u64::MAX } else { (1 << size) - 1 };
    if load.big {
        let all = u128::from_be_bytes(window);
        ((all >> (128 - shift - size)) as u64) & mask
    } else {
        ((u128::from_le_bytes(window) >> shift) as u64) & mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(size: u8, signed: bool, big: bool) -> Load {
        Load { offset: 0, size, signed, big, dest: Dest::Nowhere }
    }

    #[test]
    fn integers_of_any_size_at_any_bit_in_both_orders() {
        let data = [0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x11, 0x22];
        for (at, size, little, big) in [
            (0, 32, 0x78563412, 0x12345678u64),
            (0, 5, 0x12, 0x02),
            (5, 27, 0x78563412 >> 5, 0x2345678),
            (4, 8, 0x41, 0x23),
            (8, 16, 0x5634, 0x3456),
        ] {
            {
                assert_eq!(integer(&data, at, &load(size, false, true)), big, "{at} {size} big");
                assert_eq!(integer(&data, at, &load(size, false, false)), little, "{at} {size}");
            }
        }
        // All 64 bits across nine bytes.
        let all = u128::from_le_bytes(*b"\x12\x34\x56\x78\x9a\xbc\xde\xf0\x11\0\0\0\0\0\0\0");
        assert_eq!(integer(&data, 3, &load(64, false, false)), (all >> 3) as u64);
        assert_eq!(integer(&data, 56, &load(8, true, false)) as i64, -16);
        assert_eq!(integer(&data, 1000, &load(8, true, false)), 0, "beyond the end");
    }
}

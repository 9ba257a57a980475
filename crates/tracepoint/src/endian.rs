//! Byte order, decided once per file and then part of the type.

/// Reads integers in one byte order. Callers have checked the bounds, or accept 0 for a value out
/// of bounds.
pub trait Endian: Copy + Send + Sync + 'static {
    /// Whether this is big endian.
    const BIG: bool;
    /// 2 bytes at `at`; 0 if out of bounds.
    fn u16(b: &[u8], at: usize) -> u16;
    /// 4 bytes at `at`; 0 if out of bounds.
    fn u32(b: &[u8], at: usize) -> u32;
    /// 8 bytes at `at`; 0 if out of bounds.
    fn u64(b: &[u8], at: usize) -> u64;
}

/// Little endian.
#[derive(Clone, Copy, Debug)]
pub struct Little;

/// Big endian.
#[derive(Clone, Copy, Debug)]
pub struct Big;

#[inline(always)]
fn bytes<const N: usize>(b: &[u8], at: usize) -> [u8; N] {
    match b.get(at..).and_then(|b| b.first_chunk::<N>()) {
        Some(c) => *c,
        None => [0; N],
    }
}

impl Endian for Little {
    const BIG: bool = false;
    #[inline(always)]
    fn u16(b: &[u8], at: usize) -> u16 {
        u16::from_le_bytes(bytes(b, at))
    }
    #[inline(always)]
    fn u32(b: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes(b, at))
    }
    #[inline(always)]
    fn u64(b: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(bytes(b, at))
    }
}

impl Endian for Big {
    const BIG: bool = true;
    #[inline(always)]
    fn u16(b: &[u8], at: usize) -> u16 {
        u16::from_be_bytes(bytes(b, at))
    }
    #[inline(always)]
    fn u32(b: &[u8], at: usize) -> u32 {
        u32::from_be_bytes(bytes(b, at))
    }
    #[inline(always)]
    fn u64(b: &[u8], at: usize) -> u64 {
        u64::from_be_bytes(bytes(b, at))
    }
}

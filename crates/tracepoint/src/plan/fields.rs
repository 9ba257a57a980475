//! Fields of one payload: the place of each, and how it is read.

use crate::Endian;
use holdup_trace::{Cpu, LocalNames, NameId, Tid};

/// An integer field: its offset and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int {
    pub(super) offset: u16,
    pub(super) size: u8,
    pub(super) signed: bool,
}

impl Int {
    #[inline(always)]
    pub(super) fn get<E: Endian>(self, raw: &[u8]) -> u64 {
        let at = self.offset as usize;
        match (self.size, self.signed) {
            (8, _) => E::u64(raw, at),
            (4, false) => E::u32(raw, at) as u64,
            (4, true) => E::u32(raw, at) as i32 as u64,
            (2, false) => E::u16(raw, at) as u64,
            (2, true) => E::u16(raw, at) as i16 as u64,
            (_, false) => raw.get(at).copied().unwrap_or(0) as u64,
            (_, true) => raw.get(at).copied().unwrap_or(0) as i8 as u64,
        }
    }
    #[inline(always)]
    pub(super) fn u32<E: Endian>(self, raw: &[u8]) -> u32 {
        self.get::<E>(raw) as u32
    }
    #[inline(always)]
    pub(super) fn tid<E: Endian>(self, raw: &[u8]) -> Tid {
        Tid(self.u32::<E>(raw))
    }
    #[inline(always)]
    pub(super) fn cpu<E: Endian>(self, raw: &[u8]) -> Cpu {
        Cpu(u16::try_from(self.u32::<E>(raw)).unwrap_or(u16::MAX))
    }
    #[inline(always)]
    pub(super) fn prio<E: Endian>(self, raw: &[u8]) -> i16 {
        self.get::<E>(raw) as i16
    }
}

/// A string field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Str {
    /// `char[n]`, n >= 16: the first 16 bytes are read.
    Comm(u16),
    /// `char[n]` of any length.
    Fixed(u16, u16),
    /// `__data_loc`: offset of the locator.
    DataLoc(u16),
    /// `__rel_loc`: offset of the locator.
    RelLoc(u16),
    /// The event does not have the field.
    Absent,
}

impl Str {
    #[inline]
    fn bytes<E: Endian>(self, raw: &[u8]) -> &[u8] {
        let (at, len) = match self {
            Str::Comm(at) => (at as usize, 16),
            Str::Fixed(at, len) => (at as usize, len as usize),
            Str::DataLoc(at) => {
                let loc = E::u32(raw, at as usize);
                ((loc & 0xffff) as usize, (loc >> 16) as usize)
            }
            Str::RelLoc(at) => {
                let loc = E::u32(raw, at as usize);
                (at as usize + 4 + (loc & 0xffff) as usize, (loc >> 16) as usize)
            }
            Str::Absent => return &[],
        };
        raw.get(at..(at + len).min(raw.len())).unwrap_or(&[])
    }

    #[inline]
    pub(super) fn name<E: Endian>(self, raw: &[u8], hint: u32, names: &mut LocalNames) -> NameId {
        if let Str::Comm(at) = self
            && let Some(comm) = raw.get(at as usize..).and_then(|b| b.first_chunk::<16>())
        {
            return names.comm(hint, *comm);
        }
        names.name(hint, self.bytes::<E>(raw))
    }
}

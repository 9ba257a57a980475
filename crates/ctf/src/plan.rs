//! Plans: the steps that read a type ([`crate::compile`] makes them, [`crate::exec`] takes them).
//!
//! Fields of fixed size that follow each other become one [`Step::Block`]: one length check, and a
//! load for each field that is wanted. Unwanted fields cost nothing. Only strings, sequences and
//! variants, whose sizes are in the data, are steps of their own.
//!
//! Values go to numbered registers ([`crate::exec::Regs`]): fields that the caller wants, and
//! fields that a later step needs (the length of a sequence, the tag of a variant).

/// Set in the number of a slot: the position of its text is noted.
pub(crate) const NOTED: u8 = 0x80;
/// Set in the number of a slot: the position of its data, which is no text, is noted.
pub(crate) const NOTED_DATA: u8 = 0xc0;

/// The register or other place that receives a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dest {
    Nowhere,
    Register(u8),
    /// The time in the header of an event: all 64 bits or the lowest few.
    Time,
}

/// Reads one field of fixed size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Bits from the start of its block.
    pub(crate) offset: u32,
    pub(crate) size: u8,
    pub(crate) signed: bool,
    pub(crate) big: bool,
    pub(crate) dest: Dest,
}

/// The most common kind of [`Load`]: whole bytes, little endian, into a register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain {
    /// Bytes from the start of its block.
    pub(crate) byte: u32,
    pub(crate) size: u8,
    pub(crate) signed: bool,
    pub(crate) register: u8,
}

impl Plain {
    pub(crate) fn of(load: &Load) -> Option<Plain> {
        let Load { offset, size, signed, big, dest: Dest::Register(register) } = *load else {
            return None;
        };
        let whole = offset.is_multiple_of(8) && size.is_multiple_of(8) && (8..=64).contains(&size);
        (whole && !big).then_some(Plain { byte: offset / 8, size, signed, register })
    }

    /// The same load in the general form.
    pub(crate) fn load(self) -> Load {
        let Plain { byte, size, signed, register } = self;
        Load { offset: byte * 8, size, signed, big: false, dest: Dest::Register(register) }
    }
}

/// Text of fixed size: its offset in bytes from the start of the block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextLoad {
    pub(crate) offset: u32,
    pub(crate) len: u32,
    pub(crate) slot: u8,
}

/// The number of elements.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    Fixed(u64),
    Register(u8),
}

/// One step of reading.
#[derive(Debug)]
pub(crate) enum Step {
    /// Advance to a multiple of this many bits from the start of the packet.
    Align(u32),
    Block {
        bits: u64,
        plain: Box<[Plain]>,
        /// All other loads.
        loads: Box<[Load]>,
        texts: Box<[TextLoad]>,
    },
    /// Bytes up to a NUL; kept as text if it is wanted.
    Str(Option<u8>),
    /// Elements of fixed size, one after the other; kept as text if that is wanted.
    Sequence {
        count: Count,
        /// Bits of one element, and bits from one element's start to the next.
        size: u64,
        stride: u64,
        text: Option<u8>,
    },
    Repeat {
        count: Count,
        body: Box<[Step]>,
    },
    Choose {
        tag: u8,
        signed: bool,
        /// Smallest and largest tag, and the index of the option.
        ranges: Box<[(i128, i128, u16)]>,
        options: Box<[Box<[Step]>]>,
    },
}

/// The bit at which steps end that begin at bit `at` of a byte, if it does not depend on the byte's
/// position or on the data.
pub(crate) fn size(at: u64, steps: &[Step]) -> Option<u64> {
    steps.iter().try_fold(at, |at, step| match step {
        Step::Block { bits, .. } => at.checked_add(*bits),
        Step::Align(to) if matches!(to, 1 | 2 | 4 | 8) => {
            at.checked_next_multiple_of(u64::from(*to))
        }
        _ => None,
    })
}

/// A field the caller wants, by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want<'a> {
    /// Its names, without the underscore that LTTng puts before them.
    pub(crate) names: &'a [&'a str],
    pub(crate) to: Slot,
}

/// The slot that receives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Slot {
    Register(u8),
    Text(u8),
}

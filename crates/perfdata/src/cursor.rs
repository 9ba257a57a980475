//! Bounds-checked reading of headers and sections, where speed does not matter.

use holdup_tracepoint::{Big, Endian, Little};

/// Byte order of a file, as a value. Code that runs per record has the byte order as a type
/// instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    pub(crate) fn u16(self, b: &[u8], at: usize) -> u16 {
        match self {
            Order::Little => Little::u16(b, at),
            Order::Big => Big::u16(b, at),
        }
    }
    pub(crate) fn u32(self, b: &[u8], at: usize) -> u32 {
        match self {
            Order::Little => Little::u32(b, at),
            Order::Big => Big::u32(b, at),
        }
    }
    pub(crate) fn u64(self, b: &[u8], at: usize) -> u64 {
        match self {
            Order::Little => Little::u64(b, at),
            Order::Big => Big::u64(b, at),
        }
    }
}

/// Takes values off the front of a slice; `None` at its end.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    order: Order,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], order: Order) -> Cursor<'a> {
        Cursor { rest: bytes, order }
    }

    /// Everything not yet taken.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn set_order(&mut self, order: Order) {
        self.order = order;
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(n)?;
        self.rest = tail;
        Some(head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.bytes(1).map(|b| b[0])
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.bytes(4).map(|b| self.order.u32(b, 0))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.bytes(8).map(|b| self.order.u64(b, 0))
    }

    /// Takes a 64-bit length and that many bytes; `None` if fewer are left.
    pub(crate) fn sized64(&mut self) -> Option<&'a [u8]> {
        let n = usize::try_from(self.u64()?).ok()?;
        self.bytes(n)
    }

    /// As [`Cursor::sized64`] with a 32-bit length.
    pub(crate) fn sized32(&mut self) -> Option<&'a [u8]> {
        let n = self.u32()? as usize;
        self.bytes(n)
    }

    /// Bytes up to a NUL, which is consumed too.
    pub(crate) fn c_str(&mut self) -> Option<&'a [u8]> {
        let n = self.rest.iter().position(|&b| b == 0)?;
        let s = self.bytes(n)?;
        self.bytes(1)?;
        Some(s)
    }

    /// perf's header string: a u32 length that includes padding, then the bytes. The text ends at
    /// the NUL.
    pub(crate) fn string(&mut self) -> Option<String> {
        Some(text(self.sized32()?))
    }
}

/// The text before the first NUL, lossily as UTF-8.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

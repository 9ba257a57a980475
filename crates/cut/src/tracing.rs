//! tracefs' description of its events, as in perf.data and trace.dat, without names: no symbols of
//! modules, no strings from the kernel's memory, no user-defined events, and replaced names of
//! threads.
//!
//! ```text
//! 17 08 44 "tracing"  version NUL  endian:u8 (1 big)  long:u8  page:u32
//! "header_page" NUL  size:u64 text      "header_event" NUL  size:u64 text
//! count:u32  { size:u64 text }                                the ftrace system
//! count:u32  { system NUL  count:u32  { size:u64 text } }     the others
//! size:u32 kallsyms   size:u32 printk formats   size:u64 saved names (version 0.6)
//! ```

use crate::fields::is_private;
use crate::names::Names;

/// The first bytes of the description.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Numbers in the file's byte order.
#[derive(Clone, Copy)]
pub(crate) struct Order {
    pub(crate) big: bool,
}

impl Order {
    pub(crate) fn u64(self, v: u64) -> [u8; 8] {
        if self.big { v.to_be_bytes() } else { v.to_le_bytes() }
    }
    pub(crate) fn u32(self, v: u32) -> [u8; 4] {
        if self.big { v.to_be_bytes() } else { v.to_le_bytes() }
    }
    pub(crate) fn u16(self, v: u16) -> [u8; 2] {
        if self.big { v.to_be_bytes() } else { v.to_le_bytes() }
    }
    pub(crate) fn read_u64(self, b: &[u8], at: usize) -> Option<u64> {
        let b: [u8; 8] = b.get(at..)?.first_chunk().copied()?;
        Some(if self.big { u64::from_be_bytes(b) } else { u64::from_le_bytes(b) })
    }
    pub(crate) fn read_u32(self, b: &[u8], at: usize) -> Option<u32> {
        let b: [u8; 4] = b.get(at..)?.first_chunk().copied()?;
        Some(if self.big { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) })
    }
    pub(crate) fn read_u16(self, b: &[u8], at: usize) -> Option<u16> {
        let b: [u8; 2] = b.get(at..)?.first_chunk().copied()?;
        Some(if self.big { u16::from_be_bytes(b) } else { u16::from_le_bytes(b) })
    }
}

/// The whole description, as in perf.data. Unreadable parts are left out.
pub(crate) fn data(bytes: &[u8], names: &mut Names) -> Vec<u8> {
    let mut from = Copier::of(bytes, Order { big: false });
    if from.all(names).is_none() {
        // Truncated: complete parts were copied, and the zeros mean that the rest is empty.
        from.out.extend([0; 64]);
    }
    from.out
}

/// Formats of one system.
pub(crate) fn formats(bytes: &[u8], order: Order, leave_out: bool) -> Option<Vec<u8>> {
    let mut from = Copier::of(bytes, order);
    from.formats(leave_out)?;
    Some(from.out)
}

/// Formats by system.
pub(crate) fn systems(bytes: &[u8], order: Order) -> Option<Vec<u8>> {
    let mut from = Copier::of(bytes, order);
    from.systems()?;
    Some(from.out)
}

/// Symbols of the kernel.
pub(crate) fn symbols(bytes: &[u8], order: Order) -> Option<Vec<u8>> {
    let mut from = Copier::of(bytes, order);
    from.symbols()?;
    Some(from.out)
}

/// Names of threads.
pub(crate) fn saved_names(bytes: &[u8], order: Order, names: &mut Names) -> Option<Vec<u8>> {
    let mut from = Copier::of(bytes, order);
    from.saved_names(names)?;
    Some(from.out)
}

/// Copies part by part.
struct Copier<'a> {
    rest: &'a [u8],
    order: Order,
    out: Vec<u8>,
}

impl<'a> Copier<'a> {
    fn of(bytes: &'a [u8], order: Order) -> Copier<'a> {
        Copier { rest: bytes, order, out: Vec::with_capacity(bytes.len()) }
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(n)?;
        self.rest = tail;
        Some(head)
    }

    fn copy(&mut self, n: usize) -> Option<&'a [u8]> {
        let bytes = self.take(n)?;
        self.out.extend_from_slice(bytes);
        Some(bytes)
    }

    fn c_str(&mut self) -> Option<&'a [u8]> {
        let n = self.rest.iter().position(|&b| b == 0)?;
        self.copy(n + 1)
    }

    fn u32(&mut self) -> Option<u32> {
        let bytes = self.take(4)?;
        self.order.read_u32(bytes, 0)
    }

    /// A size of eight bytes, and that many bytes.
    fn long(&mut self) -> Option<&'a [u8]> {
        let size = self.take(8)?;
        let size = self.order.read_u64(size, 0)?;
        self.take(usize::try_from(size).ok()?)
    }

    fn put_long(&mut self, bytes: &[u8]) {
        self.out.extend(self.order.u64(bytes.len() as u64));
        self.out.extend_from_slice(bytes);
    }

    fn put_u32(&mut self, v: u32) {
        self.out.extend(self.order.u32(v));
    }

    fn all(&mut self, names: &mut Names) -> Option<()> {
        self.copy(MAGIC.len()).filter(|m| *m == MAGIC)?;
        let version = self.c_str()?;
        let big = self.copy(1)?[0] != 0;
        self.order = Order { big };
        self.copy(1 + 4)?; // size of a long, size of a page
        for _ in ["header_page", "header_event"] {
            self.c_str()?;
            let text = self.long()?;
            self.put_long(text);
        }
        self.formats(false)?;
        self.systems()?;
        self.symbols()?;
        let formats = self.u32()?;
        self.take(formats as usize)?;
        self.put_u32(0);
        if version >= &b"0.6\0"[..] {
            self.saved_names(names)?;
        }
        Some(())
    }

    fn systems(&mut self) -> Option<()> {
        let systems = self.u32()?;
        self.put_u32(systems);
        for _ in 0..systems {
            let system = self.c_str()?;
            let system = String::from_utf8_lossy(&system[..system.len() - 1]);
            self.formats(is_private(&system))?;
        }
        Some(())
    }

    fn formats(&mut self, leave_out: bool) -> Option<()> {
        let count = self.u32()?;
        self.put_u32(if leave_out { 0 } else { count });
        for _ in 0..count {
            let text = self.long()?;
            if !leave_out {
                self.put_long(text);
            }
        }
        Some(())
    }

    fn symbols(&mut self) -> Option<()> {
        let size = self.u32()?;
        let symbols = self.take(size as usize)?;
        let mut kept = Vec::with_capacity(symbols.len());
        for line in symbols.split_inclusive(|&b| b == b'\n').filter(|l| !l.contains(&b'[')) {
            kept.extend_from_slice(line);
        }
        self.put_u32(kept.len() as u32);
        self.out.extend(kept);
        Some(())
    }

    /// Lines with a thread's id and its name.
    fn saved_names(&mut self, names: &mut Names) -> Option<()> {
        let mut lines = self.long()?.to_vec();
        for line in lines.split_mut(|&b| b == b'\n') {
            if let Some(at) = line.iter().position(|&b| b == b' ') {
                names.replace(&mut line[at + 1..]);
            }
        }
        self.put_long(&lines);
        Some(())
    }
}

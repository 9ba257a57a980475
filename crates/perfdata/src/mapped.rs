//! Records of code in memory (PERF_RECORD_MMAP, PERF_RECORD_MMAP2, PERF_RECORD_KSYMBOL), and build
//! ids.
//!
//! ```text
//!  MMAP    header:8 pid:4 tid:4 start:8 length:8 offset:8 file name, sample ids
//!  MMAP2   … offset:8 major:4 minor:4 inode:8 generation:8 prot:4 flags:4 file name …
//!          … offset:8 size:1 reserved:3 build id:20        prot:4 flags:4 file name …
//!  KSYMBOL header:8 address:8 length:4 type:2 flags:2 name of the function, sample ids
//! ```
//!
//! KSYMBOL describes code that the kernel generated at run time: BPF programs and trampolines. perf
//! uses the function's name as the file name, too. BPF_EVENT, which accompanies it, names the
//! program by a number that means nothing on another machine.

use crate::cursor::{Cursor, Order, text};
use crate::record;
use holdup_trace::{BuildId, Built, LocalNames, Mapping, NameId};
use holdup_tracepoint::Endian;

/// Offset of the file's name in bytes.
const MMAP_NAME: usize = 40;
const MMAP2_NAME: usize = 72;
const KSYMBOL_NAME: usize = 24;
/// `PROT_EXEC`.
const EXECUTABLE: u32 = 4;

/// Fewest bytes between header and trailer of a mapping record.
pub(crate) fn least_body(kind: u32) -> usize {
    let name = match kind {
        record::MMAP => MMAP_NAME,
        record::KSYMBOL => KSYMBOL_NAME,
        _ => MMAP2_NAME,
    };
    name - record::HEADER
}

/// The mapping that a record, without its trailer, describes; `None` if it has no code. The record
/// has at least [`least_body`] bytes.
pub(crate) fn parse<E: Endian>(kind: u32, rec: &[u8], names: &mut LocalNames) -> Option<Mapping> {
    if kind == record::KSYMBOL {
        return made_by_kernel::<E>(rec, names);
    }
    let misc = E::u16(rec, 4);
    let (name, code) = match kind {
        record::MMAP => (MMAP_NAME, misc & record::MISC_MMAP_DATA == 0),
        _ => (MMAP2_NAME, E::u32(rec, 64) & EXECUTABLE != 0),
    };
    let kernel = misc & record::MISC_CPUMODE == record::MISC_KERNEL;
    // Records of kernel modules do not say how they are mapped.
    if !code && !kernel {
        return None;
    }
    let says_build = kind == record::MMAP2 && misc & record::MISC_MMAP_BUILD_ID != 0;
    let build_id = says_build.then(|| {
        let size = usize::from(rec[40]).min(20);
        BuildId::new(&rec[44..44 + size])
    });
    Some(Mapping {
        start: E::u64(rec, 16),
        len: E::u64(rec, 24),
        offset: E::u64(rec, 32),
        file: names.name(0, &rec[name..]),
        kernel,
        build_id: build_id.flatten(),
    })
}

/// A function that the kernel generated; `None` if the record says that it was removed.
fn made_by_kernel<E: Endian>(rec: &[u8], names: &mut LocalNames) -> Option<Mapping> {
    let file = names.name(0, &rec[KSYMBOL_NAME..]);
    let gone = E::u16(rec, 22) & record::KSYMBOL_UNREGISTER != 0;
    (!gone && file != NameId::NONE).then_some(Mapping {
        start: E::u64(rec, 8),
        len: E::u32(rec, 16).into(),
        offset: 0,
        file,
        kernel: true,
        build_id: None,
    })
}

/// The files of a section of build ids, which is a sequence of records.
pub(crate) fn builds(mut section: &[u8], order: Order) -> Vec<Built> {
    let mut found = Vec::new();
    while section.len() > record::HEADER {
        let size = order.u16(section, 6) as usize;
        let Some(rec) = section.get(..size).filter(|r| r.len() > record::HEADER) else { break };
        found.extend(build(rec, order));
        section = &section[size..];
    }
    found
}

/// The file of one build-id record; `None` if the record is cut off.
pub(crate) fn build(rec: &[u8], order: Order) -> Option<Built> {
    let misc = order.u16(rec, 4);
    let mut c = Cursor::new(rec.get(record::HEADER..)?, order);
    c.u32()?; // whose process
    let id = c.bytes(24)?;
    // Without a size the build id has the length of a SHA-1.
    let size = match misc & record::MISC_BUILD_ID_SIZE {
        0 => 20,
        _ => usize::from(id[20]).min(20),
    };
    Some(Built { file: text(c.rest()), build_id: BuildId::new(&id[..size])? })
}

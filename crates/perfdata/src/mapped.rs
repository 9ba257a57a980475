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
use holdup_tracepoint::{Big, Endian, Little};

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
    let (mapping, name) = match kind {
        record::KSYMBOL => made_by_kernel::<E>(rec)?,
        _ => of_file::<E>(kind, rec)?,
    };
    Some(Mapping { file: names.name(0, name), ..mapping })
}

/// The mapping that a MMAP2 record of a file of this machine describes, as yet without a name, and
/// the name of its file; `None` if it has no code or is cut off.
pub fn mapped_code(rec: &[u8]) -> Option<(Mapping, &[u8])> {
    if rec.len() < MMAP2_NAME {
        return None;
    }
    let (mapping, name) = match cfg!(target_endian = "big") {
        true => of_file::<Big>(record::MMAP2, rec)?,
        false => of_file::<Little>(record::MMAP2, rec)?,
    };
    let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
    Some((mapping, &name[..end]))
}

/// The mapping of a file, as yet without a name, and the name with the zeros that follow.
fn of_file<E: Endian>(kind: u32, rec: &[u8]) -> Option<(Mapping, &[u8])> {
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
    let mapping = Mapping {
        start: E::u64(rec, 16),
        len: E::u64(rec, 24),
        offset: E::u64(rec, 32),
        file: NameId::NONE,
        kernel,
        build_id: build_id.flatten(),
    };
    Some((mapping, &rec[name..]))
}

/// As [`of_file`], of a function that the kernel generated; `None` if it has no name or the record
/// says that it was removed.
fn made_by_kernel<E: Endian>(rec: &[u8]) -> Option<(Mapping, &[u8])> {
    let name = &rec[KSYMBOL_NAME..];
    let gone = E::u16(rec, 22) & record::KSYMBOL_UNREGISTER != 0;
    let mapping = Mapping {
        start: E::u64(rec, 8),
        len: E::u32(rec, 16).into(),
        offset: 0,
        file: NameId::NONE,
        kernel: true,
        build_id: None,
    };
    (!gone && name.first().is_some_and(|&b| b != 0)).then_some((mapping, name))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_of_data_or_a_cut_record_has_no_code() {
        let record = |protection: u32| {
            let mut rec = vec![0; MMAP2_NAME];
            rec[16..24].copy_from_slice(&0x1000_u64.to_ne_bytes());
            rec[64..68].copy_from_slice(&protection.to_ne_bytes());
            rec.extend(b"/bin/x\0\0");
            rec
        };
        let (code, data) = (record(EXECUTABLE | 1), record(1));
        let (mapping, name) = mapped_code(&code).unwrap();
        assert_eq!((mapping.start, name), (0x1000, &b"/bin/x"[..]));
        assert_eq!(mapped_code(&code[..74]).map(|of| of.1), Some(&b"/b"[..]));
        assert_eq!(mapped_code(&code[..71]), None);
        assert_eq!(mapped_code(&data), None);
    }
}

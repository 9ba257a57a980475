//! Code in memory: which file an address belongs to.

use crate::NameId;
use std::fmt;

/// Build id of a file (`NT_GNU_BUILD_ID`): equal for equal code, up to 20 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId {
    bytes: [u8; 20],
    len: u8,
}

impl BuildId {
    /// From its bytes, of which the first 20 count; `None` if there are none, or only zeros.
    pub fn new(id: &[u8]) -> Option<BuildId> {
        let id = &id[..id.len().min(20)];
        let mut bytes = [0; 20];
        bytes[..id.len()].copy_from_slice(id);
        (id.iter().any(|&b| b != 0)).then_some(BuildId { bytes, len: id.len() as u8 })
    }

    /// From the hexadecimal digits that it prints; `None` if there is anything else.
    pub fn of_hex(text: &str) -> Option<BuildId> {
        let digits = text.as_bytes().chunks(2);
        let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok();
        BuildId::new(&digits.map(byte).collect::<Option<Vec<u8>>>()?)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len).min(20)]
    }
}

impl fmt::Display for BuildId {
    /// In hexadecimal, as perf and readelf print it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A range of memory with code in it (PERF_RECORD_MMAP, PERF_RECORD_MMAP2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// The file as the kernel spells it: a path, `[vdso]`, `//anon`, `[kernel.kallsyms]_text`.
    pub file: NameId,
    /// Memory of the kernel, the same for every process.
    pub kernel: bool,
    /// Build id of the file, if the record has it.
    pub build_id: Option<BuildId>,
}

/// The build id of a file, as the recorder saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Built {
    /// The file, as mappings spell it.
    pub file: String,
    /// Its build id.
    pub build_id: BuildId,
}

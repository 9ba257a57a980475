//! Source lines, from the line tables of DWARF.

use crate::elf::Elf;
use addr2line::Context;
use gimli::{Dwarf, EndianRcSlice, Error, RunTimeEndian, SectionId};
use std::rc::Rc;

/// Largest section read, unpacked. A kernel's are below 300 MB.
const LARGEST: u64 = 512 << 20;
/// Largest section of line tables: a row of a table in memory is larger than in the file.
const LARGEST_TABLE: u64 = 64 << 20;

type Slice = EndianRcSlice<RunTimeEndian>;

/// What finds lines in one file.
pub(crate) struct Lines(Context<Slice>);

impl Lines {
    /// Of a file with debug information; `None` if it has none that can be read.
    pub(crate) fn new(elf: &Elf) -> Option<Lines> {
        let endian = if elf.little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let load = |id: SectionId| -> Result<Slice, Error> {
            let most = match id {
                SectionId::DebugLine => LARGEST_TABLE,
                _ => LARGEST,
            };
            let bytes = elf.section(id.name(), most).unwrap_or_default();
            Ok(EndianRcSlice::new(Rc::from(bytes), endian))
        };
        elf.has_section(".debug_line").then_some(())?;
        Some(Lines(Context::from_dwarf(Dwarf::load(load).ok()?).ok()?))
    }

    /// `file.c:12` of the code at a virtual address of the file: the name without its folders.
    pub(crate) fn find(&self, address: u64) -> Option<String> {
        let location = self.0.find_location(address).ok()??;
        let file = location.file?.rsplit('/').next()?;
        Some(format!("{file}:{}", location.line?))
    }
}

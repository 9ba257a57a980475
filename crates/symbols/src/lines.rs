//! Source lines and inlined functions, from DWARF.

use crate::demangle::demangle;
use crate::elf::Elf;
use crate::inline::{Inlined, Inlines, Slice};
use crate::{Function, Source};
use addr2line::{Context, Location};
use gimli::{Dwarf, Error, RunTimeEndian, SectionId};
use std::rc::Rc;

/// Largest section read, unpacked. A kernel's are below 300 MB.
const LARGEST: u64 = 512 << 20;
/// Largest section of line tables: a row of a table in memory is larger than in the file.
const LARGEST_TABLE: u64 = 64 << 20;

/// Finds lines and inlined functions in one file.
pub(crate) struct Lines {
    context: Context<Slice>,
    inlines: Inlines,
}

impl Lines {
    /// A finder for a file; `None` if it has no readable debug information.
    pub(crate) fn new(elf: &Elf) -> Option<Lines> {
        let endian = if elf.little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let load = |id: SectionId| -> Result<Slice, Error> {
            let most = match id {
                SectionId::DebugLine => LARGEST_TABLE,
                _ => LARGEST,
            };
            let bytes = elf.section(id.name(), most).unwrap_or_default();
            Ok(Slice::new(Rc::from(bytes), endian))
        };
        elf.has_section(".debug_line").then_some(())?;
        let context = Context::from_dwarf(Dwarf::load(load).ok()?).ok()?;
        Some(Lines { context, inlines: Inlines::default() })
    }

    /// The source location of the code at a virtual address of the file.
    pub(crate) fn find(&self, address: u64) -> Option<Source> {
        // addr2line computes the address plus one, which must not overflow.
        address.checked_add(1)?;
        self.context.find_location(address).ok()?.and_then(source)
    }

    /// The functions inlined at a virtual address of the file, each into the next, and the source
    /// location in the function that contains them all.
    pub(crate) fn inlined(&self, address: u64) -> (Vec<Function>, Option<Source>) {
        let unit = address
            .checked_add(1)
            .and_then(|_| self.context.find_dwarf_and_unit(address).skip_all_loads());
        let found = unit.and_then(|unit| self.inlines.find(unit, address).ok());
        let mut place = self.find(address);
        let mut functions = Vec::new();
        for Inlined { name, call } in found.into_iter().flatten().rev() {
            let function = name.map(|name| demangle(&name).into());
            functions.push(Function { function, source: place, inlined: true });
            place = call.map(|(file, line)| Source { file: file.into(), line });
        }
        (functions, place)
    }
}

fn source(location: Location<'_>) -> Option<Source> {
    Some(Source { file: location.file?.into(), line: location.line? })
}

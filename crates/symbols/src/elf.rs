//! ELF files: where code is, what it is called, which build it is.
//!
//! Everything comes from a file that somebody else wrote. The crate `object` checks every offset
//! against the file; what remains is how much to keep, which the limits here say.

use crate::demangle::demangle;
use crate::table::{Binding, MOST, Symbol, Table};
use holdup_map::Bytes;
use holdup_trace::BuildId;
use object::{
    CompressionFormat, File, Object, ObjectSection, ObjectSegment, ObjectSymbol, ObjectSymbolTable,
    SymbolFlags, SymbolIndex, elf,
};
use std::io::Read;
use std::path::Path;

/// Largest file looked at: beyond the largest programs with debug information.
const LARGEST: u64 = 8 << 30;

/// An ELF file.
pub(crate) struct Elf {
    bytes: Bytes,
    /// Offset in the file, bytes there, virtual address of each part that is loaded.
    segments: Vec<(u64, u64, u64)>,
    pub(crate) build_id: Option<BuildId>,
    little_endian: bool,
    table: Table,
    /// The functions are those that others may link to; the file is stripped of the rest.
    pub(crate) only_dynamic: bool,
}

impl Elf {
    /// A file; `None` if it is none that can be read.
    pub(crate) fn open(path: &Path) -> Option<Elf> {
        // Opening a pipe would block.
        let metadata = path.metadata().ok()?;
        if !metadata.is_file() || metadata.len() > LARGEST {
            return None;
        }
        Elf::parse(Bytes::file(std::fs::File::open(path).ok()?).ok()?)
    }

    /// From all its bytes.
    pub(crate) fn parse(bytes: Bytes) -> Option<Elf> {
        let file = File::parse(bytes.all()).ok()?;
        let segments = file
            .segments()
            .take(MOST)
            .map(|s| {
                let (offset, here) = s.file_range();
                // Debug information split off keeps the addresses but not the bytes.
                (offset, if here == 0 { s.size() } else { here }, s.address())
            })
            .collect();
        let table = functions(&file, false);
        let only_dynamic = table.is_empty();
        let table = if only_dynamic { functions(&file, true) } else { table };
        let build_id = file.build_id().ok().flatten().and_then(BuildId::new);
        let little_endian = file.is_little_endian();
        Some(Elf { segments, build_id, little_endian, table, only_dynamic, bytes })
    }

    /// The virtual address of what is at `offset` of the file; `None` of what is not loaded.
    pub(crate) fn address(&self, offset: u64) -> Option<u64> {
        self.segments
            .iter()
            .find(|&&(start, len, _)| offset >= start && offset - start < len)
            .map(|&(start, _, address)| address.wrapping_add(offset - start))
    }

    /// Name of the function at a virtual address.
    pub(crate) fn function(&self, address: u64) -> Option<String> {
        let place = self.table.find(address)?;
        let file = File::parse(self.bytes.all()).ok()?;
        let symbols =
            if self.only_dynamic { file.dynamic_symbol_table() } else { file.symbol_table() };
        let symbol = symbols?.symbol_by_index(SymbolIndex(place as usize)).ok()?;
        Some(demangle(symbol.name_bytes().ok()?))
    }

    /// Whether there are names of functions.
    pub(crate) fn has_functions(&self) -> bool {
        !self.table.is_empty()
    }

    pub(crate) fn little_endian(&self) -> bool {
        self.little_endian
    }

    /// Whether there is a section of this name.
    pub(crate) fn has_section(&self, name: &str) -> bool {
        File::parse(self.bytes.all()).is_ok_and(|f| f.section_by_name(name).is_some())
    }

    /// What a section holds, unpacked; `None` if it is not there or holds more than `most`.
    pub(crate) fn section(&self, name: &str, most: u64) -> Option<Vec<u8>> {
        let file = File::parse(self.bytes.all()).ok()?;
        let data = file.section_by_name(name)?.compressed_data().ok()?;
        if data.uncompressed_size > most {
            return None;
        }
        let mut unpacked = Vec::new();
        match data.format {
            CompressionFormat::None => unpacked.extend_from_slice(data.data),
            CompressionFormat::Zlib => {
                let inflated = flate2::read::ZlibDecoder::new(data.data);
                inflated.take(data.uncompressed_size).read_to_end(&mut unpacked).ok()?;
            }
            CompressionFormat::Zstandard => {
                let inflated = zstd::Decoder::new(data.data).ok()?;
                inflated.take(data.uncompressed_size).read_to_end(&mut unpacked).ok()?;
            }
            _ => return None,
        }
        Some(unpacked)
    }
}

/// The functions of a file, of all or of those that others may link to. As perf takes them:
/// functions, variables (which end the function before them) and labels of hand-written code.
fn functions(file: &File<'_>, dynamic: bool) -> Table {
    let symbols = if dynamic { file.dynamic_symbols() } else { file.symbols() };
    let known = symbols.take(MOST).filter_map(|s| {
        let SymbolFlags::Elf { st_info, st_other } = s.flags() else { return None };
        let name = s.name_bytes().ok().filter(|name| !name.is_empty())?;
        // Undefined here, or no address.
        s.section_index()?;
        let hidden = matches!(st_other & 3, elf::STV_HIDDEN | elf::STV_INTERNAL);
        match st_info & 0xf {
            elf::STT_FUNC | elf::STT_OBJECT | elf::STT_GNU_IFUNC => {}
            // $x and $d mark code and data of ARM.
            elf::STT_NOTYPE if !hidden && !name.starts_with(b"$") => {
                let section = file.section_by_index(s.section_index()?).ok()?;
                let section = section.name_bytes().ok()?;
                [&b".text"[..], b".data"].iter().any(|n| section.starts_with(n)).then_some(())?;
            }
            _ => return None,
        }
        Some(Symbol {
            start: s.address(),
            size: s.size(),
            binding: match st_info >> 4 {
                elf::STB_WEAK => Binding::Weak,
                elf::STB_LOCAL => Binding::Local,
                _ => Binding::Global,
            },
            name,
            place: u32::try_from(s.index().0).ok()?,
        })
    });
    Table::new(known.collect())
}

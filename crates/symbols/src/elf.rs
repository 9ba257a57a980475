//! ELF files: where code is, what it is called, which build it is.
//!
//! Everything comes from a file that somebody else wrote. The crate `object` checks every offset
//! against the file; what remains is how much to keep, which the limits here say.

use crate::demangle::demangle;
use crate::table::{Binding, MOST, Symbol, Table};
use holdup_map::Bytes;
use holdup_trace::BuildId;
use object::{
    Architecture, CompressionFormat, File, Object, ObjectSection, ObjectSegment, ObjectSymbol,
    ObjectSymbolTable, Segment, SegmentFlags, SymbolFlags, SymbolIndex, elf,
};
use std::cell::OnceCell;
use std::io::Read;
use std::path::Path;

/// Largest file looked at: beyond the largest programs with debug information.
const LARGEST: u64 = 8 << 30;

/// An ELF file.
pub(crate) struct Elf {
    bytes: Bytes,
    /// Offset in the file, bytes there, virtual address of each part that is loaded.
    segments: Vec<(u64, u64, u64)>,
    /// The same of the parts that are code.
    code: Vec<(u64, u64, u64)>,
    pub(crate) build_id: Option<BuildId>,
    little_endian: bool,
    /// Where the last part that is loaded ends, what is not in the file included.
    end: u64,
    functions: OnceCell<Functions>,
}

/// What a file calls its functions and variables.
struct Functions {
    table: Table,
    /// They are those that others may link to; the file is stripped of the rest.
    only_dynamic: bool,
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
        let is_code = |s: &Segment<'_, '_>| match s.flags() {
            SegmentFlags::Elf { p_flags } => p_flags & elf::PF_X != 0,
            _ => false,
        };
        let code = file.segments().take(MOST).filter(is_code).map(|s| {
            let (offset, here) = s.file_range();
            (offset, if here == 0 { s.size() } else { here }, s.address())
        });
        let code = code.collect();
        let ends = file.segments().take(MOST).map(|s| s.address().saturating_add(s.size()));
        let end = ends.max().unwrap_or(0);
        let build_id = file.build_id().ok().flatten().and_then(BuildId::new);
        let little_endian = file.is_little_endian();
        let functions = OnceCell::new();
        Some(Elf { segments, code, build_id, little_endian, end, functions, bytes })
    }

    /// Sorted when somebody asks: that takes a second for the largest files.
    fn functions(&self) -> &Functions {
        self.functions.get_or_init(|| {
            let none = || Functions { table: Table::default(), only_dynamic: true };
            let Ok(file) = File::parse(self.bytes.all()) else { return none() };
            let table = functions(&file, false);
            let only_dynamic = table.is_empty();
            let table = if only_dynamic { functions(&file, true) } else { table };
            Functions { table, only_dynamic }
        })
    }

    /// The functions are those that others may link to; the file is stripped of the rest.
    pub(crate) fn only_dynamic(&self) -> bool {
        self.functions().only_dynamic
    }

    /// The virtual address of the byte at `offset`, where a mapping of code begins. Pages are
    /// mapped whole: the first may begin with bytes of the part before.
    pub(crate) fn code_at(&self, offset: u64) -> Option<u64> {
        /// No system has larger ones.
        const PAGE: u64 = 1 << 16;
        let begins = |start: u64, len: u64| {
            start.saturating_sub(offset) < PAGE && offset < start.saturating_add(len)
        };
        let code = self.code.iter().find(|&&(start, len, _)| begins(start, len));
        code.map(|&(start, _, address)| address.wrapping_sub(start).wrapping_add(offset))
    }

    /// Whether a virtual address is before the end of what is loaded.
    pub(crate) fn has(&self, address: u64) -> bool {
        address < self.end
    }

    /// Name of the variable at a virtual address, and how far from its beginning that is.
    pub(crate) fn variable(&self, address: u64) -> Option<(String, u64)> {
        let Functions { table, only_dynamic } = self.functions();
        let place = table.find(address).filter(|place| place & STUB == 0)?;
        let file = File::parse(self.bytes.all()).ok()?;
        let symbols = match only_dynamic {
            true => file.dynamic_symbol_table(),
            false => file.symbol_table(),
        };
        let symbol = symbols?.symbol_by_index(SymbolIndex(place as usize)).ok()?;
        let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { return None };
        let within = address.checked_sub(symbol.address()).filter(|&n| n < symbol.size())?;
        let is_variable = st_info & 0xf == elf::STT_OBJECT;
        is_variable.then(|| Some((demangle(symbol.name_bytes().ok()?), within)))?
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
        let place = self.functions().table.find(address)?;
        let file = File::parse(self.bytes.all()).ok()?;
        let is_stub = place & STUB != 0;
        let symbols = match self.only_dynamic() || is_stub {
            true => file.dynamic_symbol_table(),
            false => file.symbol_table(),
        };
        let index = SymbolIndex((place & !STUB) as usize);
        if is_stub && index.0 == 0 {
            return Some(OF_STUB.to_owned());
        }
        let name = demangle(symbols?.symbol_by_index(index).ok()?.name_bytes().ok()?);
        Some(if is_stub { name + OF_STUB } else { name })
    }

    /// Where the call goes that returns to a virtual address; `None` if what stands before that
    /// address is no call, or does not say its target. Instructions have no fixed length: the bytes
    /// may be the end of another one, unless a function begins where they lead.
    pub(crate) fn called(&self, back: u64) -> Option<u64> {
        /// `call` with the distance from its end to its target, in 4 bytes.
        const CALL: u8 = 0xe8;
        const LEN: u64 = 5;
        let file = File::parse(self.bytes.all()).ok()?;
        if file.architecture() != Architecture::X86_64 {
            return None;
        }
        let start = back.checked_sub(LEN)?;
        let mut segments = file.segments().take(MOST);
        let code = segments.find_map(|s| s.data_range(start, LEN).ok().flatten())?;
        let &[CALL, a, b, c, d] = code else { return None };
        Some(back.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into()))
    }

    /// Whether a function begins at a virtual address.
    pub(crate) fn begins(&self, address: u64) -> bool {
        self.functions().table.begins(address)
    }

    /// Whether there are names of functions.
    pub(crate) fn has_functions(&self) -> bool {
        !self.functions().table.is_empty()
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
            place: u32::try_from(s.index().0).ok().filter(|place| place & STUB == 0)?,
        })
    });
    let mut known: Vec<Symbol<'_>> = known.collect();
    if dynamic || !known.is_empty() {
        known.extend(stubs(file));
    }
    Table::new(known)
}

/// What marks the place of a name: it is that of a stub, which jumps to the function of the name.
const STUB: u32 = 1 << 31;
/// What stands behind such a name.
const OF_STUB: &str = "@plt";

const _: () = assert!(MOST < STUB as usize);

/// The stubs through which functions of other files are called: they have no symbols of their own.
/// Each belongs to an entry of the relocations, in the same order (perf's
/// `dso__synthesize_plt_symbols`).
fn stubs<'a>(file: &File<'a>) -> Vec<Symbol<'a>> {
    // Bytes of what precedes the stubs, and of a stub.
    let (before, size) = match file.architecture() {
        Architecture::X86_64 => (16, 16),
        Architecture::Aarch64 => (32, 16),
        _ => return Vec::new(),
    };
    // Where indirect jumps must land on a mark, calls go to stubs in a section of their own.
    let (section, before) = match file.section_by_name(".plt.sec") {
        Some(section) => (Some(section), 0),
        None => (file.section_by_name(".plt"), before),
    };
    let relocations = file.section_by_name(".rela.plt").and_then(|s| s.data().ok());
    let (Some(section), Some(relocations)) = (section, relocations) else { return Vec::new() };
    let first = section.address().saturating_add(before);
    let end = section.address().saturating_add(section.size());
    let symbol_of = |entry: &[u8]| {
        let word: [u8; 4] = match file.is_little_endian() {
            true => entry.get(12..16)?.try_into().ok()?,
            false => entry.get(8..12)?.try_into().ok()?,
        };
        let index = if file.is_little_endian() {
            u32::from_le_bytes(word)
        } else {
            u32::from_be_bytes(word)
        };
        (index < STUB).then_some(index)
    };
    let entries = relocations.chunks_exact(24).zip(0..).take(MOST);
    let stub = |(entry, n): (&[u8], u64)| {
        Some(Symbol {
            start: first.checked_add(n * size).filter(|&at| at < end)?,
            size,
            binding: Binding::Global,
            name: b"stub",
            place: symbol_of(entry)? | STUB,
        })
    };
    entries.filter_map(stub).collect()
}

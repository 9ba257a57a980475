//! ELF files: where code is, its names, and its build id.
//!
//! Files are untrusted input. The crate `object` checks every offset against the file; the limits
//! here bound how much is kept.

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

/// Largest file that is read; the largest programs with debug information are smaller.
const LARGEST: u64 = 8 << 30;

/// An ELF file.
pub(crate) struct Elf {
    bytes: Bytes,
    /// File offset, size in the file and virtual address of each loaded segment.
    segments: Vec<(u64, u64, u64)>,
    /// File offset, size in the file and virtual address of each executable segment.
    code: Vec<(u64, u64, u64)>,
    pub(crate) build_id: Option<BuildId>,
    little_endian: bool,
    /// End of the last loaded segment in memory, including zero-filled bytes.
    end: u64,
    functions: OnceCell<Functions>,
}

/// The functions and variables of a file.
struct Functions {
    table: Table,
    /// Whether only dynamic symbols exist, because the file is stripped.
    only_dynamic: bool,
}

impl Elf {
    /// Open a file; `None` if it is no readable ELF file.
    pub(crate) fn open(path: &Path) -> Option<Elf> {
        // Opening a pipe would block.
        let metadata = path.metadata().ok()?;
        if !metadata.is_file() || metadata.len() > LARGEST {
            return None;
        }
        Elf::parse(Bytes::file(std::fs::File::open(path).ok()?).ok()?)
    }

    /// Parse the bytes of a file.
    pub(crate) fn parse(bytes: Bytes) -> Option<Elf> {
        let file = File::parse(bytes.all()).ok()?;
        let segments = file
            .segments()
            .take(MOST)
            .map(|s| {
                let (offset, here) = s.file_range();
                // A separate debug file keeps the addresses but not the bytes.
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

    /// Sorted on first use: that takes a second for the largest files.
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

    /// Whether only dynamic symbols exist, because the file is stripped.
    pub(crate) fn only_dynamic(&self) -> bool {
        self.functions().only_dynamic
    }

    /// The virtual address of the byte at `offset`, at which a mapping of code begins. Whole pages
    /// are mapped: the first may begin with bytes of the previous segment.
    pub(crate) fn code_at(&self, offset: u64) -> Option<u64> {
        /// No system has larger pages.
        const PAGE: u64 = 1 << 16;
        let begins = |start: u64, len: u64| {
            start.saturating_sub(offset) < PAGE && offset < start.saturating_add(len)
        };
        let code = self.code.iter().find(|&&(start, len, _)| begins(start, len));
        code.map(|&(start, _, address)| address.wrapping_sub(start).wrapping_add(offset))
    }

    /// Whether a virtual address is before the end of the loaded segments.
    pub(crate) fn has(&self, address: u64) -> bool {
        address < self.end
    }

    /// Name of the variable at a virtual address, and the address's offset from its beginning.
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

    /// The virtual address of the byte at `offset` of the file; `None` if it is not loaded.
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

    /// The target of the call that returns to a virtual address; `None` if the bytes before that
    /// address are no call, or a call without a fixed target. Instructions have no fixed length, so
    /// the bytes may be the end of another instruction: they count only if a function begins at the
    /// target.
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

    /// The bytes of the whole file.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.all()
    }

    /// The instruction set of its code.
    pub(crate) fn architecture(&self) -> Option<Architecture> {
        Some(File::parse(self.bytes.all()).ok()?.architecture())
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

    /// The content of a section, uncompressed; `None` if it is missing or larger than `most`.
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

/// The functions of a file, from all symbols or only the dynamic ones. Selected as in perf:
/// functions, variables (which end the function before them) and labels of hand-written code.
fn functions(file: &File<'_>, dynamic: bool) -> Table {
    let symbols = if dynamic { file.dynamic_symbols() } else { file.symbols() };
    let known = symbols.take(MOST).filter_map(|s| {
        let SymbolFlags::Elf { st_info, st_other } = s.flags() else { return None };
        let name = s.name_bytes().ok().filter(|name| !name.is_empty())?;
        // Skip symbols that are undefined here or have no address.
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
            module: b"",
            place: u32::try_from(s.index().0).ok().filter(|place| place & STUB == 0)?,
        })
    });
    let mut known: Vec<Symbol<'_>> = known.collect();
    if dynamic || !known.is_empty() {
        known.extend(stubs(file));
    }
    Table::new(known)
}

/// Bit in a name's index: the symbol is a stub that jumps to the function of this name.
const STUB: u32 = 1 << 31;
/// Suffix of a stub's name.
const OF_STUB: &str = "@plt";

const _: () = assert!(MOST < STUB as usize);

/// The stubs (PLT entries) through which functions of other files are called; they have no symbols
/// of their own. Each belongs to an entry of the relocations, in the same order (perf's
/// `dso__synthesize_plt_symbols`).
fn stubs<'a>(file: &File<'a>) -> Vec<Symbol<'a>> {
    // Size of the PLT header, and of a stub, in bytes.
    let (before, size) = match file.architecture() {
        Architecture::X86_64 => (16, 16),
        Architecture::Aarch64 => (32, 16),
        _ => return Vec::new(),
    };
    // With branch protection (e.g. Intel IBT), calls go to stubs in a separate section.
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
            module: b"",
            place: symbol_of(entry)? | STUB,
        })
    };
    entries.filter_map(stub).collect()
}

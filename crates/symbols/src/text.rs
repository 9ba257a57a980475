//! Functions listed in text: `/proc/kallsyms`, and the maps that JIT compilers write.

use crate::demangle::demangle;
use crate::table::{Binding, Symbol, Table};
use holdup_trace::{KallsymsLine, SymbolTable, hex};
use std::io::Read;
use std::path::Path;

/// Largest list read: a kernel's has about 20 MB.
const LARGEST: u64 = 256 << 20;

/// A list of functions.
#[derive(Default)]
pub(crate) struct Listed {
    text: Vec<u8>,
    table: Table,
    /// Address at which the kernel's code begins (`_text`).
    pub(crate) base: Option<u64>,
}

/// The first [`LARGEST`] bytes of a file; `None` if there is no such file.
fn read(path: &Path) -> Option<Vec<u8>> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    std::fs::File::open(path).ok()?.take(LARGEST).read_to_end(&mut text).ok()?;
    Some(text)
}

impl Listed {
    /// A copy of `/proc/kallsyms`; `None` if it has no functions, e.g. because addresses are
    /// hidden.
    pub(crate) fn kallsyms(path: &Path) -> Option<Listed> {
        Some(Listed::of_kallsyms(read(path)?)).filter(|l| !l.table.is_empty())
    }

    /// `/tmp/perf-PID.map`, which a JIT compiler writes: address, size, name.
    pub(crate) fn perf_map(path: &Path) -> Option<Listed> {
        Some(Listed::of_perf_map(read(path)?)).filter(|l| !l.table.is_empty())
    }

    /// The functions that a trace carries.
    pub(crate) fn in_trace(symbols: &SymbolTable) -> Listed {
        let mut text = Vec::new();
        for (address, name) in symbols.functions() {
            text.extend_from_slice(format!("{address:x} T {name}\n").as_bytes());
        }
        Listed::of_kallsyms(text)
    }

    pub(crate) fn of_kallsyms(text: Vec<u8>) -> Listed {
        Listed::of(text, kallsyms_line)
    }

    pub(crate) fn of_perf_map(text: Vec<u8>) -> Listed {
        Listed::of(text, perf_map_line)
    }

    fn of(text: Vec<u8>, parse: fn(&[u8]) -> Option<Line<'_>>) -> Listed {
        let mut symbols = Vec::new();
        let mut base = None;
        let mut at = 0;
        for line in text.split(|&b| b == b'\n') {
            if let Some(found) = parse(line)
                && let Ok(place) = u32::try_from(at + found.at)
            {
                if found.name == b"_text" {
                    base = Some(found.start);
                }
                symbols.push(Symbol {
                    start: found.start,
                    size: found.size,
                    binding: found.binding,
                    name: found.name,
                    module: found.module,
                    place,
                });
            }
            at += line.len() + 1;
        }
        let table = Table::new(symbols);
        Listed { text, table, base }
    }

    /// Name of the function at an address.
    pub(crate) fn function(&self, address: u64) -> Option<String> {
        let name = self.text.get(self.table.find(address)? as usize..)?;
        let line = name.split(|&b| b == b'\n').next()?;
        // Names of JIT compilers may have spaces; the kernel writes the module after a tab.
        let end = line.iter().position(|&b| b == b'\t').unwrap_or(line.len());
        Some(demangle(&line[..end]))
    }
}

/// A line of a list.
struct Line<'a> {
    start: u64,
    size: u64,
    binding: Binding,
    name: &'a [u8],
    module: &'a [u8],
    /// Where the name begins in the line.
    at: usize,
}

/// The first word, and the text after the spaces that follow it.
fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = line.iter().position(|b| *b == b' ')?;
    let rest = line[end..].trim_ascii_start();
    Some((&line[..end], rest)).filter(|(word, rest)| !word.is_empty() && !rest.is_empty())
}

/// A line of `/proc/kallsyms`.
fn kallsyms_line(line: &[u8]) -> Option<Line<'_>> {
    let line = line.trim_ascii_end();
    let found = KallsymsLine::parse(line)?;
    let KallsymsLine { address: start, kind, name, rest } = found;
    let binding = match kind {
        // Variables end the functions before them.
        b't' | b'd' | b'b' => Binding::Local,
        b'T' | b'D' | b'B' => Binding::Global,
        b'w' | b'W' => Binding::Weak,
        _ => return None,
    };
    let at = line.len() - rest.len() - name.len();
    Some(Line { start, size: 0, binding, name, module: found.module(), at })
}

/// `7f2c1000 40 LazyCompile:handle /srv/app.js:12`.
fn perf_map_line(line: &[u8]) -> Option<Line<'_>> {
    let (address, rest) = word(line)?;
    let (size, name) = word(rest)?;
    // Some compilers write "0x".
    let number = |word: &[u8]| hex(word.strip_prefix(b"0x").unwrap_or(word));
    let (start, size) = (number(address)?, number(size)?);
    let at = line.len() - name.len();
    Some(Line { start, size, binding: Binding::Global, name, module: b"", at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kallsyms_and_perf_maps() {
        let text = b"ffffffff81000000 T _text\nffffffff81000100 t do_it\nnonsense\n\
            ffffffff81000200 D a_variable\nffffffffc0000000 t probe\t[module]\n0 T hidden\n";
        let k = Listed::of(text.to_vec(), kallsyms_line);
        assert_eq!(k.base, Some(0xffffffff81000000));
        let name = |a| k.function(a);
        assert_eq!(name(0xffffffff810001ff).as_deref(), Some("do_it"));
        assert_eq!(name(0xffffffffc0000004).as_deref(), Some("probe"));
        assert_eq!(name(0xffffffff80000000), None);
        let map = b"7f00 10 LazyCompile:a b\nzz 1 x\n0x8000 0x8 Interpreter\n7ff0";
        let m = Listed::of(map.to_vec(), perf_map_line);
        assert_eq!(m.function(0x7f0f).as_deref(), Some("LazyCompile:a b"));
        assert_eq!(m.function(0x7f10), None);
        assert_eq!(m.function(0x8007).as_deref(), Some("Interpreter"));
    }

    /// A sample in code that the kernel made while it ran had the name of the kernel's last symbol.
    #[test]
    fn the_last_symbol_before_a_module_ends_with_its_page() {
        let text = b"ffffffff83960000 D __start_early_lsm_info\n\
            ffffffffc0211000 t ftrace_trampoline\t[__builtin__ftrace]\n\
            ffffffffc0400000 t probe\t[module]\nffffffffc0400100 t remove\t[module]\n";
        let k = Listed::of_kallsyms(text.to_vec());
        let name = |a| k.function(a);
        assert_eq!(name(0xffffffff83960fff).as_deref(), Some("__start_early_lsm_info"));
        assert_eq!(name(0xffffffff83961000), None);
        assert_eq!(name(0xffffffffc0211004).as_deref(), Some("ftrace_trampoline"));
        assert_eq!(name(0xffffffffc0213000), None);
        assert_eq!(name(0xffffffffc04000ff).as_deref(), Some("probe"));
        assert_eq!(name(0xffffffffc0400100).as_deref(), Some("remove"));
    }

    #[test]
    fn what_a_trace_carries() {
        let symbols = SymbolTable::from_kallsyms(b"ffffffff81000100 t do_it\n");
        let listed = Listed::in_trace(&symbols);
        assert_eq!(listed.function(0xffffffff81000104).as_deref(), Some("do_it"));
    }
}

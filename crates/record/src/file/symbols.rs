//! The kernel's symbols, as `/proc/kallsyms` lists them.

use std::fs;
use std::path::Path;

/// Functions and variables of the kernel, with their addresses.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// Lines of kallsyms: address, type, name.
    text: Vec<u8>,
    /// Start and end of the kernel's code.
    code: Option<(u64, u64)>,
}

impl Symbols {
    /// Reads `kallsyms`. If there is no such file, or if it hides the addresses
    /// (`kernel.kptr_restrict`), the result is empty; that is no error.
    pub fn read(kallsyms: &Path) -> Symbols {
        fs::read(kallsyms).map(|text| Symbols::parse(&text)).unwrap_or_default()
    }

    /// Keeps the symbols of functions and locks. A third of a kernel's symbols are labels of its
    /// build (`__pfx_`, padding before a function), constants and addresses outside code.
    fn parse(all: &[u8]) -> Symbols {
        let mut symbols = Symbols::default();
        let (mut start, mut end, mut data) = (None, None, None);
        for line in all.split_inclusive(|&b| b == b'\n') {
            let mut words = line.split(|b| b.is_ascii_whitespace());
            let (Some(address), Some([kind]), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let wanted = matches!(kind, b't' | b'T' | b'w' | b'W' | b'd' | b'D' | b'b' | b'B');
            if !wanted || name.starts_with(b"__pfx_") || address.iter().all(|&b| b == b'0') {
                continue;
            }
            symbols.text.extend_from_slice(line);
            let bound = match name {
                b"_text" => &mut start,
                b"_etext" => &mut end,
                b"_edata" => &mut data,
                _ => continue,
            };
            *bound =
                std::str::from_utf8(address).ok().and_then(|a| u64::from_str_radix(a, 16).ok());
        }
        // perf's end is that of the data, if the kernel lists data.
        symbols.code = start.zip(data.or(end)).filter(|(start, end)| start < end);
        symbols
    }

    /// The lines, in kallsyms format.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Start and end of the kernel's code; `None` if hidden.
    pub(crate) fn code(&self) -> Option<(u64, u64)> {
        self.code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &[u8] = b"0000000000000000 A fixed_percpu_data\n\
        ffffffff81000000 T _text\n\
        ffffffff81000100 t __pfx_do_idle\n\
        ffffffff81000110 t do_idle\n\
        ffffffff82206448 T _etext\n\
        ffffffff83000000 r __ksymtab_x\n\
        ffffffff83000010 D tasklist_lock\n\
        ffffffffc0000000 t ext4_sync\t[ext4]\n";

    #[test]
    fn functions_and_variables_are_kept() {
        let s = Symbols::parse(KALLSYMS);
        let names: Vec<&str> =
            s.text.split(|&b| b == b'\n').map(|l| str::from_utf8(l).unwrap()).collect();
        assert_eq!(names.len(), 6);
        assert!(names[1].ends_with("do_idle") && names[4].ends_with("ext4_sync\t[ext4]"));
        assert_eq!(s.code(), Some((0xffff_ffff_8100_0000, 0xffff_ffff_8220_6448)));
    }

    #[test]
    fn hidden_addresses_are_no_symbols() {
        let s = Symbols::parse(b"0000000000000000 T _text\n0000000000000000 T _etext\n");
        assert!(s.text().is_empty() && s.code().is_none());
        assert!(Symbols::read(Path::new("/nowhere")).code().is_none());
    }
}

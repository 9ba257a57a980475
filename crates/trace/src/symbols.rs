//! Symbols of the recorded kernel.

use std::sync::Arc;

/// Kernel symbols by address. A kernel has a quarter of a million, and most traces look up a few:
/// the names are one text, and a copy shares all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolTable {
    /// All names, one after another.
    names: Arc<str>,
    /// Functions, ascending by address.
    functions: Arc<[Symbol]>,
    /// Variables, ascending by address.
    variables: Arc<[Symbol]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Symbol {
    address: u64,
    /// Where its name begins in the text, and how long it is.
    at: u32,
    len: u16,
}

impl Symbol {
    fn name(self, names: &str) -> &str {
        &names[self.at as usize..][..self.len as usize]
    }
}

impl SymbolTable {
    /// From `/proc/kallsyms` text: `address type name [module]`. Lines that do not parse are
    /// skipped; so are all-zero tables (read without privilege).
    pub fn from_kallsyms(text: &[u8]) -> SymbolTable {
        let mut names = String::with_capacity(text.len() / 2);
        let (mut functions, mut variables) = (Vec::new(), Vec::new());
        let mut rest = text;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = rest[..end].trim_ascii_end();
            rest = rest.get(end + 1..).unwrap_or_default();
            let Some(KallsymsLine { address, kind, name, .. }) = KallsymsLine::parse(line) else {
                continue;
            };
            let list = match kind {
                b't' | b'T' | b'w' | b'W' => &mut functions,
                b'd' | b'D' | b'b' | b'B' => &mut variables,
                _ => continue,
            };
            let Ok(name) = std::str::from_utf8(name) else { continue };
            let (Ok(at), Ok(len)) = (u32::try_from(names.len()), u16::try_from(name.len())) else {
                continue;
            };
            names.push_str(name);
            list.push(Symbol { address, at, len });
        }
        let sorted = |mut list: Vec<Symbol>| {
            list.sort_by(|a, b| {
                a.address.cmp(&b.address).then_with(|| a.name(&names).cmp(b.name(&names)))
            });
            list.into()
        };
        let (functions, variables) = (sorted(functions), sorted(variables));
        SymbolTable { names: names.into(), functions, variables }
    }

    /// Whether there are no functions.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The functions, ascending by address.
    pub fn functions(&self) -> impl Iterator<Item = (u64, &str)> {
        self.functions.iter().map(|s| (s.address, s.name(&self.names)))
    }

    /// Address ranges of the functions whose names are `wanted`: first address of each function and
    /// of the next one; ascending.
    pub fn ranges(&self, wanted: impl Fn(&str) -> bool) -> Vec<(u64, u64)> {
        let mut ranges = Vec::new();
        let mut open = None;
        for (address, name) in self.functions() {
            if let Some(start) = open.take_if(|start| *start < address) {
                ranges.push((start, address));
            }
            if wanted(name) {
                open = Some(address);
            }
        }
        ranges
    }

    /// Name of the variable that contains `address`, and the offset into it: at most a page.
    pub fn variable(&self, address: u64) -> Option<(&str, u64)> {
        self.last_before(&self.variables, address, 4096)
    }

    /// Name of the function `address` lies in, and the offset into it. Addresses more than 1 MiB
    /// past a symbol belong to none.
    pub fn lookup(&self, address: u64) -> Option<(&str, u64)> {
        self.last_before(&self.functions, address, 1 << 20)
    }

    fn last_before(&self, list: &[Symbol], address: u64, most: u64) -> Option<(&str, u64)> {
        let symbol = list[list.partition_point(|s| s.address <= address).checked_sub(1)?];
        let offset = address - symbol.address;
        (offset < most).then(|| (symbol.name(&self.names), offset))
    }
}

/// A line of `/proc/kallsyms`: `ffffffffc0000000 t probe\t[module]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KallsymsLine<'a> {
    /// Never 0: hidden addresses are no addresses.
    pub address: u64,
    /// The letter for its type, as in `nm`; upper case if other files see it.
    pub kind: u8,
    /// Usually UTF-8, but the text may be damaged.
    pub name: &'a [u8],
    /// What follows the name: nothing, or white space and the module.
    pub rest: &'a [u8],
}

impl<'a> KallsymsLine<'a> {
    /// `None` if this is no such line or if the address is hidden.
    pub fn parse(line: &'a [u8]) -> Option<KallsymsLine<'a>> {
        // As 64-bit kernels write it; others and edited files by words.
        let (address, rest) = match line.split_at_checked(16) {
            Some((address, rest)) if rest.starts_with(b" ") => (address, rest),
            _ => word(line)?,
        };
        let (kind, rest) = word(rest)?;
        let &[kind] = kind else { return None };
        let (name, rest) = word(rest)?;
        let address = hex(address).filter(|&address| address != 0)?;
        Some(KallsymsLine { address, kind, name, rest })
    }

    /// The module in its brackets; empty for the kernel itself.
    pub fn module(&self) -> &'a [u8] {
        word(self.rest).map_or(&[], |(module, _)| module)
    }
}

/// The value of each hexadecimal digit, [`u8::MAX`] for other bytes.
const DIGITS: [u8; 256] = {
    let mut digits = [u8::MAX; 256];
    let mut i = 0;
    while i < 16 {
        digits[b"0123456789abcdef"[i] as usize] = i as u8;
        digits[b"0123456789ABCDEF"[i] as usize] = i as u8;
        i += 1;
    }
    digits
};

/// A hexadecimal number of up to 64 bits, without sign and without `0x`.
pub fn hex(digits: &[u8]) -> Option<u64> {
    let (mut sum, mut worst) = (0, 0);
    for &b in digits {
        let digit = DIGITS[usize::from(b)];
        worst |= digit;
        sum = sum << 4 | u64::from(digit);
    }
    (matches!(digits.len(), 1..=16) && worst < 16).then_some(sum)
}

/// The first word of a line, and what follows it.
fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_start();
    let end = memchr::memchr2(b' ', b'\t', line).unwrap_or(line.len());
    (end > 0).then(|| line.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_address_type_name_and_perhaps_module() {
        let parse = |line: &'static str| {
            let line = KallsymsLine::parse(line.as_bytes())?;
            let text = |bytes| std::str::from_utf8(bytes).unwrap();
            Some((line.address, line.kind, text(line.name), text(line.module())))
        };
        let probe = (0xffff_ffff_c000_0000, b't', "probe", "[module]");
        assert_eq!(parse("ffffffffc0000000 t probe\t[module]"), Some(probe));
        assert_eq!(parse("c0100000 T _text"), Some((0xc010_0000, b'T', "_text", "")));
        assert_eq!(parse("0000000000000000 T hidden"), None);
        assert_eq!(parse("ffffffffc0000000 tt probe"), None);
        assert_eq!(parse("ffffffffc0000000 t "), None);
        assert_eq!((hex(b"0"), hex(b""), hex(b"0x1"), hex(b"+1")), (Some(0), None, None, None));
    }

    #[test]
    fn functions_and_variables_are_found_by_address() {
        let table = SymbolTable::from_kallsyms(
            b"ffffffff81002000 T second\n\
              0000000000000000 T hidden\n\
              ffffffff81001000 t first\t[module]\n\
              ffffffff82000000 B counter\n\
              ffffffff81003000 A absolute\n\
              no line\n\
              ffffffff8100100g T no_address\n\
              ffffffff81004000 T not\xffutf8\n\
              +fffffff81005000 T sign\n\
              1ffffffff81001000 T too_long\n\
              \n\
              ffffffff81001000 W alias",
        );
        let functions: Vec<_> = table.functions().collect();
        let base = 0xffff_ffff_8100_0000;
        let all = [(base + 0x1000, "alias"), (base + 0x1000, "first"), (base + 0x2000, "second")];
        assert_eq!(functions, all);
        assert_eq!(table.lookup(base + 0x1004), Some(("first", 4)));
        assert_eq!(table.lookup(base + 0xfff), None);
        assert_eq!(table.lookup(base + 0x2000 + (1 << 20)), None);
        assert_eq!(table.variable(0xffff_ffff_8200_0008), Some(("counter", 8)));
        assert_eq!(table.variable(0xffff_ffff_8200_1000), None);
        assert!(SymbolTable::from_kallsyms(b"0 T hidden\n").is_empty());
    }
}

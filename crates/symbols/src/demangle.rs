//! Demangles names of functions.

use cpp_demangle::DemangleOptions;
use std::fmt::{self, Write};

/// Longest name shown, in bytes: a short mangled name may expand to any length.
const LONGEST: usize = 8 << 10;

/// A string that holds at most [`LONGEST`] bytes.
struct Short(String);

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// The function's name without what compilers add: C++ names without parameters, Rust names without
/// the hash. Other names are returned unchanged.
pub(crate) fn demangle(name: &[u8]) -> String {
    let name = &name[..name.len().min(LONGEST)];
    let text = String::from_utf8_lossy(name);
    let mut short = Short(String::new());
    // Later stages of a compiler append suffixes to the name (`.warm`), which binutils ignore.
    let rust = match text.starts_with("_R") {
        true => text.split('.').next().unwrap_or_default(),
        false => &text,
    };
    if let Ok(rust) = rustc_demangle::try_demangle(rust)
        && write!(short, "{rust:#}").is_ok()
    {
        return short.0;
    }
    short.0.clear();
    let options = DemangleOptions::new().no_params().no_return_type();
    if name.starts_with(b"_Z")
        && let Ok(cpp) = cpp_demangle::Symbol::new(name)
        && cpp.structured_demangle(&mut short, &options).is_ok()
    {
        return as_binutils(&short.0);
    }
    text.into_owned()
}

/// The same name in the spelling of binutils, which perf and c++filt print: `f<2u>` for
/// `f<(unsigned int)2>`, nothing for an empty list of types, and no qualifier after a function
/// without its parameters.
fn as_binutils(name: &str) -> String {
    /// Suffixes of literals by type; the longer names first.
    const LITERALS: [(&str, &str); 6] = [
        ("(unsigned long long)", "ull"),
        ("(unsigned long)", "ul"),
        ("(unsigned int)", "u"),
        ("(long long)", "ll"),
        ("(long)", "l"),
        ("(int)", ""),
    ];
    let name = name.strip_suffix(" const").unwrap_or(name);
    let mut spelled = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let literal = LITERALS.iter().find_map(|(kind, end)| {
            let number = rest.strip_prefix(kind)?;
            let digits =
                number.len() - number.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            (digits > 0).then(|| (&number[..digits], *end, &number[digits..]))
        });
        if let Some((digits, end, after)) = literal {
            spelled += digits;
            spelled += end;
            rest = after;
        } else if let Some(after) = rest.strip_prefix(", >") {
            // Look at the bracket again: it may close an enclosing list, too.
            spelled.push('>');
            rest = after;
        } else {
            spelled.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    spelled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_three_languages() {
        for (mangled, plain) in [
            ("pthread_mutex_lock", "pthread_mutex_lock"),
            ("_ZN4bank7Account8withdrawEi", "bank::Account::withdraw"),
            ("_ZN3foo3barEv.part.0", "foo::bar"),
            ("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"),
            ("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"),
            ("_Z1", "_Z1"),
            ("_ZNK4bank5TableILj8ELm2EE4findEv", "bank::Table<8u, 2ul>::find"),
            ("_ZN4bank3RowIJEE3getEv", "bank::Row<>::get"),
        ] {
            let found = demangle(mangled.as_bytes());
            assert!(found.starts_with(plain), "{mangled}: {found}");
            assert!(!found.ends_with("const"), "{mangled}: {found}");
        }
        assert_eq!(as_binutils("A<B, >::f<(int)1, (long)2, >"), "A<B>::f<1, 2l>");
        assert_eq!(as_binutils("f<(unsigned int)x>"), "f<(unsigned int)x>");
        let warm = b"_RNvNtCs1234_7mycrate3foo3bar.llvm.9362712566924669442.warm";
        assert_eq!(demangle(warm), "mycrate::foo::bar");
        assert_eq!(demangle(b"\xffname"), "\u{fffd}name");
    }

    #[test]
    fn a_name_that_unfolds_without_end_is_left_as_it_is() {
        // Each substitution doubles the length of the previous one.
        let mut bomb = String::from("_Z1fI1aE");
        for i in 0..30 {
            bomb += &format!("S{}_S{}_", i % 10, i % 10);
        }
        assert!(demangle(bomb.as_bytes()).len() <= LONGEST);
        assert!(demangle(&[b'_'; 1 << 20]).len() <= LONGEST);
    }
}

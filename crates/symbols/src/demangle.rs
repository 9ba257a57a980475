//! Names as their authors wrote them.

use cpp_demangle::DemangleOptions;
use std::fmt::{self, Write};

/// Longest name shown, in bytes: mangled names may stand for ones of any length.
const LONGEST: usize = 1024;

/// A string that takes no more than [`LONGEST`] bytes.
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

/// The function's name without what compilers add: for C++ without parameters, for Rust without the
/// hash. What is neither stays as it is.
pub(crate) fn demangle(name: &[u8]) -> String {
    let name = &name[..name.len().min(LONGEST)];
    let text = String::from_utf8_lossy(name);
    let mut short = Short(String::new());
    if let Ok(rust) = rustc_demangle::try_demangle(&text)
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
        return short.0;
    }
    text.into_owned()
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
        ] {
            let found = demangle(mangled.as_bytes());
            assert!(found.starts_with(plain), "{mangled}: {found}");
        }
        assert_eq!(demangle(b"\xffname"), "\u{fffd}name");
    }

    #[test]
    fn a_name_that_unfolds_without_end_is_left_as_it_is() {
        // Each substitution doubles what the one before stands for.
        let mut bomb = String::from("_Z1fI1aE");
        for i in 0..30 {
            bomb += &format!("S{}_S{}_", i % 10, i % 10);
        }
        assert!(demangle(bomb.as_bytes()).len() <= LONGEST);
        assert!(demangle(&[b'_'; 1 << 20]).len() <= LONGEST);
    }
}

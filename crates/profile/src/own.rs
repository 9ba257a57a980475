//! Which frame of a chain is the program's own.

use holdup_symbols::{Code, Named, Symbols};
use wildmatch::WildMatch;

/// What is not, a line for each pattern.
const RUNTIMES: &str = include_str!("runtimes.txt");

/// Tells the program's own code from the libraries and runtimes it waits through.
pub(crate) struct Own {
    files: Vec<WildMatch>,
    functions: Vec<WildMatch>,
}

/// Where a chain leaves the program's own code.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The innermost function that is the program's own.
    pub(crate) caller: Option<String>,
    /// Its file.
    pub(crate) dso: Option<String>,
    /// What it called.
    pub(crate) through: Option<String>,
}

impl Own {
    pub(crate) fn new() -> Own {
        let of = |kind: &str| {
            let lines = RUNTIMES.lines().filter_map(|line| line.strip_prefix(kind));
            lines.map(|pattern| WildMatch::new(pattern.trim())).collect()
        };
        Own { files: of("file "), functions: of("function ") }
    }

    fn is_own(&self, named: &Named) -> bool {
        let matches = |patterns: &[WildMatch], name: &Option<std::sync::Arc<str>>| {
            name.as_ref().is_some_and(|name| patterns.iter().any(|p| p.matches(name)))
        };
        // Frames in nothing that is mapped are those of a chain that went astray.
        (named.dso.is_some() || named.function.is_some())
            && !matches(&self.files, &named.dso)
            && !matches(&self.functions, &named.function)
    }

    /// Where a chain, innermost first, leaves the program's own code; nothing of it in a chain that
    /// has none.
    pub(crate) fn place(
        &self,
        chain: impl Iterator<Item = Code>,
        symbols: &mut Symbols<'_>,
    ) -> Place {
        self.find(chain, symbols).0
    }

    /// The same, with the code that is the program's own.
    pub(crate) fn find(
        &self,
        chain: impl Iterator<Item = Code>,
        symbols: &mut Symbols<'_>,
    ) -> (Place, Option<Code>) {
        let text = |name: &Option<std::sync::Arc<str>>| name.as_deref().map(str::to_owned);
        let mut through = None;
        for (depth, code) in chain.enumerate().filter(|(_, code)| !code.kernel) {
            // All but the innermost are return addresses.
            if depth > 0
                && let Some(hidden) = symbols.called(&code).filter(|named| self.is_own(named))
            {
                let (caller, dso) = (text(&hidden.function), text(&hidden.dso));
                return (Place { caller, dso, through }, None);
            }
            let named = symbols.name(&code);
            if self.is_own(&named) {
                // The call is before.
                let address = code.address.saturating_sub(u64::from(depth > 0));
                let at = Code { address, ..code };
                let (caller, dso) = (text(&named.function), text(&named.dso));
                return (Place { caller, dso, through }, Some(at));
            }
            through = text(&named.function).or(text(&named.dso));
        }
        (Place { through, ..Place::default() }, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(dso: Option<&str>, function: Option<&str>) -> bool {
        Own::new().is_own(&Named { dso: dso.map(Into::into), function: function.map(Into::into) })
    }

    #[test]
    fn runtimes_are_not_the_programs_own() {
        for (dso, function) in [
            ("libc.so.6", Some("__lll_lock_wait")),
            ("libc.so.6", None),
            ("prog", Some("pthread_mutex_lock@plt")),
            ("prog", Some("std::thread::_State_impl<X>::_M_run")),
            ("prog", Some("<std::sys::sync::mutex::futex::Mutex>::lock_contended")),
            ("prog", Some("runtime.futex.abi0")),
            ("libjvm.so", Some("Unsafe_Park")),
            ("[JIT] tid 7", Some("Interpreter")),
            ("python3.11", Some("_PyEval_EvalFrameDefault")),
        ] {
            assert!(!own(Some(dso), function), "{dso} {function:?}");
        }
        for (dso, function) in [
            ("prog", Some("update_balance")),
            ("prog", None),
            ("prog", Some("main.worker")),
            ("prog", Some("bank::Ledger<64u>::transfer")),
            ("libbusiness.so", Some("standard")),
        ] {
            assert!(own(Some(dso), function), "{dso} {function:?}");
        }
        assert!(!own(None, None), "nothing is mapped there");
    }
}

//! Finds the frame of a chain that is the program's own code.

use holdup_symbols::{Code, Named, Symbols};
use std::sync::Arc;
use wildmatch::WildMatch;

/// Patterns of code that is not the program's own, one per line.
const RUNTIMES: &str = include_str!("runtimes.txt");

/// Distinguishes the program's own code from the libraries and runtimes it waits through.
pub(crate) struct Own {
    files: Vec<WildMatch>,
    functions: Vec<WildMatch>,
    compiled: Vec<WildMatch>,
    hides: Vec<WildMatch>,
}

/// To whom a frame of a chain belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// The program's own.
    Own,
    /// A library's or runtime's.
    Runtime,
    /// An unnamed function, which may be the program's own.
    Hidden,
}

/// What a chain shows of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where it leaves the program's own code.
    pub(crate) place: Place,
    /// The program's own code at that place.
    pub(crate) at: Option<Code>,
}

/// Where a chain leaves the program's own code.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The innermost function that is the program's own.
    pub(crate) caller: Option<String>,
    /// The file of that function.
    pub(crate) dso: Option<String>,
    /// The function that it called.
    pub(crate) through: Option<String>,
}

impl Place {
    fn leaves(&mut self, named: &Named) {
        (self.caller, self.dso) = (text(&named.function), text(&named.dso));
    }
}

fn text(name: &Option<Arc<str>>) -> Option<String> {
    name.as_deref().map(str::to_owned)
}

impl Own {
    pub(crate) fn new() -> Own {
        let of = |kind: &str| {
            let lines = RUNTIMES.lines().filter_map(|line| line.strip_prefix(kind));
            lines.map(|pattern| WildMatch::new(pattern.trim())).collect()
        };
        Own {
            files: of("file "),
            functions: of("function "),
            compiled: of("compiled "),
            hides: of("hides "),
        }
    }

    fn whose(&self, named: &Named) -> Whose {
        let matches = |patterns: &[WildMatch], name: Option<&str>| {
            name.is_some_and(|name| patterns.iter().any(|p| p.matches(name)))
        };
        let (dso, function) = (named.dso.as_deref(), named.function.as_deref().map(plain));
        let is_compiled = dso.is_some_and(|dso| dso.starts_with(COMPILED));
        if is_compiled && matches(&self.hides, function) {
            return Whose::Hidden;
        }
        // Frames in unknown memory come from a wrongly unwound chain.
        let is_own = (dso.is_some() || function.is_some())
            && !matches(&self.files, dso)
            && !matches(&self.functions, function)
            && !(is_compiled && matches(&self.compiled, function));
        if is_own { Whose::Own } else { Whose::Runtime }
    }

    fn is_own(&self, named: &Named) -> bool {
        self.whose(named) == Whose::Own
    }

    /// Where a chain, innermost first, leaves the program's own code; empty if the chain has no own
    /// code.
    pub(crate) fn place(
        &self,
        chain: impl Iterator<Item = Code>,
        symbols: &mut Symbols<'_>,
    ) -> Place {
        self.find(chain, symbols).place
    }

    /// [`Own::place`] with everything else that the chain shows.
    pub(crate) fn find(
        &self,
        chain: impl Iterator<Item = Code>,
        symbols: &mut Symbols<'_>,
    ) -> Found {
        let mut found = Found::default();
        let mut innermost = true;
        for (depth, code) in chain.enumerate().filter(|(_, code)| !code.kernel) {
            // The innermost frame outside of the kernel is where the thread is; the other frames
            // are return addresses.
            let returned_to = !std::mem::replace(&mut innermost, false);
            if returned_to
                && let Some(hidden) = symbols.called(&code).filter(|named| self.is_own(named))
            {
                found.place.leaves(&hidden);
                break;
            }
            let named = symbols.name(&code);
            let whose = self.whose(&named);
            if whose == Whose::Own {
                // The call is before its return address.
                let address = code.address.saturating_sub(u64::from(depth > 0));
                found.at = Some(Code { address, ..code });
                found.place.leaves(&named);
                break;
            }
            found.place.through = text(&named.function).or(text(&named.dso));
            if whose == Whose::Hidden {
                break;
            }
        }
        found
    }
}

/// Prefix of the name of memory with JIT-compiled code.
const COMPILED: &str = "[JIT]";

/// The name of a function without its types, if a JVM wrote it: `a.B.c` of `int a.B.c(int[])`.
fn plain(name: &str) -> &str {
    match name.split_once('(') {
        Some((before, types)) if types.ends_with(')') && !before.is_empty() => {
            let before = before.trim_end();
            before.rsplit_once(' ').map_or(before, |(_, name)| name)
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JIT: &str = "[JIT] tid 7";

    #[track_caller]
    fn are(whose: Whose, all: &[(&str, Option<&str>)]) {
        for &(dso, function) in all {
            let named = Named { dso: Some(dso.into()), function: function.map(Into::into) };
            assert_eq!(Own::new().whose(&named), whose, "{dso} {function:?}");
        }
    }

    #[test]
    fn c_and_cpp() {
        are(
            Whose::Runtime,
            &[
                ("libc.so.6", Some("__lll_lock_wait")),
                ("libc.so.6", None),
                ("ld-linux-x86-64.so.2", Some("_dl_start_user")),
                ("libstdc++.so.6.0.30", None),
                ("prog", Some("pthread_mutex_lock@plt")),
                ("prog", Some("__gthread_mutex_lock")),
                ("prog", Some("std::mutex::lock")),
                ("prog", Some("std::thread::_State_impl<X>::_M_run")),
                ("prog", Some("__lll_lock_wait_private")),
                ("prog", Some("clone3")),
            ],
        );
        are(
            Whose::Own,
            &[
                ("prog", Some("update_balance")),
                ("prog", None),
                ("prog", Some("OrderBook::match")),
                ("prog", Some("bank::Ledger<64u>::transfer")),
                ("prog", Some("(anonymous namespace)::match(std::mutex&)")),
                ("libbusiness.so", Some("standard")),
                ("prog", Some("reset_stub")),
            ],
        );
        let nowhere = Named::default();
        assert_eq!(Own::new().whose(&nowhere), Whose::Runtime, "nothing is mapped there");
    }

    #[test]
    fn rust() {
        are(
            Whose::Runtime,
            &[
                ("prog", Some("<std::sys::sync::mutex::futex::Mutex>::lock_contended")),
                ("prog", Some("std::sys::backtrace::__rust_begin_short_backtrace")),
                ("prog", Some("core::ops::function::FnOnce::call_once{{vtable.shim}}")),
                ("prog", Some("<alloc::boxed::Box<F> as core::ops::FnOnce<A>>::call_once")),
                ("prog", Some("parking_lot::raw_mutex::RawMutex::lock_slow")),
            ],
        );
        are(Whose::Own, &[("prog", Some("stock::Stock::reserve")), ("prog", Some("stock::main"))]);
    }

    #[test]
    fn go() {
        are(
            Whose::Runtime,
            &[
                ("prog", Some("runtime.futex.abi0")),
                ("prog", Some("runtime.goexit.abi0")),
                ("prog", Some("internal/sync.(*Mutex).unlockSlow")),
                ("prog", Some("sync.(*Mutex).Lock")),
                ("prog", Some("sync/atomic.(*Value).Store")),
                ("prog", Some("net/http.(*conn).serve")),
            ],
        );
        are(
            Whose::Own,
            &[
                ("prog", Some("main.(*Table).Lookup")),
                ("prog", Some("main.main.func1")),
                ("prog", Some("example.com/sync/table.Lookup")),
            ],
        );
    }

    #[test]
    fn java() {
        are(
            Whose::Runtime,
            &[
                ("libjvm.so", Some("Unsafe_Park")),
                (JIT, Some("StubRoutines (1)")),
                (JIT, Some("monitorenter_nofpu Runtime1 stub")),
                (JIT, Some("_complete_monitor_locking_Java")),
                (JIT, Some("I2C/C2I adapters")),
                (JIT, Some("void jdk.internal.misc.Unsafe.park(boolean, long)")),
                (JIT, Some("void java.util.concurrent.locks.ReentrantLock.lock()")),
                (JIT, Some("Ljava/util/concurrent/locks/LockSupport;::park")),
            ],
        );
        are(
            Whose::Own,
            &[
                (JIT, Some("void Journal.append(long)")),
                (JIT, Some("java.lang.Object bank.Book.get(java.util.List, java.util.Map)")),
                (JIT, Some("void bank.Book$$Lambda$1.run()")),
                (JIT, None),
            ],
        );
        // The interpreter may run the program's own function, or one of Java's library.
        are(Whose::Hidden, &[(JIT, Some("Interpreter"))]);
        are(Whose::Own, &[("prog", Some("InterpreterLoop"))]);
    }

    #[test]
    fn python() {
        are(
            Whose::Runtime,
            &[
                ("python3.11", Some("_PyEval_EvalFrameDefault")),
                ("python3.12", Some("lock_PyThread_acquire_lock")),
                ("python3.12", Some("main")),
                ("libpython3.12.so.1.0", Some("take_gil")),
                ("zlib.cpython-312-x86_64-linux-gnu.so", Some("zlib_compress")),
                (JIT, Some("py::Lock.__enter__:/usr/lib/python3.12/threading.py")),
                (JIT, Some("py::Queue.get:/usr/lib/python3.12/queue.py")),
            ],
        );
        are(
            Whose::Own,
            &[
                (JIT, Some("py::Ledger.settle:/srv/ledger.py")),
                (JIT, Some("py::<lambda>:/srv/a (copy)/ledger.py")),
            ],
        );
    }
}

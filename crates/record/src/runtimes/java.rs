//! HotSpot, Java's virtual machine: which functions are probed.
//!
//! It is a library, `libjvm.so`, which the launcher `java` loads from a folder near its own.

use super::{Elf, Probe, code_at, offset_of};
use holdup_trace::JAVA_FUNCTIONS;
use object::{Object, ObjectSymbol};
use std::ffi::CStr;
use std::path::{Path, PathBuf};

/// The library's name.
const LIBRARY: &str = "libjvm.so";
/// Its folder relative to that of the launcher: since JDK 9, and before.
const NEARBY: [&str; 3] = ["../lib/server", "../jre/lib/amd64/server", "../jre/lib/aarch64/server"];
/// Names of `ObjectMonitor`'s functions in the library: the beginning of the mangled names, up to
/// the arguments. JDK 22 renamed them.
const CLASS: &str = "_ZN13ObjectMonitor";
const SINCE_22: [(&str, &str); 3] =
    [("EnterI", "enter_internal"), ("ReenterI", "reenter_internal"), ("ExitEpilog", "exit_epilog")];

/// The register with the `this` pointer: `di`, `x0`.
const THIS: u64 = if cfg!(target_arch = "aarch64") { 1 } else { 1 << 5 };

/// Whether a file is the library.
pub(super) fn is(file: &Elf<'_>) -> bool {
    file.dynamic_symbols().any(|symbol| symbol.name() == Ok("JNI_CreateJavaVM"))
}

/// The library that this program loads, if it is Java's launcher.
pub(super) fn of_launcher(program: &Path) -> Option<PathBuf> {
    // The usual name is a symbolic link.
    let program = program.canonicalize().ok()?;
    let folder = program.parent().filter(|_| program.file_name().is_some_and(|n| n == "java"))?;
    NEARBY.iter().map(|nearby| folder.join(nearby).join(LIBRARY)).find(|path| path.is_file())
}

/// The library in a process, named as in its `maps`.
pub(super) fn mapped(maps: &str) -> Option<&Path> {
    let paths = maps.lines().filter_map(|line| line.splitn(6, ' ').nth(5));
    let mut paths = paths.map(|path| Path::new(path.trim_start()));
    paths.find(|path| path.file_name() == Some(LIBRARY.as_ref()))
}

/// The probes in the library, which must be openable at `path`.
pub(super) fn probes(file: &Elf<'_>, pmu: u32, path: &CStr) -> Result<Vec<Probe>, String> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return Err(
            "is for an architecture on which holdup does not know how arguments are passed"
                .to_owned(),
        );
    }
    if file.symbols().next().is_none() {
        return Err("is stripped of the names of its functions".to_owned());
    }
    JAVA_FUNCTIONS.iter().map(|&(function, _)| probe(file, function, pmu, path)).collect()
}

fn probe(file: &Elf<'_>, function: &str, pmu: u32, path: &CStr) -> Result<Probe, String> {
    let later = SINCE_22.iter().find(|names| names.0 == function).map_or(function, |names| names.1);
    let mangled = [function, later].map(|name| format!("{CLASS}{}{name}E", name.len()));
    let symbol = file.symbols().find(|symbol| {
        let name = symbol.name().unwrap_or_default();
        // Names with a dot are parts of functions.
        mangled.iter().any(|mangled| name.starts_with(mangled)) && !name.contains('.')
    });
    let at = symbol.and_then(|symbol| offset_of(file, symbol.address()));
    let at = at.ok_or_else(|| {
        format!(
            "has no function ObjectMonitor::{later}, or is of a version that is not known to holdup"
        )
    })?;
    Ok(Probe {
        name: format!("java:{function}"),
        pmu,
        path: path.to_owned(),
        offset: at + behind_mark(file, at),
        registers: THIS,
        // The stack shows the code that enters and exits a monitor.
        stack: true,
        reasons: Vec::new(),
    })
}

/// Offset, from the start of a function, of the instruction that saves the frame pointer, which the
/// kernel emulates: a marker for indirect jumps may come before it.
fn behind_mark(file: &Elf<'_>, offset: u64) -> u64 {
    const MARK_AND_PUSH: &[u8] = b"\xf3\x0f\x1e\xfa\x55";
    if cfg!(target_arch = "x86_64") && code_at(file, offset, 5) == Some(MARK_AND_PUSH) {
        4
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_of_a_process_is_the_one_that_is_mapped() {
        let maps = "00400000-00401000 r-xp 00000000 fe:00 11  /usr/lib/jvm/17/bin/java\n\
                    7f0000000000-7f0000001000 r--p 00000000 fe:00 12   /opt/a b/server/libjvm.so\n";
        assert_eq!(mapped(maps), Some(Path::new("/opt/a b/server/libjvm.so")));
        assert_eq!(mapped("0-1 r--p 0 fe:00 12 /opt/notlibjvm.so\n"), None);
    }
}

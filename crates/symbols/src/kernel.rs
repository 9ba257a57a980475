//! Names of the kernel's functions.

use crate::Options;
use crate::files::split;
use crate::text::Listed;
use holdup_trace::{BuildId, Mapping, TraceInfo};
use std::path::Path;

/// The kernel's name in mappings and build ids, and in perf's output.
pub(crate) const NAME: &str = "[kernel.kallsyms]";

/// The symbols of the recorded kernel, if they are available.
#[derive(Default)]
pub(crate) struct Kernel {
    listed: Option<Listed>,
    /// Offset of the recorded addresses from the list's, because a kernel's address differs per
    /// boot.
    slide: u64,
}

impl Kernel {
    /// Look for the kernel's symbols. `text` is the mapping of the kernel's own code.
    pub(crate) fn new(info: &TraceInfo, text: Option<&Mapping>, options: &Options) -> Kernel {
        if !info.symbols.is_empty() && options.kallsyms.is_none() {
            return Kernel { listed: Some(Listed::in_trace(&info.symbols)), slide: 0 };
        }
        // The mapping's file offset is the address of the symbol after which it is named.
        let base = text.map(|m| m.offset).filter(|&base| base != 0);
        let build = info.built.iter().find(|b| b.file == NAME).map(|b| b.build_id);
        let named = options.kallsyms.as_deref().map(Path::to_owned);
        let found = match (named, &options.symfs) {
            (Some(path), _) => Listed::kallsyms(&path),
            (None, Some(root)) => Listed::kallsyms(&root.join("proc/kallsyms")),
            (None, None) => cached(build, options).or_else(|| running(info, build, base)),
        };
        let slide = match (base, found.as_ref().and_then(|l| l.base)) {
            (Some(recorded), Some(listed)) => recorded.wrapping_sub(listed),
            _ => 0,
        };
        Kernel { listed: found, slide }
    }

    /// Name of the function at an address, which belongs to a module or to the kernel itself.
    pub(crate) fn function(&self, address: u64, module: bool) -> Option<String> {
        // Modules are loaded at other addresses after each boot.
        if module && self.slide != 0 {
            return None;
        }
        self.listed.as_ref()?.function(address.wrapping_sub(self.slide))
    }

    /// Whether there are no symbols.
    pub(crate) fn is_unknown(&self) -> bool {
        self.listed.is_none()
    }
}

/// The symbols of this build in perf's cache.
fn cached(build: Option<BuildId>, options: &Options) -> Option<Listed> {
    let (first, rest) = split(build?);
    let folder = options.home.as_ref()?.join(".debug/.build-id").join(first).join(rest);
    Listed::kallsyms(&folder.join("kallsyms"))
}

/// The symbols of the running kernel, if it is the recorded one and was not rebooted since.
fn running(info: &TraceInfo, build: Option<BuildId>, base: Option<u64>) -> Option<Listed> {
    let same = match build {
        Some(build) => notes_have(&std::fs::read("/sys/kernel/notes").ok()?, build),
        None => {
            let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
            info.os_release.as_deref() == Some(release.trim())
        }
    };
    if !same {
        return None;
    }
    Listed::kallsyms(Path::new("/proc/kallsyms")).filter(|l| l.base == base)
}

/// Whether the notes of a kernel contain a build id; no other note would match by chance.
fn notes_have(notes: &[u8], build: BuildId) -> bool {
    build.bytes().len() >= 8 && notes.windows(build.bytes().len()).any(|w| w == build.bytes())
}

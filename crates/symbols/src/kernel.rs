//! Names of the kernel's functions.

use crate::Options;
use crate::files::split;
use crate::text::Listed;
use holdup_trace::{BuildId, Mapping, TraceInfo};
use std::path::Path;

/// How mappings and build ids spell the kernel, and perf its code.
pub(crate) const NAME: &str = "[kernel.kallsyms]";

/// The list of the recorded kernel, as far as there is one.
#[derive(Default)]
pub(crate) struct Kernel {
    listed: Option<Listed>,
    /// A kernel starts at another address each time it boots: so much further on than in the list.
    slide: u64,
}

impl Kernel {
    /// Look for the list. `text` is the mapping of the kernel's own code.
    pub(crate) fn new(info: &TraceInfo, text: Option<&Mapping>, options: &Options) -> Kernel {
        if !info.symbols.is_empty() && options.kallsyms.is_none() {
            return Kernel { listed: Some(Listed::in_trace(&info.symbols)), slide: 0 };
        }
        // Its place in the file is the address of the symbol it is named after.
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

    /// Name of the function at an address, which is one of a module or of the kernel itself.
    pub(crate) fn function(&self, address: u64, module: bool) -> Option<String> {
        // Modules are loaded anywhere.
        if module && self.slide != 0 {
            return None;
        }
        self.listed.as_ref()?.function(address.wrapping_sub(self.slide))
    }

    /// Whether there is no list.
    pub(crate) fn is_unknown(&self) -> bool {
        self.listed.is_none()
    }
}

/// What perf kept of this build.
fn cached(build: Option<BuildId>, options: &Options) -> Option<Listed> {
    let (first, rest) = split(build?);
    let folder = options.home.as_ref()?.join(".debug/.build-id").join(first).join(rest);
    Listed::kallsyms(&folder.join("kallsyms"))
}

/// The list of the kernel that runs now, if it is the recorded one and has not been started anew.
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

/// Whether a build id is among the notes of a kernel: no others are as long and as arbitrary.
fn notes_have(notes: &[u8], build: BuildId) -> bool {
    build.bytes().len() >= 8 && notes.windows(build.bytes().len()).any(|w| w == build.bytes())
}

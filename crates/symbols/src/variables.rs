//! Names of variables by their addresses.

use crate::files::{Search, search};
use crate::{Options, user_dso};
use holdup_trace::BuildId;
use rustc_hash::FxHashMap;

/// Finds names of variables. Only files that are the recorded ones for certain, by their build ids,
/// tell: an address at which another build has another variable looks as good as any.
pub struct Variables {
    options: Options,
    files: FxHashMap<(String, BuildId), Search>,
}

impl Variables {
    /// Names from these places.
    pub fn new(options: Options) -> Variables {
        Variables { options, files: FxHashMap::default() }
    }

    /// The variable `distance` bytes behind where the byte at `offset` of a file is mapped, such as
    /// `server:queue+0x28`; `None` if the file is not at hand, or has no variable there.
    pub fn name(
        &mut self,
        file: &str,
        build: Option<BuildId>,
        offset: u64,
        distance: u64,
    ) -> Option<String> {
        let build = build.filter(|_| !self.options.off)?;
        let options = &self.options;
        let found = self.files.entry((file.to_owned(), build));
        let found = found.or_insert_with(|| search(file, Some(build), options));
        let elf = found.elf.as_ref().or(found.debug.as_ref())?;
        let address = elf.code_at(offset)?.checked_add(distance)?;
        // Most words lie on the heap, behind the end of everything: names need not be sorted.
        let names = elf.has(address).then(|| found.names())??;
        let (name, within) = names.variable(address)?;
        let dso = user_dso(file);
        Some(match within {
            0 => format!("{dso}:{name}"),
            within => format!("{dso}:{name}+{within:#x}"),
        })
    }
}

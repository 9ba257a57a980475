//! Names of variables by their addresses.

use crate::files::{Search, search};
use crate::{Options, user_dso};
use holdup_trace::BuildId;
use rustc_hash::FxHashMap;

/// Finds names of variables. Only files whose build ids match the recorded ones are used: in
/// another build the same address may belong to another variable, and nothing would show the error.
pub struct Variables {
    options: Options,
    files: FxHashMap<(String, BuildId), Search>,
}

impl Variables {
    /// A finder that looks for files in these places.
    pub fn new(options: Options) -> Variables {
        Variables { options, files: FxHashMap::default() }
    }

    /// The variable at `distance` bytes after the address at which the byte at `offset` of a file
    /// is mapped, such as `server:queue+0x28`; `None` if the file is not available, or has no
    /// variable there.
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
        // Most futex words are on the heap, after the end of the file's segments: skip sorting the
        // names.
        let names = elf.has(address).then(|| found.names())??;
        let (name, within) = names.variable(address)?;
        let dso = user_dso(file);
        Some(match within {
            0 => format!("{dso}:{name}"),
            within => format!("{dso}:{name}+{within:#x}"),
        })
    }
}

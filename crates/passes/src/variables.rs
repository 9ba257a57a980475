//! In which file's memory a word lies that threads wait on.
//!
//! A recorder tells where the code of files is mapped, not where their variables are. But the
//! loader maps a file in one piece, code before data: a variable belongs to the file whose code is
//! next below it, if that file is large enough. Only the file itself tells this, and the name of
//! the variable.

use crate::source::Source;
use holdup_trace::{BuildId, Mapping, TraceInfo};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Code mappings remembered per process; a damaged trace may have any number.
const MOST: usize = 1 << 12;

/// A word of memory, described by the code next below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable<'a> {
    /// The file, as the recorder spells it.
    pub file: &'a str,
    /// Build ID of the file, if the recording has it.
    pub build: Option<BuildId>,
    /// Distance of the word from the first byte of the file that is mapped as code.
    pub distance: u64,
    /// Offset of that byte in the file.
    pub offset: u64,
}

/// Tells what variables of files are called.
pub trait NamesVariables: Send + Sync {
    /// The name of a variable; `None` if the file has none at this place or cannot be read.
    fn name(&self, variable: &Variable<'_>) -> Option<String>;
}

/// Code mappings of one process by start address. Forked processes share them until one of the two
/// changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Images(Arc<BTreeMap<u64, Mapping>>);

impl Images {
    pub(crate) fn map(&mut self, mapping: &Mapping) {
        if self.0.len() < MOST && !mapping.kernel {
            Arc::make_mut(&mut self.0).insert(mapping.start, *mapping);
        }
    }

    /// The mapping next below an address.
    pub(crate) fn below(&self, address: u64) -> Option<Mapping> {
        self.0.range(..=address).next_back().map(|(_, mapping)| *mapping)
    }
}

/// Name of the variable at `address`, found through the mapping below it.
pub(crate) fn name(
    variables: &Source<dyn NamesVariables>,
    info: &TraceInfo,
    (code, address): (&Mapping, u64),
) -> Option<String> {
    let file = info.names.get(code.file);
    let build = code
        .build_id
        .or_else(|| info.built.iter().find(|built| built.file == file).map(|built| built.build_id));
    let distance = address.checked_sub(code.start)?;
    variables.0.name(&Variable { file: &file, build, distance, offset: code.offset })
}

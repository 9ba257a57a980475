//! Which file's memory a word lies in that threads wait at.
//!
//! A recorder tells where the code of files is mapped, not where their variables are. But a file is
//! loaded in one piece, code before data: a variable belongs to the file whose code is next below
//! it, if that file is so large. Only the file knows that, and what the variable is called.

use holdup_trace::{BuildId, Mapping, TraceInfo};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Code of one process that is remembered: a damaged trace maps without end.
const MOST: usize = 1 << 12;

/// A word of memory, by the code below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable<'a> {
    /// The file, as the recorder spells it.
    pub file: &'a str,
    /// Its build, if the recording has it.
    pub build: Option<BuildId>,
    /// How far the word lies behind the first byte of the file that is mapped as code,
    pub distance: u64,
    /// which is this one.
    pub offset: u64,
}

/// Tells what variables of files are called.
pub trait NamesVariables: Send + Sync {
    /// The name of a variable; `None` if the file has none there, or is not at hand.
    fn name(&self, variable: &Variable<'_>) -> Option<String>;
}

/// Who is asked for names of variables.
#[derive(Clone)]
pub struct Variables(pub Arc<dyn NamesVariables>);

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Variables")
    }
}

impl PartialEq for Variables {
    fn eq(&self, other: &Variables) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The code of one process, by where it begins. Processes that came from one share it until either
/// is changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Images(Arc<BTreeMap<u64, Mapping>>);

impl Images {
    pub(crate) fn map(&mut self, mapping: &Mapping) {
        if self.0.len() < MOST && !mapping.kernel {
            Arc::make_mut(&mut self.0).insert(mapping.start, *mapping);
        }
    }

    /// The code next below an address.
    pub(crate) fn below(&self, address: u64) -> Option<Mapping> {
        self.0.range(..=address).next_back().map(|(_, mapping)| *mapping)
    }
}

/// What a word of memory at `address` is called, by the code below it.
pub(crate) fn name(
    variables: &Variables,
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

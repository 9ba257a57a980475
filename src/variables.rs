//! Names of the variables that threads wait at, from the files of this machine.

use holdup_passes::{NamesVariables, Variable, Variables};
use std::sync::{Arc, Mutex, PoisonError};

/// Looks into files, each once.
struct OfFiles(Mutex<holdup_symbols::Variables>);

impl NamesVariables for OfFiles {
    fn name(&self, v: &Variable<'_>) -> Option<String> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.name(v.file, v.build, v.offset, v.distance)
    }
}

/// Names from these places.
pub(crate) fn of(places: holdup_symbols::Options) -> Variables {
    Variables(Arc::new(OfFiles(Mutex::new(holdup_symbols::Variables::new(places)))))
}

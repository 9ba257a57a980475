//! Names of the variables at which threads wait, from the files of this machine.

use holdup_passes::{NamesVariables, Variable, Variables};
use std::sync::{Arc, Mutex, PoisonError};

/// Looks up variables in files, reading each file once.
struct OfFiles(Mutex<holdup_symbols::Variables>);

impl NamesVariables for OfFiles {
    fn name(&self, v: &Variable<'_>) -> Option<String> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.name(v.file, v.build, v.offset, v.distance)
    }
}

/// A finder that looks for files in these places.
pub(crate) fn of(places: holdup_symbols::Options) -> Variables {
    Variables(Arc::new(OfFiles(Mutex::new(holdup_symbols::Variables::new(places)))))
}

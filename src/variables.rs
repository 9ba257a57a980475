//! Names of the variables at which threads wait, and where code spins, from the files of this
//! machine.

use holdup_passes::{NamesVariables, Variable, Variables};
use holdup_symbols::Spinners;
use holdup_trace::{BuildId, Spot};
use std::sync::{Arc, Mutex, PoisonError};

/// Looks up variables and code in files, reading each file once.
struct OfFiles(Mutex<holdup_symbols::Variables>, Mutex<Spinners>);

impl NamesVariables for OfFiles {
    fn name(&self, v: &Variable<'_>) -> Option<String> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.name(v.file, v.build, v.offset, v.distance)
    }

    fn spins(&self, file: &str, build: Option<BuildId>, offset: u64) -> Option<Option<Spot>> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).at(file, build, offset)
    }
}

/// A finder that looks for files in these places.
pub(crate) fn of(places: holdup_symbols::Options) -> Variables {
    let spinners = Mutex::new(Spinners::new(places.clone()));
    Variables(Arc::new(OfFiles(Mutex::new(holdup_symbols::Variables::new(places)), spinners)))
}

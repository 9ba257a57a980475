//! What an analysis asks of the files of this machine: names of the variables at which threads
//! wait, and where code spins.

use holdup_passes::{FindsSpins, NamesVariables, Source, Variable};
use holdup_symbols::{Spinners, Variables};
use holdup_trace::{BuildId, Spot};
use std::sync::{Arc, Mutex, PoisonError};

/// Who answers. Each reads a file once.
#[derive(Clone)]
pub(crate) struct Files {
    pub(crate) variables: Source<dyn NamesVariables>,
    pub(crate) spins: Source<dyn FindsSpins>,
}

impl Files {
    /// Those that look for files in these places.
    pub(crate) fn of(places: holdup_symbols::Options) -> Files {
        let spins = OfSpinners(Mutex::new(Spinners::new(places.clone())));
        let variables = OfVariables(Mutex::new(Variables::new(places)));
        Files { variables: Source(Arc::new(variables)), spins: Source(Arc::new(spins)) }
    }
}

struct OfVariables(Mutex<Variables>);

impl NamesVariables for OfVariables {
    fn name(&self, v: &Variable<'_>) -> Option<String> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.name(v.file, v.build, v.offset, v.distance)
    }
}

struct OfSpinners(Mutex<Spinners>);

impl FindsSpins for OfSpinners {
    fn at(&self, file: &str, build: Option<BuildId>, offset: u64) -> Option<Option<Spot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).at(file, build, offset)
    }
}

//! Values by object. Objects have small numbers, so each value has a place of its own.

use holdup_passes::{Analysis, Object};
use std::ops::{Index, IndexMut};

/// A value for each object, by its final number.
pub(crate) struct PerObject<T>(Vec<T>);

impl<T: Clone + Default> PerObject<T> {
    /// The default value for every object.
    pub(crate) fn new(analysis: &Analysis) -> PerObject<T> {
        PerObject(vec![T::default(); analysis.objects_in_all()])
    }
}

impl<T> Index<Object> for PerObject<T> {
    type Output = T;

    fn index(&self, object: Object) -> &T {
        &self.0[object.0 as usize]
    }
}

impl<T> IndexMut<Object> for PerObject<T> {
    fn index_mut(&mut self, object: Object) -> &mut T {
        &mut self.0[object.0 as usize]
    }
}

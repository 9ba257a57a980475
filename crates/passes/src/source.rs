//! Who answers questions about the files of the recorded programs, which an analysis does not read
//! itself.

use std::fmt;
use std::sync::Arc;

/// Somebody who answers one kind of question. Two are equal if they are the same one.
pub struct Source<T: ?Sized>(pub Arc<T>);

impl<T: ?Sized> Clone for Source<T> {
    fn clone(&self) -> Source<T> {
        Source(self.0.clone())
    }
}

impl<T: ?Sized> fmt::Debug for Source<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

impl<T: ?Sized> PartialEq for Source<T> {
    fn eq(&self, other: &Source<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

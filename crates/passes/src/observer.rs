//! What watches a trace while it is analysed.

use crate::{Fact, Threads};
use holdup_trace::{Batch, Event, Nanos};

/// Gets the events of a trace and the facts that the analysis concludes from them, in the reading
/// in which they are analysed. The numbers of threads and objects in facts are those of the
/// analysis; but what a number stands for may become known only later, see
/// [`crate::Analysis::final_object`].
pub trait Observer {
    /// Facts are observed from the first of these times up to the second.
    fn begins(&mut self, _from: Nanos, _to: Nanos) {}

    /// Events of the trace, in order, from its first on, up to the end of what is analysed.
    fn events(&mut self, events: &[Event], batch: &Batch);

    /// A fact, after the events that complete it. At most one batch of events is seen before their
    /// facts.
    fn fact(&mut self, fact: &Fact, threads: &Threads);
}

//! Connections: which threads made them, which accepted them, and when those closed them.
//!
//! Kept with the steps of threads, see [`crate::Detail::Steps`]. The trace does not say which
//! connection a thread accepts. But the number of connections that have been made and not accepted
//! tells how many requests no thread has in hand, and those that have been accepted and not closed
//! tell how many clients a server has at one time.

use crate::slot::Slot;
use holdup_trace::Nanos;
use rustc_hash::FxHashSet;

const EINPROGRESS: i64 = -115;

/// What a thread did with a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hop {
    /// It made it.
    Made,
    /// It accepted it; another thread had made it.
    Accepted,
    /// It closed a connection that its process had accepted.
    Closed,
}

/// A thread made, accepted or closed a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection {
    /// When the call to make it began, or the call to accept or close it returned: it is made
    /// before it is accepted.
    pub at: Nanos,
    /// The thread.
    pub by: Slot,
    /// What it did.
    pub hop: Hop,
}

/// All connections, in the order in which the calls returned.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connections {
    pub(crate) all: Vec<Connection>,
    /// Descriptors that connect without waiting, by process. Programs such as `ab` call `connect`
    /// again to see whether it is done.
    under_way: FxHashSet<(u32, u64)>,
    /// Descriptors of accepted connections, by process.
    open: FxHashSet<(u32, u64)>,
}

impl Connections {
    /// A call to connect descriptor `fd` of a process returns.
    pub(crate) fn connects(&mut self, start: Nanos, by: Slot, process: u32, fd: u64, ret: i64) {
        let is_new = match ret {
            EINPROGRESS => {
                self.under_way.insert((process, fd));
                true
            }
            0 => !self.under_way.remove(&(process, fd)),
            _ => false,
        };
        if is_new {
            self.all.push(Connection { at: start, by, hop: Hop::Made });
        }
    }

    /// A call to accept a connection returns one, as descriptor `fd` of a process.
    pub(crate) fn accepts(&mut self, now: Nanos, by: Slot, process: u32, fd: u64) {
        // A descriptor that is given again has been closed, by a call that was not recorded.
        self.closes(now, by, process, fd);
        self.open.insert((process, fd));
        self.all.push(Connection { at: now, by, hop: Hop::Accepted });
    }

    /// A call to close descriptor `fd` of a process returns.
    pub(crate) fn closes(&mut self, now: Nanos, by: Slot, process: u32, fd: u64) {
        if self.open.remove(&(process, fd)) {
            self.all.push(Connection { at: now, by, hop: Hop::Closed });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connected(calls: &[(u32, u64, i64)]) -> usize {
        let mut of = Connections::default();
        for (at, &(process, fd, ret)) in (0..).zip(calls) {
            of.connects(at, Slot(1), process, fd, ret);
        }
        of.all.len()
    }

    #[test]
    fn who_connects_without_waiting_and_asks_again_makes_one_connection() {
        const EISCONN: i64 = -106;
        assert_eq!(connected(&[(1, 4, EINPROGRESS), (1, 4, 0)]), 1);
        assert_eq!(connected(&[(1, 4, EINPROGRESS), (1, 4, EISCONN)]), 1);
        // Descriptors are used again, by others too.
        assert_eq!(connected(&[(1, 4, EINPROGRESS), (1, 4, 0), (1, 4, 0)]), 2);
        assert_eq!(connected(&[(1, 4, EINPROGRESS), (1, 4, EINPROGRESS), (2, 4, 0)]), 3);
    }

    #[test]
    fn only_accepted_connections_are_closed() {
        let mut of = Connections::default();
        of.closes(0, Slot(1), 1, 4);
        of.accepts(1, Slot(1), 1, 4);
        of.closes(2, Slot(2), 2, 4);
        of.closes(3, Slot(3), 1, 4);
        of.closes(4, Slot(3), 1, 4);
        let hops: Vec<_> = of.all.iter().map(|of| (of.at, of.by.0, of.hop)).collect();
        assert_eq!(hops, [(1, 1, Hop::Accepted), (3, 3, Hop::Closed)]);
    }

    #[test]
    fn a_descriptor_that_is_given_again_was_closed_unseen() {
        let mut of = Connections::default();
        of.accepts(1, Slot(1), 1, 4);
        of.accepts(2, Slot(1), 1, 4);
        let hops: Vec<_> = of.all.iter().map(|of| (of.at, of.hop)).collect();
        assert_eq!(hops, [(1, Hop::Accepted), (2, Hop::Closed), (2, Hop::Accepted)]);
    }

    #[test]
    fn a_refused_connection_is_none() {
        const ECONNREFUSED: i64 = -111;
        assert_eq!(connected(&[(1, 4, ECONNREFUSED), (1, 4, 0)]), 1);
    }
}

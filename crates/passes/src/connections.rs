//! Connections: which threads made them, and which accepted them.
//!
//! Kept with the steps of threads, see [`crate::Detail::Steps`]. The trace does not say which
//! connection a thread accepts. But the number of connections that have been made and not accepted
//! tells how many requests no thread has in hand.

use crate::slot::Slot;
use holdup_trace::Nanos;
use rustc_hash::FxHashSet;

const EINPROGRESS: i64 = -115;

/// A thread made or accepted a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection {
    /// When the call to make it began, or the call to accept it returned: it is made before it is
    /// accepted.
    pub at: Nanos,
    /// The thread.
    pub by: Slot,
    /// It accepted the connection, which another thread had made.
    pub accepted: bool,
}

/// All connections, in the order in which the calls returned.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connections {
    pub(crate) all: Vec<Connection>,
    /// Descriptors that connect without waiting, by process. Programs such as `ab` call `connect`
    /// again to see whether it is done.
    under_way: FxHashSet<(u32, u64)>,
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
            self.all.push(Connection { at: start, by, accepted: false });
        }
    }

    /// A call to accept a connection returns one.
    pub(crate) fn accepts(&mut self, now: Nanos, by: Slot) {
        self.all.push(Connection { at: now, by, accepted: true });
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
    fn a_refused_connection_is_none() {
        const ECONNREFUSED: i64 = -111;
        assert_eq!(connected(&[(1, 4, ECONNREFUSED), (1, 4, 0)]), 1);
    }
}

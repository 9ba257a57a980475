//! Connections of a server: how many wait to be accepted, and how many it has at one time.
//!
//! A worker that serves one connection after the other waits for each client to close its own
//! before it accepts the next. So the next request seems to come after its last answer, but it has
//! been there, in the kernel's queue: nobody has it in hand.

use holdup_passes::Hop;
use holdup_trace::Nanos;

/// How many connections a server has from one time on.
struct Count {
    at: Nanos,
    /// How many wait to be accepted.
    waiting: u64,
    /// How many have been accepted and not closed; below 0 only until it is known how many are
    /// older than the recording.
    open: i64,
}

/// The connections of a server.
#[derive(Default)]
pub(super) struct Backlog {
    /// Each time that one is made, accepted or closed.
    counts: Vec<Count>,
    /// How many there are while there are any.
    usual: usize,
}

impl Backlog {
    /// From what happened to connections, in order of time.
    ///
    /// Not each of them has a counterpart: clients also connect to other servers, and other clients
    /// than those of the trace may connect to this one. An accepted connection that nobody has made
    /// counts for nothing, and one that nobody ever accepts waits for nobody here. So a queue that
    /// does not shrink until the recording ends is not seen. A connection that is closed may have
    /// been accepted before the recording.
    pub(super) fn new(connections: impl IntoIterator<Item = (Nanos, Hop)>) -> Backlog {
        let (mut waiting, mut open, mut fewest) = (0_u64, 0_i64, 0_i64);
        let mut counts: Vec<Count> = Vec::new();
        for (at, hop) in connections {
            match hop {
                Hop::Made => waiting += 1,
                Hop::Accepted => (waiting, open) = (waiting.saturating_sub(1), open + 1),
                Hop::Closed => open -= 1,
            }
            fewest = fewest.min(open);
            counts.push(Count { at, waiting, open });
        }
        let mut never = u64::MAX;
        for of in counts.iter_mut().rev() {
            never = never.min(of.waiting);
            of.waiting -= never;
            of.open -= fewest;
        }
        let usual = usual(&counts);
        Backlog { counts, usual }
    }

    /// How many connections there are while there are any. Clients ask for one thing at a time
    /// through each of them.
    pub(super) fn usual(&self) -> usize {
        self.usual
    }

    /// Whether a connection waits at this time.
    pub(super) fn has_any(&self, at: Nanos) -> bool {
        let next = self.counts.partition_point(|of| of.at <= at);
        next > 0 && self.counts[next - 1].waiting > 0
    }
}

/// The mean number of connections while there are any, rounded.
fn usual(counts: &[Count]) -> usize {
    let (mut sum, mut time) = (0_u128, 0_u128);
    for of in counts.windows(2) {
        let connections = u128::from(of[0].waiting + of[0].open.unsigned_abs());
        let ns = u128::from(of[1].at.saturating_sub(of[0].at));
        sum += ns * connections;
        time += if connections > 0 { ns } else { 0 };
    }
    ((sum + time / 2) / time.max(1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE: Hop = Hop::Made;
    const ACCEPTED: Hop = Hop::Accepted;
    const CLOSED: Hop = Hop::Closed;

    /// When connections wait, at 0, 10, 20 and so on.
    fn waits(connections: &[(Nanos, Hop)], times: usize) -> Vec<bool> {
        let backlog = Backlog::new(connections.iter().copied());
        (0..times as Nanos).map(|i| backlog.has_any(i * 10)).collect()
    }

    #[test]
    fn a_connection_waits_until_it_is_accepted() {
        let one = [(10, MADE), (30, ACCEPTED)];
        assert_eq!(waits(&one, 5), [false, true, true, false, false]);
        let two = [(10, MADE), (20, MADE), (30, ACCEPTED), (40, ACCEPTED)];
        assert_eq!(waits(&two, 5), [false, true, true, true, false]);
        assert_eq!(waits(&[], 2), [false, false]);
    }

    #[test]
    fn a_connection_that_nobody_accepts_keeps_nobody_waiting() {
        let others = [(10, MADE), (20, MADE), (30, ACCEPTED), (40, MADE), (50, MADE)];
        assert_eq!(waits(&others, 6), [false, false, true, false, false, false]);
    }

    #[test]
    fn a_client_that_was_not_recorded_leaves_no_debt() {
        let unseen = [(10, ACCEPTED), (20, ACCEPTED), (30, MADE), (50, ACCEPTED)];
        assert_eq!(waits(&unseen, 6), [false, false, false, true, true, false]);
    }

    fn usually(connections: &[(Nanos, Hop)]) -> usize {
        Backlog::new(connections.iter().copied()).usual()
    }

    #[test]
    fn a_server_has_the_connections_that_wait_and_those_that_are_open() {
        let three = [
            (0, MADE),
            (0, MADE),
            (0, ACCEPTED),
            (0, MADE),
            (900, CLOSED),
            (900, ACCEPTED),
            (990, ACCEPTED),
        ];
        assert_eq!(usually(&three), 3);
        assert_eq!(usually(&[]), 0);
        let now_and_then = [(0, MADE), (1, ACCEPTED), (9, CLOSED), (900, MADE), (909, ACCEPTED)];
        assert_eq!(usually(&now_and_then), 1, "while there are any");
    }

    #[test]
    fn a_connection_that_is_closed_may_be_older_than_the_recording() {
        assert_eq!(usually(&[(0, CLOSED), (10, CLOSED), (20, CLOSED)]), 2, "2 until 10, then 1");
    }
}

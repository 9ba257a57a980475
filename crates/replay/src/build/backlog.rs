//! Connections that wait to be accepted: nobody has the requests in hand that come through them.
//!
//! A worker that serves one connection after the other waits for each client to close its own
//! before it accepts the next. So the next request seems to come after its last answer, but it has
//! been there, in the kernel's queue.

use holdup_trace::Nanos;

/// How many connections wait to be accepted, each from one time on.
#[derive(Default)]
pub(super) struct Backlog(Vec<(Nanos, u64)>);

impl Backlog {
    /// From connections that were made (`false`) or accepted (`true`), in order of time.
    ///
    /// Not each of them has a counterpart: clients also connect to other servers, and other clients
    /// than those of the trace may connect to this one. An accepted connection that nobody has made
    /// counts for nothing, and one that nobody ever accepts waits for nobody here. So a queue that
    /// does not shrink until the recording ends is not seen.
    pub(super) fn new(connections: impl IntoIterator<Item = (Nanos, bool)>) -> Backlog {
        let mut waiting = 0_u64;
        let mut all: Vec<(Nanos, u64)> = Vec::new();
        for (at, accepted) in connections {
            waiting = if accepted { waiting.saturating_sub(1) } else { waiting + 1 };
            all.push((at, waiting));
        }
        let mut never = u64::MAX;
        for (_, waiting) in all.iter_mut().rev() {
            never = never.min(*waiting);
            *waiting -= never;
        }
        Backlog(all)
    }

    /// Whether a connection waits at this time.
    pub(super) fn has_any(&self, at: Nanos) -> bool {
        let next = self.0.partition_point(|of| of.0 <= at);
        next > 0 && self.0[next - 1].1 > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE: bool = false;
    const ACCEPTED: bool = true;

    /// When connections wait, at 0, 10, 20 and so on.
    fn waits(connections: &[(Nanos, bool)], times: usize) -> Vec<bool> {
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
}

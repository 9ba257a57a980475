//! Servers that sleep for a set time with a request in hand, while others have asked already.
//!
//! A process that accepted a connection is a server. Its clients are the threads of other
//! processes, and those of its own that sleep in the network, that a thread of it wakes: a wake-up
//! is an answer. Another thread could serve a request meanwhile in any of four cases:
//! * When the sleep ends, two clients or more wait for answers of this thread.
//! * The request was there before this thread's last answer, because the thread has gone on without
//!   waiting, or because no other process has woken a thread of the server since then. This is what
//!   tells of a client that handles many connections in one thread, which waits only once.
//! * This thread serves a *relay*, a server that asks other servers, and when the sleep ends, more
//!   clients wait for the relay than threads serve it. Some requests are in no thread's hands then.
//! * When the sleep ends, a connection of a client waits to be accepted by a thread of this role
//!   ([`Backlog`]).
//!
//! Without a call that accepts, nothing tells a server from a client that thinks for a set time
//! between an answer and its next request.

use super::Builder;
use super::backlog::Backlog;
use super::ends::Ended;
use crate::program::ReplayObject;
use holdup_attribution::is_recorder;
use holdup_passes::limits::NAMED;
use holdup_passes::{Analysis, Connection, Hop, ObjectKind, Slot, Thread};
use holdup_trace::Nanos;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Answers looked at to find two clients that wait at one time: they mostly are answered in the
/// order in which they asked.
const NEXT_ANSWERS: usize = 64;

/// What servers were asked for.
#[derive(Default)]
pub(super) struct Asked {
    recorders: FxHashSet<Slot>,
    /// When other processes woke threads of each server, in order of time, by process.
    asked: FxHashMap<u32, Rc<Vec<Nanos>>>,
    /// How clients waited for each thread of a server.
    waited: FxHashMap<Slot, Rc<Waited>>,
    /// The processes, relays too, that waited for each of these threads.
    waiting: FxHashMap<Slot, FxHashSet<u32>>,
    /// The servers that other servers answer, by process.
    relays: BTreeMap<u32, Relay>,
    /// The connections that wait for each thread of a server and for all others of its role.
    backlogs: FxHashMap<Slot, Rc<Backlog>>,
}

/// Waits of clients.
#[derive(Clone, Default)]
struct Waited {
    /// From when to when, in the order of the answers.
    spans: Vec<(Nanos, Nanos)>,
    clients: FxHashSet<Slot>,
}

/// A server that asks other servers.
#[derive(Default)]
struct Relay {
    /// The threads that answer it.
    behind: BTreeSet<Slot>,
    /// How processes that are no servers waited for it.
    waited: Rc<Waited>,
}

impl Waited {
    /// A sleep until an answer came; `asks`: of a client, not of a relay.
    fn add(&mut self, of: &Ended, asks: bool) {
        self.spans.push((of.at, of.at + of.ns));
        if asks {
            self.clients.insert(of.sleeper);
        }
    }

    /// Whether more than this many clients wait at this time.
    fn has_more(&self, than: usize, at: Nanos) -> bool {
        let next = self.spans.partition_point(|waited| waited.1 <= at);
        let answers = self.spans[next..].iter().take(NEXT_ANSWERS);
        answers.filter(|waited| waited.0 <= at).nth(than).is_some()
    }
}

impl Asked {
    pub(super) fn new(analysis: &Analysis, slots: &[(Slot, &Thread)]) -> Asked {
        let records = |t: &Thread| is_recorder(&analysis.comm(t));
        let recorders = slots.iter().filter(|of| records(of.1)).map(|of| of.0).collect();
        Asked { recorders, ..Asked::default() }
    }

    /// `waker` ended a sleep.
    pub(super) fn add(&mut self, analysis: &Analysis, waker: Slot, of: &Ended, kind: ObjectKind) {
        let pid = |slot: Slot| analysis.pid(analysis.thread(slot));
        let accepts = |pid: Option<u32>| pid.filter(|&pid| analysis.accepts(pid));
        let (by, sleeper) = (pid(waker), analysis.thread(of.sleeper));
        if let Some(server) = accepts(pid(of.sleeper)).filter(|_| by != pid(of.sleeper)) {
            Rc::make_mut(self.asked.entry(server).or_default()).push(of.at + of.ns);
        }
        // Whoever runs wakes the recorder, and threads of the kernel.
        let is_client = !sleeper.is_kthread() && !self.recorders.contains(&of.sleeper);
        let Some(by) = accepts(by).filter(|_| is_client) else { return };
        let other = pid(of.sleeper).filter(|&pid| pid != by);
        let relay = accepts(other);
        if other.is_some() || is_network(kind) {
            Rc::make_mut(self.waited.entry(waker).or_default()).add(of, relay.is_none());
            self.waiting.entry(waker).or_default().extend(other);
        }
        if let Some(relay) = relay {
            self.relays.entry(relay).or_default().behind.insert(waker);
        } else if other.is_some() {
            Rc::make_mut(&mut self.relays.entry(by).or_default().waited).add(of, true);
        }
    }

    pub(super) fn sort(&mut self, analysis: &Analysis) {
        self.asked.values_mut().for_each(|times| Rc::make_mut(times).sort_unstable());
        // Most servers ask no other.
        self.relays.retain(|_, relay| !relay.behind.is_empty());
        let relays = self.relays.values_mut();
        relays.for_each(|of| Rc::make_mut(&mut of.waited).spans.sort_by_key(|waited| waited.1));
        let mut connections = analysis.connections().to_vec();
        connections.sort_by_key(|of| of.at);
        let accepted = connections.iter().filter(|of| of.hop == Hop::Accepted);
        let accepting: FxHashSet<Slot> = accepted.map(|of| of.by).collect();
        if !accepting.is_empty() {
            self.leave_out(&accepting);
            self.find_backlogs(analysis, &connections);
        }
    }

    /// The thread that accepts for its siblings is none of their clients.
    fn leave_out(&mut self, accepting: &FxHashSet<Slot>) {
        for of in self.waited.values_mut().filter(|of| !of.clients.is_disjoint(accepting)) {
            Rc::make_mut(of).clients.retain(|slot| !accepting.contains(slot));
        }
    }

    /// `connections` are in order of time.
    fn find_backlogs(&mut self, analysis: &Analysis, connections: &[Connection]) {
        let pid = |slot: Slot| analysis.pid(analysis.thread(slot));
        let mut by_role: BTreeMap<Vec<u8>, Vec<Slot>> = BTreeMap::new();
        for &slot in self.waiting.keys() {
            by_role.entry(analysis.role(analysis.thread(slot))).or_default().push(slot);
        }
        for slots in by_role.into_values() {
            let servers: FxHashSet<u32> = slots.iter().filter_map(|&slot| pid(slot)).collect();
            let clients = slots.iter().flat_map(|slot| &self.waiting[slot]);
            let clients: FxHashSet<u32> = clients.copied().collect();
            let theirs = connections.iter().filter(|of| {
                let side = if of.hop == Hop::Made { &clients } else { &servers };
                pid(of.by).is_some_and(|pid| side.contains(&pid))
            });
            let backlog = Rc::new(Backlog::new(theirs.map(|of| (of.at, of.hop))));
            self.backlogs.extend(slots.into_iter().map(|slot| (slot, backlog.clone())));
        }
    }
}

/// Whether a thread that sleeps for such an object may wait for a peer in the network. An event
/// loop is woken for other reasons too.
fn is_network(kind: ObjectKind) -> bool {
    matches!(
        kind,
        ObjectKind::Socket | ObjectKind::Poll | ObjectKind::Descriptor | ObjectKind::Other
    )
}

/// The requests of one thread.
pub(super) struct Requests<'a> {
    analysis: &'a Analysis,
    /// Its process, if that is a server.
    server: Option<u32>,
    asked: Rc<Vec<Nanos>>,
    waited: Rc<Waited>,
    /// As `waited`, of the relay that the thread serves, and how many threads serve that.
    relayed: Rc<Waited>,
    behind: usize,
    backlog: Rc<Backlog>,
    has: Has,
    answered: Nanos,
}

/// What a thread of a server does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Has {
    /// No request, as far as is known.
    Nothing,
    /// What some thread woke it for.
    WhatItWasWokenFor,
    /// The next request: it has answered one and has not waited since.
    Next,
}

impl<'a> Builder<'a> {
    pub(super) fn requests(&self, slot: Slot, t: &Thread) -> Requests<'a> {
        let analysis = self.analysis;
        let server = analysis.pid(t).filter(|pid| !t.is_kthread() && analysis.accepts(*pid));
        let asked = server.and_then(|pid| self.asked.asked.get(&pid)).cloned().unwrap_or_default();
        let waited = self.asked.waited.get(&slot).cloned().unwrap_or_default();
        let relay = self.asked.relays.values().find(|relay| relay.behind.contains(&slot));
        let (relayed, behind) =
            relay.map(|of| (of.waited.clone(), of.behind.len())).unwrap_or_default();
        let backlog = self.asked.backlogs.get(&slot).cloned().unwrap_or_default();
        let (has, answered) = (Has::Nothing, 0);
        Requests { analysis, server, asked, waited, relayed, behind, backlog, has, answered }
    }
}

impl Requests<'_> {
    /// Another thread ended a sleep of this one. A lock is no request.
    pub(super) fn woken(&mut self, object: Option<&ReplayObject>) {
        if self.server.is_some() && !object.is_some_and(|o| o.is_lock) {
            self.has = Has::WhatItWasWokenFor;
        }
    }

    /// The thread wakes `sleeper`, which slept for an object of this kind.
    pub(super) fn wakes(&mut self, sleeper: &Thread, kind: ObjectKind, at: Nanos) {
        if self.server.is_some() && (self.analysis.pid(sleeper) != self.server || is_network(kind))
        {
            (self.has, self.answered) = (Has::Next, at);
        }
    }

    /// The thread sleeps from `from` to `to`. Whether another thread could have served a request
    /// meanwhile.
    pub(super) fn keeps_waiting(&self, from: Nanos, to: Nanos) -> bool {
        let was_there = match self.has {
            Has::Nothing => false,
            Has::WhatItWasWokenFor => {
                let next = self.asked.partition_point(|&at| at <= self.answered);
                self.asked.get(next).is_none_or(|&at| at > from)
            }
            Has::Next => true,
        };
        was_there
            || self.waited.has_more(1, to)
            || self.relayed.has_more(self.behind, to)
            || self.backlog.has_any(to)
    }

    /// From the first request that this thread or its relay served to the last answer, without the
    /// first hundredth: whoever starts a server asks now and then whether it is there.
    pub(super) fn served_ns(&self) -> Nanos {
        let named = self.analysis.limit(&NAMED) / 100.0;
        let of = |waited: &Waited| {
            let first = waited.spans.get((waited.spans.len() as f64 * named) as usize)?;
            Some(waited.spans.last()?.1.saturating_sub(first.0))
        };
        of(&self.waited).max(of(&self.relayed)).unwrap_or(0)
    }

    /// How many requests there are at one time: of each thread that waits for answers of this one,
    /// or of the relay that it serves, or through each connection.
    pub(super) fn clients(&self) -> usize {
        self.waited.clients.len().max(self.relayed.clients.len()).max(self.backlog.usual())
    }
}

/// Whether a sleep that no thread ended lasts for a time that the thread itself set. An event loop
/// that sleeps has nothing in hand, and a device needs its time.
pub(super) fn is_nap(object: Option<&ReplayObject>) -> bool {
    !object.is_some_and(|o| o.is_device || o.kind == ObjectKind::Epoll)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited(spans: &[(Nanos, Nanos)]) -> Waited {
        Waited { spans: spans.to_vec(), ..Waited::default() }
    }

    #[test]
    fn clients_wait_from_their_request_to_the_answer() {
        let waited = waited(&[(0, 50), (10, 100), (60, 150), (101, 200)]);
        let at = |at| waited.has_more(1, at);
        assert!(at(10) && at(49), "the first two");
        assert!(!at(5) && !at(50) && !at(59), "one");
        assert!(at(60) && at(99), "the second and the third");
        assert!(!at(100) && at(101) && !at(150) && !at(1_000));
        assert!(waited.has_more(0, 5) && !waited.has_more(2, 10));
        assert!(!Waited::default().has_more(0, 0));
    }

    #[test]
    fn among_very_many_answers_only_the_next_are_looked_at() {
        let mut spans: Vec<(Nanos, Nanos)> = (0..100).map(|i| (i * 10 + 5, i * 10 + 9)).collect();
        spans.push((0, 2_000));
        spans.push((0, 2_001));
        let waited = waited(&spans);
        assert!(!waited.has_more(1, 0) && waited.has_more(1, 950));
    }
}

//! Servers that sleep for a set time with a request in hand, while others have asked already.
//!
//! A process that accepted a connection is a server. Its clients are the threads of other
//! processes, and those of its own that sleep in the network, that a thread of it wakes: a wake-up
//! is an answer. Another thread could serve a request meanwhile if, when the sleep ends,
//! * two clients or more wait for answers of this thread, or
//! * the request was there before this thread's last answer, because the thread has gone on without
//!   waiting, or because no other process has woken a thread of the server since then. A client
//!   that handles many connections in one thread waits only once.
//!
//! Without a call that accepts, nothing tells a server from a client that thinks for a set time
//! between an answer and its next request.

use super::Builder;
use super::ends::Ended;
use crate::program::ReplayObject;
use holdup_passes::{Analysis, ObjectKind, Slot, Thread};
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Answers looked at to find two clients that wait at one time: they mostly are answered in the
/// order in which they asked.
const NEXT_ANSWERS: usize = 64;

/// What servers were asked for.
#[derive(Default)]
pub(super) struct Asked {
    /// When other processes woke threads of each server, in order of time, by process.
    asked: FxHashMap<u32, Rc<Vec<Nanos>>>,
    /// From when to when clients waited for each thread of a server, in the order of the answers.
    waited: FxHashMap<Slot, Rc<Vec<(Nanos, Nanos)>>>,
}

impl Asked {
    /// `waker` ended a sleep.
    pub(super) fn add(&mut self, analysis: &Analysis, waker: Slot, of: &Ended, kind: ObjectKind) {
        let pid = |slot: Slot| analysis.pid(analysis.thread(slot));
        let accepts = |pid: Option<u32>| pid.filter(|&pid| analysis.accepts(pid));
        let by = pid(waker);
        if let Some(server) = accepts(pid(of.sleeper)).filter(|_| by != pid(of.sleeper)) {
            Rc::make_mut(self.asked.entry(server).or_default()).push(of.at + of.ns);
        }
        if accepts(by).is_some() && (by != pid(of.sleeper) || is_network(kind)) {
            Rc::make_mut(self.waited.entry(waker).or_default()).push((of.at, of.at + of.ns));
        }
    }

    pub(super) fn sort(&mut self) {
        self.asked.values_mut().for_each(|times| Rc::make_mut(times).sort_unstable());
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
    waited: Rc<Vec<(Nanos, Nanos)>>,
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
        Requests { analysis, server, asked, waited, has: Has::Nothing, answered: 0 }
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
        was_there || two_wait(&self.waited, to)
    }
}

/// Whether two clients or more wait at this time.
fn two_wait(waited: &[(Nanos, Nanos)], at: Nanos) -> bool {
    let next = waited.partition_point(|waited| waited.1 <= at);
    let answers = waited[next..].iter().take(NEXT_ANSWERS);
    answers.filter(|waited| waited.0 <= at).nth(1).is_some()
}

/// Whether a sleep that no thread ended lasts for a time that the thread itself set. An event loop
/// that sleeps has nothing in hand, and a device needs its time.
pub(super) fn is_nap(object: Option<&ReplayObject>) -> bool {
    !object.is_some_and(|o| o.is_device || o.kind == ObjectKind::Epoll)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_wait_from_their_request_to_the_answer() {
        let waited = [(0, 50), (10, 100), (60, 150), (101, 200)];
        let at = |at| two_wait(&waited, at);
        assert!(at(10) && at(49), "the first two");
        assert!(!at(5) && !at(50) && !at(59), "one");
        assert!(at(60) && at(99), "the second and the third");
        assert!(!at(100) && at(101) && !at(150) && !at(1_000));
        assert!(!two_wait(&[], 0));
    }

    #[test]
    fn among_very_many_answers_only_the_next_are_looked_at() {
        let mut waited: Vec<(Nanos, Nanos)> = (0..100).map(|i| (i * 10 + 5, i * 10 + 9)).collect();
        waited.push((0, 2_000));
        waited.push((0, 2_001));
        assert!(!two_wait(&waited, 0) && two_wait(&waited, 950));
    }
}

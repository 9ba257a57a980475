//! Servers that sleep for a set time with a request in hand, while others have asked already.
//!
//! A process that accepted a connection is a server. A thread of it has a request in hand from the
//! moment at which some thread wakes it until it wakes a thread of another process: that is the
//! answer. If no other process has woken a thread of the server since the answer before, the
//! request was there before it: it waited for this thread, and another thread could have served it.
//!
//! Without a call that accepts, nothing tells a server from a client that thinks for a set time
//! between an answer and its next request.

use super::Builder;
use crate::program::ReplayObject;
use holdup_passes::{Analysis, ObjectKind, Slot, Thread};
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// When other processes woke threads of each server, in order of time, by process.
#[derive(Default)]
pub(super) struct Asked(FxHashMap<u32, Rc<Vec<Nanos>>>);

impl Asked {
    /// `waker` ended a sleep of `sleeper`.
    pub(super) fn add(&mut self, analysis: &Analysis, waker: Slot, sleeper: Slot, at: Nanos) {
        let pid = |slot: Slot| analysis.pid(analysis.thread(slot));
        let Some(server) = pid(sleeper).filter(|&pid| analysis.accepts(pid)) else { return };
        if pid(waker) != Some(server) {
            Rc::make_mut(self.0.entry(server).or_default()).push(at);
        }
    }

    pub(super) fn sort(&mut self) {
        self.0.values_mut().for_each(|times| Rc::make_mut(times).sort_unstable());
    }
}

/// The requests of one thread.
pub(super) struct Requests<'a> {
    analysis: &'a Analysis,
    /// Its process, if that is a server.
    server: Option<u32>,
    /// When others asked the server for something.
    asked: Rc<Vec<Nanos>>,
    in_hand: bool,
    answered: Nanos,
}

impl<'a> Builder<'a> {
    pub(super) fn requests(&self, t: &Thread) -> Requests<'a> {
        let analysis = self.analysis;
        let server = analysis.pid(t).filter(|pid| !t.is_kthread() && analysis.accepts(*pid));
        let asked = server.and_then(|pid| self.asked.0.get(&pid)).cloned().unwrap_or_default();
        Requests { analysis, server, asked, in_hand: false, answered: 0 }
    }
}

impl Requests<'_> {
    /// Another thread ended a sleep of this one.
    pub(super) fn woken(&mut self) {
        self.in_hand = self.server.is_some();
    }

    /// The thread wakes `sleeper`.
    pub(super) fn wakes(&mut self, sleeper: &Thread, at: Nanos) {
        if self.server.is_some() && self.analysis.pid(sleeper) != self.server {
            (self.in_hand, self.answered) = (false, at);
        }
    }

    /// Whether the thread has a request in hand that was there before the answer to the last one.
    pub(super) fn has_one(&self, now: Nanos) -> bool {
        let next = self.asked.partition_point(|&at| at <= self.answered);
        self.in_hand && self.asked.get(next).is_none_or(|&at| at > now)
    }
}

/// Whether a sleep that no thread ended lasts for a time that the thread itself set. An event loop
/// that sleeps has nothing in hand, and a device needs its time.
pub(super) fn is_nap(object: Option<&ReplayObject>) -> bool {
    !object.is_some_and(|o| o.is_device || o.kind == ObjectKind::Epoll)
}

//! Calls that come whole: the exit directly behind the enter.
//!
//! Most system calls end on the CPU on which they began, and nothing else happens there in between.
//! What such a call costs can be added up in one step, and the stream has half as many changes from
//! CPU to CPU. The price is the strict order: the exit comes before events of other CPUs that
//! happened during the call.
//!
//! ```text
//!  CPU 0   ├─call─┤ ├──call──┤            strict    0a 1a 0b 0c 1b 1c 0d 1d
//!          a      b c        d
//!  CPU 1     ├─call──┤ ├call──┤           whole     0a 0b 1a 1b 0c 0d 1c 1d
//!            a       b c      d
//! ```
//!
//! Only a sink that asks gets calls whole ([`super::Sink::whole_calls`]).

use crate::{Event, Nanos, What};

/// Which calls a sink wants whole.
pub struct WholeCalls {
    /// By the number of the call; a number beyond them is none.
    pub numbers: Vec<bool>,
    /// Times at which something begins or ends for the sink. Of a call across such a time, the two
    /// events stay apart.
    pub borders: Vec<Nanos>,
}

/// Finds the calls that come whole in the order of their enters.
pub(super) struct Pairs {
    numbers: Vec<bool>,
    /// The first border after the events so far.
    next: Nanos,
    /// Borders after it, the earliest last.
    later: Vec<Nanos>,
}

impl Pairs {
    pub(super) fn of(WholeCalls { numbers, mut borders }: WholeCalls) -> Pairs {
        borders.sort_by_key(|&border| std::cmp::Reverse(border));
        let next = borders.pop().unwrap_or(Nanos::MAX);
        Pairs { numbers, next, later: borders }
    }

    /// Whether these events, one behind the other in a run, are a call that comes whole.
    #[inline(always)]
    pub(super) fn is_one(&mut self, enter: &Event, exit: &Event) -> bool {
        let Some(nr) = call(enter, exit) else { return false };
        while self.next <= enter.ts {
            self.next = self.later.pop().unwrap_or(Nanos::MAX);
        }
        exit.ts < self.next && self.numbers.get(nr as usize) == Some(&true)
    }
}

/// The number of the call of which two events, one behind the other in a run, are the enter and the
/// exit.
#[inline(always)]
pub fn call(enter: &Event, exit: &Event) -> Option<u32> {
    match (enter.what, exit.what) {
        (What::SysEnter { nr, .. }, What::SysExit { .. })
            if enter.cpu == exit.cpu && enter.tid == exit.tid =>
        {
            Some(nr)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArgsRef, Cpu, EventId, NameId, Pid, Tid};

    fn event(ts: Nanos, cpu: u16, tid: u32, what: What) -> Event {
        let (pid, comm, id) = (Pid::UNKNOWN, NameId::NONE, EventId(0));
        Event { ts, tid: Tid(tid), pid, comm, cpu: Cpu(cpu), id, what }
    }

    fn enter(ts: Nanos, cpu: u16, tid: u32) -> Event {
        event(ts, cpu, tid, What::SysEnter { nr: 3, args: ArgsRef::NONE })
    }

    fn exit(ts: Nanos, cpu: u16, tid: u32) -> Event {
        event(ts, cpu, tid, What::SysExit { nr: 3, ret: 0 })
    }

    #[test]
    fn a_call_is_an_enter_and_an_exit_of_one_thread_on_one_cpu() {
        assert_eq!(call(&enter(1, 0, 7), &exit(2, 0, 7)), Some(3));
        assert_eq!(call(&enter(1, 0, 7), &exit(2, 1, 7)), None, "on another CPU");
        assert_eq!(call(&enter(1, 0, 7), &exit(2, 0, 8)), None, "of another thread");
        assert_eq!(call(&exit(1, 0, 7), &enter(2, 0, 7)), None);
        assert_eq!(call(&enter(1, 0, 7), &enter(2, 0, 7)), None);
    }

    #[test]
    fn no_call_comes_whole_across_a_border() {
        let numbers = vec![false, false, false, true];
        let mut pairs = Pairs::of(WholeCalls { numbers, borders: vec![20, 10, 30] });
        let mut is_one = |from, to| pairs.is_one(&enter(from, 0, 7), &exit(to, 0, 7));
        assert!(is_one(5, 9));
        assert!(!is_one(9, 10), "what is at the border is behind it");
        assert!(is_one(10, 19));
        assert!(!is_one(25, 40));
        assert!(is_one(30, Nanos::MAX - 1), "behind the last");
    }

    #[test]
    fn only_calls_that_the_sink_wants_come_whole() {
        for numbers in [vec![true, true, true, false], vec![true]] {
            let mut pairs = Pairs::of(WholeCalls { numbers, borders: Vec::new() });
            assert!(!pairs.is_one(&enter(5, 0, 7), &exit(9, 0, 7)));
        }
    }
}

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
//! Only a sink that asks gets calls whole ([`Sink::whole_calls`]). It names times at which
//! something begins or ends for it; events on both sides of such a time stay apart.

use super::Sink;
use crate::{Event, Nanos, Reader, What};

/// Which calls come whole.
pub(super) enum WholeCalls {
    /// The stream is in strict order.
    None,
    /// Those that do not cross a border.
    Between {
        /// The first border after the events so far.
        next: Nanos,
        /// Borders after it, the earliest last.
        later: Vec<Nanos>,
    },
}

impl WholeCalls {
    pub(super) fn of(reader: &dyn Reader, sink: &impl Sink) -> WholeCalls {
        match sink.whole_calls().filter(|_| reader.keeps_cpus_together()) {
            None => WholeCalls::None,
            Some(mut later) => {
                later.sort_by_key(|&border| std::cmp::Reverse(border));
                WholeCalls::Between { next: later.pop().unwrap_or(Nanos::MAX), later }
            }
        }
    }

    /// Whether these events, one behind the other in a run, are a call that comes whole. The enters
    /// that are asked for ascend in time.
    #[inline(always)]
    pub(super) fn is_one(&mut self, enter: &Event, exit: &Event) -> bool {
        let WholeCalls::Between { next, later } = self else { return false };
        if !is_call(enter, exit) {
            return false;
        }
        while *next <= enter.ts {
            *next = later.pop().unwrap_or(Nanos::MAX);
        }
        exit.ts < *next
    }
}

/// Whether two events, one behind the other in a run, are the enter and the exit of one call.
#[inline(always)]
pub fn is_call(enter: &Event, exit: &Event) -> bool {
    matches!(enter.what, What::SysEnter { .. })
        && matches!(exit.what, What::SysExit { .. })
        && enter.cpu == exit.cpu
        && enter.tid == exit.tid
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
        event(ts, cpu, tid, What::SysEnter { nr: 0, args: ArgsRef::NONE })
    }

    fn exit(ts: Nanos, cpu: u16, tid: u32) -> Event {
        event(ts, cpu, tid, What::SysExit { nr: 0, ret: 0 })
    }

    #[test]
    fn a_call_is_an_enter_and_an_exit_of_one_thread_on_one_cpu() {
        assert!(is_call(&enter(1, 0, 7), &exit(2, 0, 7)));
        assert!(!is_call(&enter(1, 0, 7), &exit(2, 1, 7)), "on another CPU");
        assert!(!is_call(&enter(1, 0, 7), &exit(2, 0, 8)), "of another thread");
        assert!(!is_call(&exit(1, 0, 7), &enter(2, 0, 7)));
        assert!(!is_call(&enter(1, 0, 7), &enter(2, 0, 7)));
    }

    #[test]
    fn no_call_comes_whole_across_a_border() {
        let mut whole = WholeCalls::Between { next: 10, later: vec![30, 20] };
        let mut is_one = |from, to| whole.is_one(&enter(from, 0, 7), &exit(to, 0, 7));
        assert!(is_one(5, 9));
        assert!(!is_one(9, 10), "what is at the border is behind it");
        assert!(is_one(10, 19));
        assert!(!is_one(25, 40));
        assert!(is_one(30, Nanos::MAX - 1), "behind the last");
        assert!(!WholeCalls::None.is_one(&enter(5, 0, 7), &exit(9, 0, 7)));
    }
}

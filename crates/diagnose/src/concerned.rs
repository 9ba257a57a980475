//! Which threads and objects concern the chosen threads.

use holdup_attribution::Attribution;
use holdup_passes::{Analysis, ByThread, Object, PairSum, Slot};
use std::collections::BTreeSet;

/// The chosen threads, the threads they wait for, and so on.
pub(crate) struct Concerned<'a> {
    analysis: &'a Analysis,
    waited: &'a ByThread<PairSum>,
    threads: BTreeSet<Slot>,
}

impl<'a> Concerned<'a> {
    /// `None` if no threads were chosen.
    pub(crate) fn of(judged: &'a Attribution<'_>) -> Option<Concerned<'a>> {
        let a = judged.analysis;
        if !a.has_chosen_work() {
            return None;
        }
        let (waited, ended) = (&judged.by_object.waited_by, &judged.by_object.ended_by);
        let mut threads: BTreeSet<Slot> = a.chosen().map(|(slot, _)| slot).collect();
        loop {
            let before = threads.len();
            for (object, enders) in ended.objects() {
                if waited.of(object).iter().any(|of| threads.contains(&of.0)) {
                    let enders = enders.iter().map(|of| of.0);
                    threads.extend(enders.filter(|&slot| !a.thread(slot).is_kthread()));
                }
            }
            if threads.len() == before {
                return Some(Concerned { analysis: a, waited, threads });
            }
        }
    }

    /// Whether these threads, or waiting for these objects, can delay the chosen threads. A lock of
    /// unrelated threads can only take CPU time from them.
    pub(crate) fn are_met(&self, tids: &[u32], objects: &[Object]) -> bool {
        let waits = |&o: &Object| self.waited.of(o).iter().any(|of| self.threads.contains(&of.0));
        tids.is_empty() && objects.is_empty()
            || objects.iter().any(waits)
            || self.threads.iter().any(|&s| tids.contains(&self.analysis.thread(s).tid.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_attribution::analyze;
    use holdup_passes::{Filter, Options};
    use holdup_testkit::{MemTrace, TraceBuilder};

    const FUTEX: u32 = 202;
    const WAIT: u64 = 128;
    const WAKE: u64 = 129;

    /// A client that waits for its server, a server that waits for a mutex that a helper holds, and
    /// two unrelated threads at a mutex of their own.
    fn trace() -> MemTrace {
        let waits = |b: TraceBuilder, at: u64, cpu: u16, (who, by): (u32, u32), word: u64| {
            b.sys_enter_with(at, cpu, who, FUTEX, &[word, WAIT, 2])
                .switch(at + 10, cpu, who, by, "S")
                .sys_enter_with(at + 500, cpu, by, FUTEX, &[word, WAKE, 1])
                .waking(at + 510, cpu, by, who)
                .wakeup(at + 510, cpu, by, who)
                .sys_exit(at + 520, cpu, by, FUTEX, 1)
                .switch(at + 900, cpu, by, who, "R")
                .sys_exit(at + 910, cpu, who, FUTEX, 0)
        };
        let mut b = TraceBuilder::new(2)
            .task(10, 10, Some(1), "client")
            .task(11, 10, Some(1), "server")
            .task(12, 10, Some(1), "helper")
            .task(30, 30, Some(1), "stranger")
            .task(31, 30, Some(1), "stranger")
            .switch(0, 0, 0, 10, "R")
            .switch(0, 1, 0, 30, "R");
        b = waits(b, 1_000, 0, (10, 11), 0x1000);
        b = b.switch(2_000, 0, 10, 11, "R");
        b = waits(b, 3_000, 0, (11, 12), 0x2000);
        b = waits(b, 1_000, 1, (30, 31), 0x3000);
        b.switch(6_000, 0, 11, 0, "S").switch(6_000, 1, 30, 0, "S").build()
    }

    #[test]
    fn chosen_threads_are_concerned_by_whom_they_wait_for_and_not_by_strangers() {
        let trace = trace();
        let met = |comm: &str| {
            let work = Filter { comms: vec![comm.to_owned()], ..Filter::default() };
            let a = analyze(&trace, &Options { work, ..Options::default() }).unwrap();
            let object = |word: &str| {
                let found = a.objects().find(|o| a.object_name(o.object) == word);
                found.expect("somebody waits for it").object
            };
            let judged = Attribution::from(&a);
            let concerned = Concerned::of(&judged).expect("somebody was chosen");
            let of = |word| concerned.are_met(&[], &[object(word)]);
            [of("0x1000"), of("0x2000"), of("0x3000"), concerned.are_met(&[12], &[])]
        };
        assert_eq!(met("client"), [true, true, false, true]);
        assert_eq!(met("server"), [false, true, false, true]);
        assert_eq!(met("stranger"), [false, false, true, false]);
        let all = analyze(&trace, &Options::default()).unwrap();
        assert!(Concerned::of(&Attribution::from(&all)).is_none());
    }
}

//! Which lanes are worth drawing, and the lanes that were drawn.

use crate::analysis::Analysis;
use crate::lanes::{CLOSE_UP, Follow, Lane};
use crate::slot::Slot;
use holdup_trace::{Cpu, Nanos};

impl Analysis {
    /// What to follow for a picture: at most so many CPUs, those busy longest, and at most so many
    /// threads, those that ran or were ready longest. Single switches are drawn where most of them
    /// were, for at least [`CLOSE_UP`] if the trace is that long.
    pub fn worth_following(&self, cpus: usize, threads: usize) -> Follow {
        let rows = self.cpu_rows();
        let mut busy: Vec<(Nanos, Cpu)> = rows
            .iter()
            .map(|r| (r.wall_ns.saturating_sub(r.idle_ns + r.unaccounted_ns), Cpu(r.cpu)))
            .collect();
        busy.sort_by_key(|&(ns, cpu)| (std::cmp::Reverse(ns), cpu));
        let mut cpus: Vec<Cpu> = busy.into_iter().take(cpus).map(|b| b.1).collect();
        cpus.sort();
        let mut active: Vec<(Nanos, Slot)> =
            self.threads().map(|(slot, t)| (t.active_ns(), slot)).filter(|t| t.0 > 0).collect();
        active.sort_by_key(|&(ns, slot)| (std::cmp::Reverse(ns), slot));
        let mut threads: Vec<Slot> = active.into_iter().take(threads).map(|a| a.1).collect();
        threads.sort();
        let mut kernel = vec![false];
        kernel.extend(self.all_threads().map(|(_, t)| t.is_kthread()));
        let span = (self.start, self.end);
        Follow { cpus, threads, kernel, span, window: self.busiest(CLOSE_UP) }
    }

    /// The whole bins of the timeline with most switches, at least `ns` long if the trace is.
    fn busiest(&self, ns: Nanos) -> (Nanos, Nanos) {
        let bins = self.bins();
        let Some(first) = bins.first() else { return (self.start, self.end) };
        let wide = ns.div_ceil((first.end - first.start).max(1)) as usize;
        let wide = wide.min(bins.len());
        let switches = |part: &[crate::Bin]| part.iter().map(|b| b.switches).sum::<u64>();
        let best = (bins.windows(wide).enumerate())
            .max_by_key(|(i, part)| (switches(part), std::cmp::Reverse(*i)));
        match best {
            Some((_, part)) => (part[0].start, part[wide - 1].end),
            None => (self.start, self.end),
        }
    }

    /// The lane of a thread; `None` if it was not followed.
    pub fn lane(&self, slot: Slot) -> Option<&Lane> {
        self.thread(slot).lane.as_deref()
    }

    /// The lane of a CPU; `None` if it was not followed.
    pub fn cpu_lane(&self, cpu: Cpu) -> Option<&Lane> {
        self.engine.cpus.get(cpu)?.lane.as_deref()
    }
}

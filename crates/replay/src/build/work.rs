//! Which threads do the work, and when it begins and ends.

use super::{Builder, is_part};
use crate::program::{Op, ThreadProgram};
use holdup_attribution::{Attribution, is_recorder};
use holdup_passes::limits::{MATTERS, WELL_MET};
use holdup_trace::Nanos;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Mark the busiest threads, without the kernel's and recorders'. If the traced program is known,
/// only threads that the recorder started count.
pub(super) fn mark_workers(judged: &Attribution<'_>, threads: &mut [ThreadProgram]) {
    let (analysis, known) = (judged.analysis, judged.who_works());
    let pid = |t: &ThreadProgram| analysis.pid(analysis.thread(t.slot)).unwrap_or(t.tid);
    let active = |t: &ThreadProgram| !is_recorder(&t.comm);
    let of_program = |t: &ThreadProgram| active(t) && !t.is_kthread;
    let of_work =
        |t: &ThreadProgram| known.work_known && of_program(t) && known.started.contains(&pid(t));
    let chosen = |t: &ThreadProgram| analysis.is_chosen(analysis.thread(t.slot));
    let active_and_chosen = |t: &ThreadProgram| active(t) && chosen(t);
    let mut rules: [&dyn Fn(&ThreadProgram) -> bool; 3] = [&of_work, &of_program, &active];
    if analysis.has_chosen_work() {
        rules = [&active_and_chosen, &chosen, &chosen];
    }
    // In a thread that runs tasks, the thread's own code is what finds the next task.
    let carries = |t: &ThreadProgram| analysis.thread(t.slot).carries;
    let of = |rule: &dyn Fn(&ThreadProgram) -> bool| -> Vec<usize> {
        let does = |t: &ThreadProgram| t.run_ns > 0 && !carries(t) && rule(t);
        (0..threads.len()).filter(|&i| does(&threads[i])).collect()
    };
    let found = rules.into_iter().map(of).find(|found| !found.is_empty()).unwrap_or_default();
    let run_ns = |of: &[usize]| -> Nanos { of.iter().map(|&i| threads[i].run_ns).sum() };
    // A thread that naps most of the time polls for the end of the work. If most of the work is
    // done between its naps, the naps are part of the work.
    let wall_ns = analysis.wall_ns();
    let naps = |i: &usize| {
        let t = &threads[*i];
        // One of several load generators, each of which runs for a set time, does no work itself.
        let life_ns = analysis.life_ns(analysis.thread(t.slot)).min(wall_ns);
        let does_else = is_part(t.run_ns, t.napped_ns, analysis.limit(&WELL_MET))
            || !is_part(t.napped_ns, wall_ns, analysis.limit(&MATTERS));
        t.napped_ns * 2 > if does_else { wall_ns } else { life_ns }
    };
    let napping: Vec<usize> = (0..threads.len()).filter(naps).collect();
    let awake: Vec<usize> = found.iter().copied().filter(|i| !naps(i)).collect();
    let counted = if run_ns(&awake) * 2 >= run_ns(&found) { awake } else { found };
    let all = run_ns(&counted);
    let nearly_all = |sum: Nanos| is_part(sum, all, 100.0 - analysis.limit(&WELL_MET));
    // Busy programs first: a program that creates thousands of threads does the work, although each
    // runs for less time than, say, an unrelated audio player.
    let mut programs: BTreeMap<u32, Nanos> = BTreeMap::new();
    for &i in &counted {
        *programs.entry(pid(&threads[i])).or_default() += threads[i].run_ns;
    }
    let busy: BTreeSet<u32> = busiest(programs.into_iter().collect(), nearly_all).collect();
    let of_busy = counted.into_iter().filter(|&i| busy.contains(&pid(&threads[i])));
    let of_busy = of_busy.map(|i| (i, threads[i].run_ns)).collect();
    for i in busiest(of_busy, nearly_all) {
        threads[i].works = true;
    }
    for t in threads.iter_mut().filter(|t| !t.is_kthread && !t.works) {
        t.is_background = known.work_known && !known.work.contains(&pid(t));
    }
    for i in napping {
        threads[i].watches = !threads[i].works && threads[i].may_ask();
    }
    // A thread outside the work waits for no thread of the work.
    let counts: Vec<bool> = threads.iter().map(ThreadProgram::may_ask).collect();
    for t in threads {
        let ends = t.ends.iter().filter(|of| counts[of.0 as usize]);
        t.ends_ns = ends.map(|of| of.1).sum();
        t.serves_work = known.work_known
            && !t.works
            && t.may_ask()
            && !known.started.contains(&pid(t))
            && is_part(t.ends_ns, analysis.wall_ns(), analysis.limit(&MATTERS));
    }
}

/// The items that ran longest, until together they have run for enough.
fn busiest<T>(
    mut of: Vec<(T, Nanos)>,
    is_enough: impl Fn(Nanos) -> bool,
) -> impl Iterator<Item = T> {
    of.sort_by_key(|one| Reverse(one.1));
    let mut sum = 0;
    let longest = of.into_iter().take_while(move |(_, run_ns)| {
        let wanted = !is_enough(sum);
        sum += run_ns;
        wanted
    });
    longest.map(|(who, _)| who)
}

/// The step at which a thread has done its work.
pub(super) fn work_to(ops: &[Op], run_ns: Nanos, last_pct: f64) -> usize {
    let mut sum = 0;
    for (op, next) in ops.iter().zip(1..) {
        if let Op::Run(ns) | Op::Spin(ns, _) = op {
            sum += ns;
            if is_part(sum, run_ns, 100.0 - last_pct) {
                return next;
            }
        }
    }
    ops.len()
}

impl Builder<'_> {
    /// The time from the first start of a working thread to the moment when all had done the work.
    pub(super) fn traced_span(&self, threads: &[ThreadProgram]) -> Option<Nanos> {
        let mut span: Option<(Nanos, Nanos)> = None;
        for t in threads.iter().filter(|t| t.works) {
            for at in t.from as usize..t.work_to as usize {
                if let Op::Run(ns) | Op::Spin(ns, _) = self.ops[at] {
                    let begins = self.times[at];
                    let (from, to) = span.unwrap_or((begins, 0));
                    span = Some((from.min(begins), to.max(begins + ns)));
                }
            }
        }
        span.map(|(from, to)| to - from)
    }
}

//! Neither locks nor imbalance: disks, too few CPUs, slow memory, the cost of the multiprocessor
//! kernel.

use super::{Kernel, View, given};
use crate::counted;
use crate::report::{Class, Evidence, Finding};
use crate::rules::hardware_advice;
use holdup_attribution::limits::{MATTERS, NAMED, QUEUE, SLOWER};

pub(super) fn io_bound(view: &View<'_>) -> Finding {
    let Some(wio) = view.wio else {
        return view.silent(
            Class::IoBound,
            "the file does not say how long CPUs waited for disks (sar, pct_wio)",
        );
    };
    let mut f = view.finding(
        Class::IoBound,
        wio,
        format!("CPUs are idle {wio:.0} % of the time while disks work"),
    );
    f.evidence = vec![
        Evidence::of("idle while disks worked", wio, "% of capacity", "sar")
            .against(view.thresholds, &MATTERS),
    ];
    f.advice = vec![
        "look at the disks (iostat -x): use more disks, or fewer and larger requests".to_owned(),
    ];
    f
}

pub(super) fn cpu_overload(view: &View<'_>) -> Finding {
    let class = Class::CpuOverload;
    let runq = view.figures.sar.as_ref().and_then(|s| s.runq_sz);
    let (Some(busy), Some(runq)) = (view.busy(), runq) else {
        return view.silent(
            class,
            "the file does not give the length of the run queue and the use of the CPUs (sar)",
        );
    };
    let queue = runq / view.cpus;
    let share = ((queue - 1.0) * 100.0).clamp(0.0, 100.0);
    let mut f = view.finding(
        class,
        share,
        format!("{runq:.1} threads want {} CPUs, which are {busy:.0} % busy", view.cpus),
    );
    f.evidence = vec![
        Evidence::of("CPUs busy", busy, "% of capacity", "sar"),
        Evidence::of("threads running or ready, per CPU", queue, "threads", "sar")
            .against(view.thresholds, &QUEUE),
    ];
    // If more than what matters is idle, no thread queues for a CPU.
    f.ruled_out = if busy < 100.0 - view.limit(&MATTERS) {
        Some(format!("CPUs are only {busy:.0} % busy"))
    } else if queue < view.limit(&QUEUE) {
        Some(format!("only {queue:.2} threads per CPU run or are ready"))
    } else {
        None
    };
    f.advice = vec!["run fewer threads at a time, or add CPUs".to_owned()];
    f
}

pub(super) fn mp_up_overhead(view: &View<'_>) -> Finding {
    let class = Class::MpUpOverhead;
    let run = |kernel| view.figures.runs.iter().find(|r| r.cpus == 1 && r.kernel == kernel);
    let (Some(up), Some(mp)) = (run(Kernel::Up), run(Kernel::Mp)) else {
        return view.silent(
            class,
            "this rule needs runs of the same work on one CPU, under a uniprocessor kernel and \
             under a multiprocessor kernel (runs)",
        );
    };
    let overhead = (mp.seconds / up.seconds - 1.0) * 100.0;
    let kernel = view.sys.or(up.lock_ratio_pct);
    let summary = format!(
        "on one CPU the multiprocessor kernel takes {overhead:.1} % longer than the uniprocessor \
            kernel"
    );
    let mut f = view.finding(class, overhead.max(0.0), summary);
    f.evidence = vec![Evidence::of(
        "additional time compared with the uniprocessor kernel",
        overhead,
        "%",
        "runs",
    )];
    given(&mut f.evidence, "kernel time", kernel, "%", "sar or lock ratio");
    let noise = view.limit(&MATTERS) / 3.0;
    f.ruled_out = if overhead < noise {
        Some(format!(
            "the multiprocessor kernel takes {overhead:.1} % longer; less than {noise} % is noise"
        ))
    } else {
        // Its cost, as a part of capacity.
        let small = kernel.filter(|&k| k * overhead / 100.0 < view.limit(&NAMED));
        small.map(|k| {
            format!(
                "the work takes {overhead:.1} % longer, but only {k:.0} % of the time is in the \
                 kernel"
            )
        })
    };
    f.advice = vec![
        "make fewer and larger system calls; the rest of this cost cannot be avoided on a \
         multiprocessor"
            .to_owned(),
    ];
    f
}

/// Cycles per instruction on the most CPUs compared with those on the fewest.
pub(super) fn hardware_bandwidth(view: &View<'_>) -> Finding {
    let mut f = compared(view);
    f.evidence.extend(counted::of_measured(view.measured));
    f
}

fn compared(view: &View<'_>) -> Finding {
    let class = Class::HardwareBandwidth;
    let runs = &view.figures.counters;
    let (Some(few), Some(many)) = (
        runs.iter().min_by_key(|c| c.cpus),
        runs.iter().max_by_key(|c| c.cpus).filter(|c| c.cpus > 1),
    ) else {
        return view.silent(
            class,
            "this rule needs cycles and instructions, once on few CPUs and once on all (counters; \
             perf stat -e task-clock,cycles:u,instructions:u)",
        );
    };
    if few.cpus == many.cpus {
        return view
            .silent(class, "the counters are for one number of CPUs only and cannot be compared");
    }
    let per_instruction = |c: &super::Counters| c.cycles / c.instructions;
    let (alone, cpi) = (per_instruction(few), per_instruction(many));
    let slower = (cpi / alone - 1.0) * 100.0;
    let other_work = (many.instructions / few.instructions - 1.0).abs() * 100.0;
    // Without sar the time in application code is unknown.
    let share = view.usr.map_or(f64::NAN, |usr| usr * (1.0 - alone / cpi).max(0.0));
    let summary = format!(
        "an instruction takes {cpi:.2} cycles on {} CPUs and {alone:.2} on {}",
        many.cpus, few.cpus
    );
    let mut f = view.finding(class, share, summary);
    f.evidence = vec![
        Evidence::of(
            "cycles per instruction with many CPUs busy, compared with few",
            slower,
            "% more",
            "counters",
        )
        .against(view.thresholds, &SLOWER),
        Evidence::of("cycles per instruction in user mode", cpi, "cycles", "counters"),
        Evidence::of("difference in instructions", other_work, "%", "counters"),
    ];
    if slower < view.limit(&SLOWER) {
        f.ruled_out =
            Some(format!("cycles per instruction are {slower:.0} % higher with more CPUs"));
    } else if cpi < 1.0 && other_work > view.limit(&MATTERS) {
        // Intel's VTune manual, CPI Rate: 1 is acceptable. But if it is the same work, the hardware
        // slows it down, however few cycles it takes.
        f.ruled_out =
            Some(format!("an instruction takes {cpi:.2} cycles: the code hardly waits for memory"));
    }
    f.advice = hardware_advice();
    f
}

//! Application code that gets slower under concurrency, by each of the ways to estimate it, and
//! what looks like it and is not.

use holdup_attribution::analyze;
use holdup_diagnose::phases::{self, Wanted};
use holdup_diagnose::{
    Class, Diagnosis, Extras, Finding, Measured, Thresholds, diagnose, diagnose_with_extras,
};
use holdup_passes::{Analysis, Options};
use holdup_testkit::{ChosenCalls, MemTrace, TraceBuilder};
use holdup_trace::{Reader, StackRef, What};

const GETPPID: u32 = 110;
const US: u64 = 1000;

/// Pieces of work of two threads, each ended by a call of 1 us: the first thread alone for 300
/// pieces, then both for 300.
struct Work {
    /// A piece takes this long alone, and under concurrency, on average.
    alone_us: u64,
    concurrent_us: u64,
    /// Cycles per instruction alone and under concurrency; `None` for no counters.
    cpi: Option<(u64, u64)>,
}

const PIECES: u64 = 600;

/// Pieces differ by up to a tenth either way.
fn varied(us: u64, i: u64) -> u64 {
    us * US * (90 + (i * 7) % 21) / 100
}

impl Work {
    fn trace(&self) -> MemTrace {
        let mut b =
            TraceBuilder::new(2).task(71, 70, None, "worker-0").task(72, 70, None, "worker-1");
        b = b.switch(0, 0, 0, 71, "R").switch(0, 1, 0, 0, "R");
        let (mut b, now) = self.pieces(b, 0, 71, 10 * US, self.alone_us, self.cpi.map(|c| c.0));
        b = b.switch(now, 1, 0, 72, "R");
        let (b, end) = self.pieces(b, 0, 71, now, self.concurrent_us, self.cpi.map(|c| c.1));
        let (b, end2) = self.pieces(b, 1, 72, now, self.concurrent_us, self.cpi.map(|c| c.1));
        b.switch(end, 0, 71, 0, "S").switch(end2, 1, 72, 0, "S").build()
    }

    /// Returns when the last piece is done.
    fn pieces(
        &self,
        mut b: TraceBuilder,
        cpu: u16,
        tid: u32,
        from: u64,
        us: u64,
        cpi: Option<u64>,
    ) -> (TraceBuilder, u64) {
        let mut now = from;
        for i in 0..PIECES {
            now += varied(us, i);
            b = b.sys_enter(now, cpu, tid, GETPPID).sys_exit(now + US, cpu, tid, GETPPID, 1);
            now += US;
            if let Some(cpi) = cpi {
                let sample = |period| What::Sample { period, stack: StackRef::NONE };
                b = b.event(now + 2, cpu, tid, ("", "cycles:u"), sample(cpi * 1000));
                b = b.event(now + 3, cpu, tid, ("", "instructions:u"), sample(1000));
            }
        }
        (b, now)
    }
}

fn analysis(trace: &MemTrace) -> Analysis {
    analyze(trace, &Options::default()).unwrap()
}

fn judge(trace: &MemTrace, baseline: Option<&MemTrace>) -> (Diagnosis, Finding) {
    let base = baseline.map(analysis);
    let d = diagnose(trace.info(), &analysis(trace), base.as_ref());
    let f = d.findings.iter().find(|f| f.class == Class::HardwareBandwidth).unwrap().clone();
    (d, f)
}

fn evidence(f: &Finding, metric: &str) -> f64 {
    f.evidence
        .iter()
        .find(|e| e.metric.starts_with(metric))
        .unwrap_or_else(|| panic!("no {metric}: {:?}", f.evidence))
        .value
        .expect("known")
}

#[test]
fn user_intervals_that_double_in_concurrent_are_a_lead_and_no_verdict() {
    let (d, f) = judge(&Work { alone_us: 50, concurrent_us: 100, cpi: None }.trace(), None);
    assert_ne!(d.verdict.class, Class::HardwareBandwidth, "{f:?}");
    assert!(f.ruled_out.as_ref().is_some_and(|why| why.contains("suspicion")), "{:?}", f.ruled_out);
    assert_eq!((f.lost_cpu_ns, f.leaves.len()), (0, 0), "what is not proven costs nothing");
    let slower = evidence(&f, "application code between system calls with many");
    assert!((95.0..105.0).contains(&slower), "{slower}");
    assert_eq!(f.culprits[0].name, "worker-0");
    assert_eq!(d.leads.len(), 1);
    assert_eq!(d.leads[0].class, Class::HardwareBandwidth);
    let command = &d.leads[0].command;
    assert!(command.contains("holdup record --counters"), "{command}");
}

#[test]
fn user_intervals_that_take_the_same_are_not() {
    let (d, f) = judge(&Work { alone_us: 50, concurrent_us: 53, cpi: None }.trace(), None);
    assert_ne!(d.verdict.class, Class::HardwareBandwidth);
    assert!(f.ruled_out.is_some());
}

#[test]
fn counters_are_trusted_more_than_user_intervals() {
    let (d, f) = judge(&Work { alone_us: 50, concurrent_us: 100, cpi: Some((1, 3)) }.trace(), None);
    assert_eq!(d.verdict.class, Class::HardwareBandwidth);
    assert!(d.verdict.summary.contains("cycles per instruction"), "{}", d.verdict.summary);
    let slower = evidence(&f, "cycles per instruction with many");
    assert!((195.0..201.0).contains(&slower), "{slower}");
    // Larger pieces, not a slower machine: cycles per instruction stay the same.
    let (d, f) = judge(&Work { alone_us: 50, concurrent_us: 100, cpi: Some((2, 2)) }.trace(), None);
    assert_ne!(d.verdict.class, Class::HardwareBandwidth);
    assert!(f.ruled_out.as_ref().unwrap().contains("0 % longer"), "{:?}", f.ruled_out);
}

#[test]
fn counters_tell_of_a_choice_of_calls_too_and_untraced_ones_are_part_of_what_is_slowed_down() {
    let trace = Work { alone_us: 50, concurrent_us: 100, cpi: Some((1, 3)) }.trace();
    let chosen = ChosenCalls::of(&trace, ["futex"]).expect("it has all calls");
    let analysis = analyze(&chosen, &Options::default()).unwrap();
    let d = diagnose(chosen.info(), &analysis, None);
    assert_eq!(d.verdict.class, Class::HardwareBandwidth);
    let paths: Vec<_> = d.ledger.nodes().iter().map(|n| n.path).collect();
    assert!(paths.contains(&"busy/application/stalled"), "{paths:?}");
    assert!(!paths.contains(&"busy/user"), "{paths:?}");
}

#[test]
fn very_short_and_very_long_stretches_say_nothing() {
    for (alone_us, concurrent_us) in [(5, 10), (2000, 4000)] {
        let (_, f) = judge(&Work { alone_us, concurrent_us, cpi: None }.trace(), None);
        assert!(
            f.ruled_out.as_ref().is_some_and(|r| r.contains("not judged")),
            "{alone_us}: {:?}",
            f.ruled_out
        );
        assert!(f.ruled_out.unwrap().contains("holdup record --counters"));
    }
}

/// Two threads that are busy all the time, or the same work done by one.
fn together(us: u64, threads: u16) -> MemTrace {
    let work = Work { alone_us: us, concurrent_us: us, cpi: None };
    let mut b = TraceBuilder::new(2).switch(0, 1, 0, 0, "R");
    for i in 0..threads {
        let tid = 71 + u32::from(i);
        b = b.task(tid, 70, None, &format!("worker-{i}")).switch(0, i, 0, tid, "R");
        let (next, end) = work.pieces(b, i, tid, 10 * US, us, None);
        b = next.switch(end, i, tid, 0, "S");
    }
    b.build()
}

#[test]
fn a_baseline_on_fewer_cpus_shows_it_where_all_are_always_busy() {
    let (d, f) = judge(&together(100, 2), None);
    assert_ne!(d.verdict.class, Class::HardwareBandwidth);
    assert!(f.ruled_out.unwrap().contains("not judged"));
    let (d, f) = judge(&together(100, 2), Some(&together(50, 1)));
    assert_eq!(d.verdict.class, Class::HardwareBandwidth, "{f:?}");
    assert!((45.0..52.0).contains(&f.share), "half of the time of both: {}", f.share);
    let (d, _) = judge(&together(52, 2), Some(&together(50, 1)));
    assert_ne!(d.verdict.class, Class::HardwareBandwidth);
    // As busy as the trace itself, so it is no baseline.
    let (_, f) = judge(&together(100, 2), Some(&together(50, 2)));
    assert!(f.ruled_out.unwrap().contains("not judged"));
}

/// Other work by other threads is not a slow machine.
#[test]
fn threads_are_compared_with_themselves() {
    let work = Work { alone_us: 50, concurrent_us: 100, cpi: None };
    let mut b = TraceBuilder::new(2)
        .task(71, 71, None, "setup")
        .task(72, 72, None, "a")
        .task(73, 73, None, "b");
    b = b.switch(0, 0, 0, 71, "R").switch(0, 1, 0, 0, "R");
    let (b, now) = work.pieces(b, 0, 71, 10 * US, 50, None);
    let b = b.switch(now, 0, 71, 72, "S").switch(now, 1, 0, 73, "R");
    let (b, end) = work.pieces(b, 0, 72, now, 100, None);
    let (b, end2) = work.pieces(b, 1, 73, now, 100, None);
    let (d, f) = judge(&b.switch(end, 0, 72, 0, "S").switch(end2, 1, 73, 0, "S").build(), None);
    assert_ne!(d.verdict.class, Class::HardwareBandwidth);
    assert!(f.ruled_out.unwrap().contains("not judged"));
}

/// Two threads that run 1.9 of every 2 ms, alone at first and then together, read at every switch.
/// `cpi`: cycles per instruction alone and under concurrency.
fn read_at_switches(cpi: (u64, u64)) -> MemTrace {
    const MS: u64 = 1000 * US;
    let mut b = TraceBuilder::new(2)
        .task(71, 70, None, "worker-0")
        .task(72, 70, None, "worker-1")
        .records("", "cycles:u");
    let (mut cycles, mut instructions) = ([0; 2], [0; 2]);
    for turn in 0..200 {
        for cpu in [0, 1_u16].into_iter().filter(|&cpu| cpu == 0 || turn >= 100) {
            let (tid, i) = (71 + u32::from(cpu), usize::from(cpu));
            let (from, to) = (turn * 2 * MS, turn * 2 * MS + 1900 * US);
            let at = |cycles: &[u64; 2], instructions: &[u64; 2]| {
                [("cycles:u", cycles[i]), ("instructions:u", instructions[i])]
            };
            b = b
                .readings(from, cpu, 0, &at(&cycles, &instructions))
                .switch(from, cpu, 0, tid, "R");
            cycles[i] += 3_000_000;
            instructions[i] += 3_000_000 / if turn < 100 { cpi.0 } else { cpi.1 };
            b = b.readings(to, cpu, tid, &at(&cycles, &instructions)).switch(to, cpu, tid, 0, "S");
        }
        if turn < 100 {
            b = b.switch(turn * 2 * MS, 1, 0, 0, "R");
        }
    }
    b.build()
}

#[test]
fn counters_read_at_every_switch_tell_it_too() {
    let trace = read_at_switches((1, 3));
    let (d, f) = judge(&trace, None);
    let slower = evidence(&f, "cycles per instruction with many");
    assert!((195.0..201.0).contains(&slower), "{slower}");
    assert_eq!(f.ruled_out, None, "{f:?}");
    assert_eq!(f.culprits[0].name, "worker-0");
    let user = d.ledger.ns(holdup_attribution::Leaf::UserStalled);
    assert!((125_000_000..=129_000_000).contains(&user), "two thirds of 190 ms: {user}");
    assert_eq!(d.ledger.leaves().map(|l| l.1).sum::<u64>(), d.ledger.capacity_ns);
    let (_, f) = judge(&read_at_switches((2, 2)), None);
    assert!(f.ruled_out.is_some_and(|why| why.contains("0 % longer")));
}

/// A hand-made run of perf stat that kept this many CPUs busy.
fn run(cpus: f64, cycles_per_instruction: f64) -> Measured {
    let text = format!(
        "{{\"counter-value\" : \"1000.0\", \"unit\" : \"msec\", \"event\" : \"task-clock\", \
         \"event-runtime\" : 1000000000, \"pcnt-running\" : 100.00, \
         \"metric-value\" : {cpus:.6}, \"metric-unit\" : \"CPUs utilized\"}}\n\
         {{\"counter-value\" : \"{:.6}\", \"unit\" : \"\", \"event\" : \"cycles:u\", \
         \"event-runtime\" : 500000000, \"pcnt-running\" : 50.00}}\n\
         {{\"counter-value\" : \"1000000000.000000\", \"unit\" : \"\", \
         \"event\" : \"instructions:u\", \"event-runtime\" : 500000000, \
         \"pcnt-running\" : 50.00}}\n\
         {{\"counter-value\" : \"20000000.0\", \"unit\" : \"\", \"event\" : \"cache-misses:u\", \
         \"event-runtime\" : 500000000, \"pcnt-running\" : 50.00}}\n\
         {{\"counter-value\" : \"<not supported>\", \"unit\" : \"\", \
         \"event\" : \"stalled-cycles-backend:u\", \"event-runtime\" : 0, \
         \"pcnt-running\" : 100.00}}\n",
        cycles_per_instruction * 1e9
    );
    let stat = holdup_counters::stat::parse(text.as_bytes()).unwrap();
    Measured { path: format!("{cpus}.json"), cpus: None, stat }
}

fn judge_measured(trace: &MemTrace, measured: &[Measured]) -> (Diagnosis, Finding) {
    let judged =
        phases::read(trace, &Options::default(), &Thresholds::default(), Wanted::default())
            .unwrap();
    let extras = Extras { measured, ..Extras::default() };
    let d = diagnose_with_extras(trace.info(), &judged, extras, Thresholds::default());
    let f = d.findings.iter().find(|f| f.class == Class::HardwareBandwidth).unwrap().clone();
    (d, f)
}

#[test]
fn runs_of_perf_stat_tell_it_of_a_trace_that_keeps_as_many_cpus_busy() {
    let trace = together(100, 2);
    let (d, f) = judge_measured(&trace, &[run(1.0, 1.0), run(2.0, 2.5)]);
    assert_eq!(d.verdict.class, Class::HardwareBandwidth, "{f:?}");
    assert!((55.0..=61.0).contains(&f.share), "1.5 of 2.5 cycles: {}", f.share);
    assert_eq!(d.ledger.leaves().map(|l| l.1).sum::<u64>(), d.ledger.capacity_ns);
    assert!((evidence(&f, "instructions per cycle, 2.0 CPUs busy") - 0.4).abs() < 1e-9);
    assert!((evidence(&f, "cache misses per 1000") - 20.0).abs() < 1e-9);
    // 20 million lines of 64 bytes in half a second: 1 s of task-clock on 2 CPUs.
    let traffic = evidence(&f, "memory traffic, estimated");
    assert!((traffic - 2.56).abs() < 1e-9, "{traffic}");
    assert!((evidence(&f, "part of the time in which the counters counted") - 50.0).abs() < 1e-9);
    let stalled = f.evidence.iter().find(|e| e.metric.starts_with("stalled-cycles-backend"));
    let stalled = stalled.expect("what could not be counted is said");
    assert_eq!(stalled.value, None);
    assert!(stalled.metric.contains("not supported by this machine's PMU"), "{}", stalled.metric);
    // The same cycles under concurrency.
    let (d, _) = judge_measured(&trace, &[run(1.0, 2.0), run(2.0, 2.1)]);
    assert_ne!(d.verdict.class, Class::HardwareBandwidth);
}

#[test]
fn runs_of_another_concurrency_are_a_lead_and_divide_no_ledger() {
    let (d, f) = judge_measured(&together(100, 2), &[run(1.0, 1.0), run(16.0, 2.5)]);
    assert_ne!(d.verdict.class, Class::HardwareBandwidth, "{f:?}");
    assert!(f.ruled_out.as_ref().is_some_and(|why| why.contains("only a suspicion")), "{f:?}");
    assert_eq!(f.lost_cpu_ns, 0);
    assert_eq!(d.leads.len(), 1);
    // A single run cannot be compared.
    let (_, f) = judge_measured(&together(100, 2), &[run(2.0, 2.5)]);
    assert!(f.ruled_out.as_ref().is_some_and(|why| why.contains("FEWER=FILE")), "{f:?}");
}

//! Call chains printed with events, and their names.

use holdup_ftracetext::{TextOptions, TextTrace, open_stream};
use holdup_trace::{Batch, Event, QualityCode, Reader, What, merge};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;

fn open(text: &str) -> TextTrace {
    open_stream(Path::new("-"), text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Each event that is no chain itself, with its chain: `switch: schedule [kernel]`.
fn chains(t: &TextTrace) -> Vec<String> {
    let names = &t.info().names;
    let mut found = Vec::new();
    merge::drive(t, 1, &mut |events: &[Event], batch: &Batch| {
        let mut before = None;
        for e in events {
            let (word, of) = match e.what {
                What::Stack { of } => {
                    before = Some(of);
                    continue;
                }
                What::Switch { .. } => ("switch", before.take()),
                What::Waking { .. } => ("waking", before.take()),
                What::Sample { stack, .. } => ("sample", Some(stack)),
                What::ContentionBegin { stack, .. } => ("begin", Some(stack)),
                _ => continue,
            };
            let mut line = format!("{word}:");
            let of = of.unwrap_or(holdup_trace::StackRef::NONE);
            let frames = batch.stack(of).iter().zip(batch.frame_names(of));
            for (i, (address, name)) in frames.enumerate() {
                let whose = if i < of.in_kernel() { "k" } else { "u" };
                let (dso, function) = (names.get(name.dso), names.get(name.function));
                write!(line, " {whose}{address:x} {function} {dso};").unwrap();
            }
            found.push(line);
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    found
}

const PERF: &str = "\
prog    8 [000]    10.000001: sched:sched_switch: prev_comm=prog prev_pid=8 prev_prio=120 \
prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
\tffffffff81a20010 __schedule+0x10 ([kernel.kallsyms])
\tffffffff81a20110 small (inlined)
\tffffffff81a20110 schedule+0x10 ([kernel.kallsyms])
  core.c:12
\t            1377 a::work<void (*)(int)>+0x17 (/usr/bin/prog (deleted))
\t            13f5 [unknown] ([unknown])

        prog     8 [000]    10.000002: sched:sched_waking: comm=b pid=9 prio=120 target_cpu=000
prog    8     10.000003:     250000 cpu-clock:
\t            1377 a::work<void (*)(int)>+0x17 (/usr/bin/prog (deleted))

prog    8 [000]    10.000004: lock:contention_begin: 0xffff888000000100 (flags=SPIN)
\tffffffff81a20110 schedule+0x10 ([kernel.kallsyms])

";

#[test]
fn frames_of_perf_belong_to_the_event_above_them() {
    let t = open(PERF);
    assert!(t.info().capabilities.stacks);
    assert_eq!(t.quality().count(QualityCode::UnreadableLines), 0);
    let work = "u1377 a::work<void (*)(int)> /usr/bin/prog (deleted);";
    let schedule = "kffffffff81a20110 schedule [kernel.kallsyms];";
    let inner = "kffffffff81a20010 __schedule [kernel.kallsyms];";
    let wanted = [
        format!("switch: {inner} {schedule} {work} u13f5  ;"),
        "waking:".to_owned(),
        format!("sample: {work}"),
        format!("begin: {schedule}"),
    ];
    assert_eq!(chains(&t), wanted);
}

#[test]
fn however_the_text_is_cut_into_runs_the_chains_are_the_same() {
    let whole = chains(&open(PERF));
    for run_bytes in [1, 30, 100, 300] {
        let options = TextOptions { run_bytes, ..TextOptions::default() };
        let t = options.open_stream(Path::new("-"), PERF.as_bytes()).unwrap();
        assert_eq!(chains(&t), whole, "{run_bytes}");
    }
}

#[test]
fn text_in_no_order_keeps_its_chains() {
    let n = 9_000u64;
    let mut text = String::new();
    for i in 0..n {
        // Every time occurs once, in random order.
        let t = (i * 7919 + 13) % n + 1_000_000;
        writeln!(text, "prog    8 [000] {}.{:06}: cpu-clock:", t / 1_000_000, t % 1_000_000)
            .unwrap();
        writeln!(text, "\t  {t:x} f{t}+0x1 (/x)\n").unwrap();
        // Aligned, as perf prints events without chain.
        writeln!(
            text,
            "            prog     8 [000] {}.{:06}: sched:sched_waking: comm=b pid=9 prio=120 \
             target_cpu=000",
            t / 1_000_000,
            t % 1_000_000
        )
        .unwrap();
    }
    let t = open(&text);
    assert!(t.runs().len() < 4096, "sorted by place");
    let mut wanted = Vec::new();
    for t in 1_000_000..1_000_000 + n {
        wanted.extend([format!("sample: u{t:x} f{t} /x;"), "waking:".to_owned()]);
    }
    assert_eq!(chains(&t), wanted);
}

#[test]
fn a_sample_without_chain_has_the_address_beside_it() {
    let t = open("prog 8 [000] 10.000001: cpu-clock:  ffffffff81a20010 idle+0x10 ([kernel])\n");
    assert_eq!(chains(&t), ["sample: kffffffff81a20010 idle [kernel];"]);
    assert!(!t.info().capabilities.stacks);
}

const SWITCH: &str = "sched_switch: prev_comm=prog prev_pid=8 prev_prio=120 prev_state=S ==> \
    next_comm=swapper/0 next_pid=0 next_prio=120";

#[test]
fn stacks_of_ftrace_belong_to_the_event_of_their_thread_on_their_cpu() {
    let text = format!(
        "# tracer: nop\n\
         \x20           prog-8       [000] d..2.    10.000001: {SWITCH}\n\
         \x20          other-9       [001] d..2.    10.000002: sched_waking: comm=b pid=9 prio=120 \
         target_cpu=000\n\
         \x20           prog-8       [000] d..2.    10.000003: <stack trace>\n\
         \x20=> trace_event_raw_event_sched_switch\n\
         \x20=> __traceiter_sched_switch+0x10/0x20 <ffffffff81000010>\n\
         \x20=> __schedule+0x10/0x200 [core] <ffffffff81a20010>\n\
         \x20=> schedule\n\
         \x20           prog-8       [000] d..2.    10.000004: <user stack trace>\n\
         \x20=> /usr/lib/libc.so.6[+0x98531] <00007f1200000010>\n\
         \x20=> ??\n\
         \x20         other-9       [001] d..2.    10.000005: <stack trace>\n\
         \x20=> try_to_wake_up\n\
         \x20         other-9       [001] d..2.    10.000006: sched_waking: comm=b pid=9 prio=120 \
         target_cpu=000\n\
         \x20         other-7       [001] d..2.    10.000007: <stack trace>\n\
         \x20=> of_another_thread\n"
    );
    let t = open(&text);
    assert!(t.info().capabilities.stacks);
    let wanted = [
        "switch: kffffffff81a20010 __schedule [core]; k0 schedule ; \
         u7f1200000010  /usr/lib/libc.so.6;",
        "waking: k0 try_to_wake_up ;",
        "waking:",
    ];
    assert_eq!(chains(&t), wanted);
    assert_eq!(t.event_count(), 7, "stacks are events, as in the kernel's own count");
}

#[test]
fn stacks_of_trace_cmd_are_the_same() {
    let text = format!(
        "cpus=2\n\
         \x20           prog-8     [000]    10.000001: {SWITCH}\n\
         \x20           prog-8     [000]    10.000003: kernel_stack:         <stack trace >\n\
         => trace_event_raw_event_sched_switch (ffffffff81000010)\n\
         => __schedule (ffffffff81a20010)\n\
         => ffffffff81a20110\n\
         \x20           prog-8     [000]    10.000004: user_stack:           \t=> 0x7f1200000010\n\
         \t=> 0x7f1200000020\n\
         \t=> 0x0\n"
    );
    let wanted = "switch: kffffffff81a20010 __schedule ; kffffffff81a20110  ; u7f1200000010  ; \
                  u7f1200000020  ;";
    assert_eq!(chains(&open(&text)), [wanted]);
}

#[test]
fn hostile_chains_neither_hang_nor_fill_the_memory() {
    // A chain longer than any, and stacks that none of many events have.
    let mut text = "prog 8 [000] 10.000001: cpu-clock:\n".to_owned();
    for i in 0..70_000 {
        writeln!(text, "\t{i:x} f (/x)").unwrap();
    }
    let found = chains(&open(&text));
    assert_eq!(found[0].matches(';').count(), 65_535);
    let mut text = String::new();
    for i in 0..20_000 {
        writeln!(text, "            prog-8     [000] d..2.    10.{i:06}: {SWITCH}").unwrap();
        writeln!(text, "            prog-8     [00{}] d..2.    10.{i:06}: x: y", 1 + i % 9)
            .unwrap();
    }
    writeln!(text, " => f").unwrap();
    assert_eq!(chains(&open(&text)).len(), 20_000);
}

//! For any bytes, the reader neither panics nor hangs, and keeps its promises.

use holdup_ftracetext::{TextOptions, sniff};
use holdup_trace::{Batch, EventId, Reader};
use proptest::prelude::*;
use std::path::Path;

/// One line or more of every dialect.
const SEEDS: &[&str] = &[
    "# tracer: nop\n#\n# entries-in-buffer/entries-written: 9/12   #P:8\n\
        \x20         <idle>-0       [004] d..2.   274.804075: sched_switch: prev_comm=swapper/4 \
        prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=sh next_pid=1807 next_prio=120\n\
        \x20             sh-196     [003] .....   274.802006: sys_enter: NR 33 (b, 1, 14af750, \
        2fdc, 7, 14ba910)\nCPU:3 [LOST 12 EVENTS]\n\
        \x20             sh-196     [003] .....   274.802014: sys_exit: NR 33 = -1\n\
        ##### CPU 2 buffer started ####\n\
        \x20    kworker/6:1-73      [006] .....   275.100295: workqueue_execute_start: work \
        struct 00000000189c3687: function vmstat_update\n",
    "ksoftirqd/1-15    (   15) [001] d.s4 69739.347249: sched_wakeup: comm=rcu_preempt pid=10 \
        prio=120 success=1 target_cpu=001\n\
        \x20          <...>-4083  (-----) [004] ....   395.705679: sys_ioctl(fd: ff, cmd: 5410, \
        arg: 7ffe0babe8fc)\n           <...>-4083  [004] ....   395.705681: sys_ioctl -> 0x0\n",
    "version = 7\nCPU 1 is empty\ncpus=8\n\
        \x20    rcu_preempt-15    [003]    92.788579: sched_switch:         rcu_preempt:15 [120] \
        W ==> swapper/3:0 [120]\n\
        \x20         <idle>-0     [003]    92.788415: sched_wakeup:         rcu_preempt:15 [120] \
        CPU:003\n              wl-942   [001]   145.890079: sys_enter:             id=59 \
        args=ARRAY[c0, 14, 09, 20, fd, 7f, 00, 00]\n\
        \x20             wl-439   [000]    53.346038: lock_acquire:         0xff11000005a74c50 \
        try read &vma->vm_lock->lock\n",
    "cpus=4\ntrace-cm-940     2d.h2.   145.891532: sched_stat_runtime:   comm=trace-cmd pid=940 \
        runtime=9199382 [ns] vruntime=42 [ns]\n\
        \x20             wl-1958  [006]770227493960: sys_exit:             NR 1 = 1\n",
    "# ========\n# captured on    : Sat\n# nrcpus online : 4\n\
        \x20           perf   292 [000]    28.914036:          sched:sched_migrate_task: \
        comm=perf pid=292 prio=120 orig_cpu=0 dest_cpu=1\n\
        wl     7/8     [003] 36556.170909: lock:contention_begin: 0xff11 (flags=SPIN)\n\
        \tffffffff81000010 foo+0x10 ([kernel.kallsyms])\n\n\
        perf 83220/83220 36556.170907:          1 cycles: \n\
        \tffffffffa4c7c5c6 native_write_msr+0x6 ([kernel.kallsyms])\n\n",
    "<!DOCTYPE html>\n<script class=\"trace-data\" type=\"application/text\">\n# tracer: nop\n\
        \x20     sh-1 [000] .... 1.000000: cpu_idle: state=4294967295 cpu_id=0\n</script>\n",
    "<html><script>var linuxPerfData = \"\\\n# tracer: nop\\n\\\n a-1 [000] 1.0: x: y\\n\\\n\";\n\
        </script>",
];

/// Open, decode everything, and check the promises.
fn read(bytes: &[u8], run_bytes: usize) {
    let _ = sniff(bytes);
    let options = TextOptions { run_bytes, ..TextOptions::default() };
    let Ok(trace) = options.open_stream(Path::new("-"), bytes) else { return };
    let info = trace.info();
    let mut counted = 0;
    let mut batch = Batch::new();
    for (run, start) in trace.runs().iter().enumerate() {
        let mut decoder = trace.decoder(run);
        let mut last = start.first_ts;
        let mut more = true;
        while more {
            batch.clear();
            more = decoder.fill(&mut batch).expect("memory can be read");
            assert!(!more || !batch.events.is_empty(), "a decoder that has more gives some");
            for e in &batch.events {
                assert!(e.ts >= last, "run {run}: {} after {last}", e.ts);
                last = e.ts;
                if e.id != EventId::SIDEBAND {
                    counted += 1;
                    assert!((e.id.0 as usize) < info.events.len());
                    let (first, end) = info.span.expect("events have a span");
                    assert!((first..=end).contains(&e.ts));
                }
            }
        }
    }
    assert_eq!(counted, trace.event_count());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..2000), run in 1usize..500) {
        read(&bytes, run);
    }

    #[test]
    fn arbitrary_text(text in "([ -~]{0,40}(: |\\[[0-9]{1,3}\\] |[0-9]{1,3}\\.[0-9]{6}: \
        |-[0-9]{1,5} |\t|\n)){0,40}", run in 1usize..500) {
        read(text.as_bytes(), run);
        read(format!("# tracer: nop\n{text}").as_bytes(), run);
        read(format!("# captured on: x\n{text}").as_bytes(), run);
    }

    #[test]
    fn truncated(seed in 0..SEEDS.len(), at in any::<prop::sample::Index>(), run in 1usize..500) {
        let text = SEEDS[seed].as_bytes();
        read(&text[..at.index(text.len() + 1)], run);
        read(&text[at.index(text.len() + 1)..], run);
    }

    #[test]
    fn flipped(
        seed in 0..SEEDS.len(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        run in 1usize..500,
    ) {
        let mut text = SEEDS[seed].as_bytes().to_vec();
        for (at, byte) in flips {
            let at = at.index(text.len());
            text[at] = byte;
        }
        read(&text, run);
    }

    #[test]
    fn shuffled_lines(
        lines in prop::collection::vec((0..SEEDS.len(), any::<prop::sample::Index>()), 0..200),
        run in 1usize..2000,
    ) {
        let text: String = lines.into_iter().map(|(seed, at)| {
            let lines: Vec<&str> = SEEDS[seed].split_inclusive('\n').collect();
            lines[at.index(lines.len())].to_owned()
        }).collect();
        read(text.as_bytes(), run);
    }
}

#[test]
fn the_seeds_themselves() {
    for seed in SEEDS {
        for run in [1, 100, 1 << 20] {
            read(seed.as_bytes(), run);
        }
        assert!(
            TextOptions::default().open_stream(Path::new("-"), seed.as_bytes()).is_ok(),
            "{seed}"
        );
    }
}

#[test]
fn lines_without_end() {
    let mut text = SEEDS[0].as_bytes().to_vec();
    text.extend(vec![b':'; 3 << 20]);
    text.extend(b"\n");
    text.extend(SEEDS[0].as_bytes());
    read(&text, 4 << 20);
    read(&text, 100_000);
}

//! `sched_waking`: whether an interrupt or the current thread wakes, by the flags of each record.

use holdup_trace::{Batch, LocalNames, Names, What};
use holdup_tracepoint::{Abi, Format, Little, Plan};

const FORMAT: &str = "name: sched_waking\nID: 78\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
    \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\
    \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\n\
    print fmt: \"%d\", REC->pid\n";

/// What the format says of a waking with these flags.
fn in_irq(format: &str, flags: u8) -> bool {
    let format = Format::parse(format, "sched").unwrap();
    let plan = Plan::compile(&format, Abi { long_size: 8 });
    let (mut names, mut batch) = (LocalNames::new(Names::new()), Batch::new());
    let mut record = [0; 36];
    (record[0], record[2], record[24]) = (78, flags, 9);
    match plan.decode::<Little>(&record, &mut names, &mut batch) {
        Some(What::Waking { tid, in_irq, .. }) if tid.0 == 9 => in_irq,
        other => panic!("{other:?}"),
    }
}

#[test]
fn interrupts_are_told_from_threads_and_softirqs() {
    for (flags, expected) in [
        (0x00, false), // a thread
        (0x01, false), // with interrupts off
        (0x35, false), // a softirq
        (0x09, true),  // an interrupt
        (0x1d, true),  // an interrupt on top of a softirq
        (0x41, true),  // an NMI
    ] {
        assert_eq!(in_irq(FORMAT, flags), expected, "{flags:#x}");
    }
}

#[test]
fn a_format_without_flags_says_nothing() {
    assert!(!in_irq(&FORMAT.replace("common_flags", "common_other"), 0x09));
}

//! A trace.dat of a latency tracer: text inside a binary file, read as one trace.

use holdup_trace::{Batch, What, merge};
use std::ops::ControlFlow;

const TEXT: &str = "\
# tracer: irqsoff
#
# irqsoff latency trace v1.1.5 on 6.1.0
# --------------------------------------------------------------------
# latency: 259 us, #4/4, CPU#2 | (M:server VP:0, KP:0, SP:0 HP:0 #P:4)
#                    _------=> CPU#
#  cmd     pid     |||||| time  |   caller
      ps-6143      2d....     0us!: trace_hardirqs_off <-__lock_task_sighand
      ps-6143      2d..2.   200us : sched_switch: prev_comm=ps prev_pid=6143 prev_prio=120 \
    prev_state=S ==> next_comm=ksoftirqd/2 next_pid=25 next_prio=120
ksoftirq-25        2d..2.   230us+: sched_switch: prev_comm=ksoftirqd/2 prev_pid=25 prev_prio=120 \
    prev_state=S ==> next_comm=ps next_pid=6143 next_prio=120
";

/// Version 6 with no formats, no symbols, one saved command line and the kernel's name.
fn file(text: &str) -> Vec<u8> {
    let mut out = b"\x17\x08\x44tracing6\0\0\x08\0\x10\0\0".to_vec();
    for name in ["header_page", "header_event"] {
        out.extend(name.bytes().chain([0; 9]));
    }
    // ftrace's events, systems, kallsyms, printk formats: none.
    out.extend([0; 16]);
    let comms = b"25 ksoftirqd/2\n";
    out.extend((comms.len() as u64).to_le_bytes());
    out.extend(comms);
    out.extend(8u32.to_le_bytes());
    out.extend(b"options  \0\x05\0");
    let uname = b"Linux box 6.1.0 x86_64";
    out.extend((uname.len() as u32).to_le_bytes());
    out.extend(uname);
    out.extend(b"\0\0latency  \0");
    out.extend(text.bytes());
    out
}

#[test]
fn the_text_is_read_and_the_file_tells_the_machine() {
    let [plain, packed] =
        [file(TEXT), zstd::encode_all(file(TEXT).as_slice(), 1).unwrap()].map(|bytes| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), bytes).unwrap();
            file
        });
    for path in [plain.path(), packed.path()] {
        let reader = holdup_open::open(path).unwrap();
        let info = reader.info();
        assert!(
            info.format.starts_with("trace.dat v6, text of a latency tracer"),
            "{}",
            info.format
        );
        assert_eq!(
            (info.hostname.as_deref(), info.arch.as_deref(), info.cpus_online),
            (Some("box"), Some("x86_64"), Some(4))
        );
        assert_eq!(info.tasks.len(), 1);
        assert!(info.extra[0].1.contains("17 08 44"), "{:?}", info.extra[0]);
        let mut switches = 0;
        let quality =
            merge::drive(&*reader, 1, &mut |events: &[holdup_trace::Event], _: &Batch| {
                switches += events.iter().filter(|e| matches!(e.what, What::Switch { .. })).count();
                ControlFlow::Continue(())
            });
        assert_eq!(
            (switches, quality.unwrap().entries().len()),
            (2, 1),
            "microseconds, nothing else"
        );
    }
}

#[test]
fn a_text_that_is_none_is_refused() {
    let file_ = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file_.path(), file("")).unwrap();
    assert!(holdup_open::open(file_.path()).err().unwrap().to_string().contains("text trace"));
}

//! Traces of recorders other than today's LTTng: `perf data convert --to-ctf`, programs that
//! separate CPUs only by file, LTTng up to 2.5.

use holdup_ctf::CtfTrace;
use holdup_trace::{Calls, Pid, Reader, Tid, What};
use std::path::Path;

const TYPES: &str = "\
/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
trace { major = 1; minor = 8; byte_order = le;
 packet.header := struct { uint32_t magic; uint32_t stream_id; }; };
clock { name = mono; freq = 1000000000; offset_s = 0; offset = 0; };
typealias integer { size = 64; align = 8; signed = false; map = clock.mono.value; } := ts_t;
";

/// A metadata file: the packet context with its CPU, and the events with their fields.
fn metadata(tracer: &str, context: &str, events: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!(
        "{TYPES}{tracer}stream {{ id = 0;
 packet.context := struct {{ uint64_t content_size; uint64_t packet_size; {context} }};
 event.header := struct {{ uint32_t id; ts_t timestamp; }}; }};\n"
    );
    for (id, (name, fields)) in events.iter().enumerate() {
        text += &format!(
            "event {{ id = {id}; name = \"{name}\"; stream_id = 0; \
             fields := struct {{ {fields} }}; }};\n"
        );
    }
    text.into_bytes()
}

/// A packet: its context after the sizes, and the events.
fn packet(context: &[u8], events: &[(u32, u64, Vec<u8>)]) -> Vec<u8> {
    let mut body = context.to_vec();
    for (id, ts, fields) in events {
        body.extend(id.to_le_bytes());
        body.extend(ts.to_le_bytes());
        body.extend(fields);
    }
    let bits = (24 + body.len() as u64) * 8;
    let head = [0xc1fc_1fc1u32.to_le_bytes(), 0u32.to_le_bytes()].concat();
    [head, bits.to_le_bytes().repeat(2), body].concat()
}

fn words(of: &[u32]) -> Vec<u8> {
    of.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn open(files: Vec<(&str, Vec<u8>)>) -> CtfTrace {
    let files = files.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
    holdup_ctf::open_files(Path::new("x"), files).unwrap()
}

const SWITCH: &str = "uint32_t prev_pid; uint32_t next_pid; uint64_t prev_state;";

fn switch(prev: u32, next: u32) -> Vec<u8> {
    [words(&[prev, next]), 1u64.to_le_bytes().to_vec()].concat()
}

#[test]
fn perf_data_convert_says_cpu_and_thread_with_each_event() {
    let own = "uint32_t perf_cpu; uint32_t perf_tid; uint32_t perf_pid;";
    let fields = format!("{own} {SWITCH}");
    let events = [("sched:sched_switch", fields.as_str()), ("sched:other", own)];
    let of = |cpu, tid| words(&[cpu, tid, 5]);
    let stream = packet(
        &[],
        &[
            (0, 10, [of(3, 7), switch(7, 0)].concat()),
            (1, 11, of(1, 9)),
            (0, 12, [of(3, 0), switch(0, 8)].concat()),
        ],
    );
    let trace = open(vec![("metadata", metadata("", "", &events)), ("s", stream)]);
    let (seen, _) = crate::support::events(&trace, |e| (e.cpu.0, e.tid, e.pid));
    assert_eq!(seen, [(3, Tid(7), Pid(5)), (1, Tid(9), Pid(5)), (3, Tid(0), Pid(5))]);
    assert!(trace.info().capabilities.switches);
}

#[test]
fn streams_that_do_not_say_their_cpu_are_merged_by_time() {
    let events = [("sched:sched_switch", SWITCH)];
    let stream = |s: u32| {
        let at = |k: u64| (0, 100 + 2 * k + u64::from(s), switch(s, s + 10));
        packet(&[], &(0..50).map(at).collect::<Vec<_>>())
    };
    let files = vec![("metadata", metadata("", "", &events)), ("a", stream(0)), ("b", stream(1))];
    let (times, quality) = crate::support::events(&open(files), |e| e.ts);
    assert_eq!(times, (100..200).collect::<Vec<_>>());
    assert!(quality.is_empty(), "{quality:?}");
}

#[test]
fn lttng_up_to_2_5_names_calls_and_softirqs_otherwise() {
    let events = [
        ("sys_read", "uint64_t fd; uint64_t buf; uint64_t count;"),
        ("exit_syscall", "int64_t ret;"),
        ("softirq_entry", "uint32_t vec;"),
        ("softirq_exit", "uint32_t vec;"),
        ("sys_getpid", ""),
    ];
    let tracer = "env { domain = \"kernel\"; tracer_name = \"lttng-modules\"; };\n";
    let read: Vec<u8> = [3u64, 0x1000, 64].iter().flat_map(|n| n.to_le_bytes()).collect();
    let stream = packet(
        &words(&[2]),
        &[
            (0, 10, read),
            (2, 11, words(&[3])),
            (3, 12, words(&[3])),
            (1, 13, 64i64.to_le_bytes().to_vec()),
        ],
    );
    let empty = packet(&words(&[0]), &[]);
    let metadata = metadata(tracer, "uint32_t cpu_id;", &events);
    let trace = open(vec![("metadata", metadata), ("c_0", empty), ("c_2", stream)]);
    let caps = &trace.info().capabilities;
    assert_eq!((&caps.syscalls, caps.softirqs), (&Calls::All, true));
    let (seen, _) = crate::support::events(&trace, |e| e.what);
    assert!(matches!(seen[0], What::SysEnter { nr: 0, .. }), "{:?}", seen[0]);
    assert!(matches!(seen[3], What::SysExit { ret: 64, .. }), "{:?}", seen[3]);
    assert_eq!(trace.info().cpus_online, Some(2), "one of them without an event");
}

#[test]
fn cpus_with_empty_packets_only_are_cpus_in_user_space_too() {
    let tracer = "env { domain = \"ust\"; tracer_name = \"lttng-ust\"; };\n";
    let metadata = metadata(tracer, "uint32_t cpu_id;", &[("app:event", "uint32_t n;")]);
    let one = packet(&words(&[1]), &[(0, 10, words(&[1]))]);
    let files = vec![("metadata", metadata), ("c_0", packet(&words(&[0]), &[])), ("c_1", one)];
    assert_eq!(open(files).info().cpus_online, Some(2));
}

#[test]
fn ctf_2_in_packets_is_refused_with_the_way_to_convert_it() {
    let json = b"\x1e{\"type\":\"preamble\",\"version\":2}";
    let mut bytes = 0x75d1_1d57u32.to_le_bytes().to_vec();
    bytes.extend([0; 20]);
    let bits = (37 + json.len() as u32) * 8;
    bytes.extend([bits.to_le_bytes(), bits.to_le_bytes()].concat());
    bytes.extend([0, 0, 0, 2, 0]);
    bytes.extend(json);
    let files = vec![("metadata".to_owned(), bytes)];
    let error = holdup_ctf::open_files(Path::new("x"), files).err().expect("refused").to_string();
    assert!(error.contains("CTF 2") && error.contains("babeltrace2 convert"), "{error}");
}

#[test]
fn a_trace_may_do_without_streams_and_packets() {
    let text = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = be; };
env { version = +3; };
event { name = \"ev\"; fields := struct { string s; }; };";
    let stream = b"hello\0how are you?\0".to_vec();
    let trace = open(vec![("metadata", text.as_bytes().to_vec()), ("stream", stream)]);
    let (seen, quality) = crate::support::events(&trace, |e| e.ts);
    assert_eq!((seen.len(), quality.is_empty()), (2, true), "{quality:?}");
}

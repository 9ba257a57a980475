//! Traces read as babeltrace2 reads them: the sequence of (time, CPU, event), and every field that
//! holdup understands.

mod support;

use holdup_testkit::{corpus, needs};
use holdup_trace::{QualityCode, Reader};
use std::path::Path;

#[needs(babeltrace2, corpus)]
#[test]
fn other_peoples_traces_read_as_babeltrace_reads_them() {
    let folder = corpus().join("public/efficios+babeltrace/tests/data/ctf-traces");
    for (name, wanted) in [
        ("lttng-tracefile-rotation", 12_305),
        ("trace-with-index", 4_000),
        ("lttng-crash", 400),
        ("multi-domains", 4_272),
    ] {
        let path = folder.join("succeed").join(name);
        let trace = holdup_ctf::open(&path).unwrap();
        let theirs = support::babeltrace(&path).unwrap();
        let (events, fields) =
            support::compare(&trace, theirs).unwrap_or_else(|e| panic!("{name}: {e}"));
        println!("{name}: {events} events, {fields} fields");
        assert_eq!(events, wanted, "{name}");
    }
}

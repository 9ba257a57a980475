//! Traces read as babeltrace2 reads them: the sequence of (time, CPU, event), and every field that
//! holdup understands.

use crate::support::writer::{SPECS, sample};
use holdup_testkit::{corpus, needs};
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
        let theirs = crate::support::babeltrace(&path).unwrap();
        let (events, fields) =
            crate::support::compare(&trace, theirs).unwrap_or_else(|e| panic!("{name}: {e}"));
        println!("{name}: {events} events, {fields} fields");
        assert_eq!(events, wanted, "{name}");
    }
}

#[needs(babeltrace2)]
#[test]
fn traces_of_every_layout_read_as_babeltrace_reads_them() {
    for spec in SPECS {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in sample(spec) {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        let trace = holdup_ctf::open(dir.path()).unwrap();
        let theirs = crate::support::babeltrace(dir.path()).unwrap();
        let (events, fields) =
            crate::support::compare(&trace, theirs).unwrap_or_else(|e| panic!("{spec:?}: {e}"));
        assert!(events == 21 && fields > 40, "{spec:?}: {events} {fields}");
    }
}

/// Babeltrace refuses it; so does this crate, and says where and why.
#[needs(corpus)]
#[test]
fn metadata_of_a_version_before_1_8_is_refused() {
    let folder = corpus().join("public/efficios+babeltrace/tests/data/ctf-traces");
    let error = holdup_ctf::open(&folder.join("fail/lttng-modules-2.0-pre1")).err().unwrap();
    let message = error.to_string();
    assert!(message.contains("metadata: byte 0x23"), "{message}");
    assert!(message.contains("expected version 1.8, found 116.121"), "{message}");
}

/// Recordings of LTTng itself, opened as the archives they are.
#[needs(babeltrace2)]
#[test]
fn recordings_of_lttng_read_as_babeltrace_reads_them() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/equivalence");
    for name in ["lttng_ser_semop_c4", "lttng_thr_mutex_c4"] {
        let packed = || {
            let file = std::fs::File::open(fixtures.join(name).join("lttng.tar.gz")).unwrap();
            flate2::read::GzDecoder::new(file)
        };
        let dir = tempfile::tempdir().unwrap();
        tar::Archive::new(packed()).unpack(dir.path()).unwrap();
        let trace = holdup_ctf::open_stream(Path::new(name), packed()).unwrap();
        let theirs = crate::support::babeltrace(dir.path()).unwrap();
        let (events, fields) =
            crate::support::compare(&trace, theirs).unwrap_or_else(|e| panic!("{name}: {e}"));
        println!("{name}: {events} events, {fields} fields");
        assert!(events > 5_000 && fields > 4_500, "{name}: {events} {fields}");
    }
}

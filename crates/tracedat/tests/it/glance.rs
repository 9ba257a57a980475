//! A look at some blocks of a trace.dat that is too long to be scanned whole.

use crate::support::writer::{BufferSpec, FileSpec};
use holdup_trace::{Presence, Reader, TraceInfo};
use holdup_tracedat::{glance, open};

/// Pages of one CPU: enough that most blocks are in no sample.
const PAGES: u64 = 4000;

/// A CPU with a wake-up on every page, and one system call in a place where no sample is taken.
fn long(version: u8, codec: &'static str, empty_at_the_end: usize) -> FileSpec {
    let mut s = FileSpec { codec, ..FileSpec::new(version) };
    let mut bytes = Vec::new();
    for i in 0..PAGES {
        let page = s.page(5_000_000_000 + i * 1000).wakeup(0, 7, 8);
        let page = if i == PAGES / 2 + 15 { page.sys_enter(1, 8, 202) } else { page };
        bytes.extend(page.build());
    }
    for _ in 0..empty_at_the_end {
        bytes.extend(s.page(6_000_000_000).build());
    }
    s.buffers.push(BufferSpec { name: "", cpus: vec![(0, bytes)] });
    s
}

#[test]
fn first_and_last_blocks_tell_the_span_and_samples_only_what_they_show() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.dat");
    for (version, codec) in [(6, "none"), (7, "none"), (7, "zstd")] {
        std::fs::write(&path, long(version, codec, 0).build()).unwrap();
        let (look, whole) = (glance(&path).unwrap().unwrap(), open(&path).unwrap());
        let which = format!("v{version} {codec}");
        assert_eq!(look.info.span, whole.info().span, "{which}");
        assert_eq!(look.info.span, Some((5_000_000_000, 5_000_000_000 + (PAGES - 1) * 1000)));
        let call = |info: &TraceInfo| {
            info.events.iter().find(|e| e.short_name() == "sys_enter").map(|e| e.presence)
        };
        assert!(look.info.capabilities.wakeups && whole.info().capabilities.wakeups, "{which}");
        assert_eq!(call(whole.info()), Some(Presence::Seen), "{which}");
        let asked_for = call(&look.info).unwrap();
        assert!(asked_for < Presence::Seen, "{which}: the call is in no sample");
        let estimate = look.estimated_events.unwrap();
        assert!(estimate.abs_diff(PAGES + 1) < PAGES / 20, "{which}: {estimate}");
        assert_eq!(look.info.tasks.len(), whole.info().tasks.len(), "{which}");
        let counted = look.info.extra.iter().any(|(label, _)| label == "events recorded");
        assert!(!counted, "{which}: {:?}", look.info.extra);
    }
}

#[test]
fn without_an_event_in_the_last_block_the_end_is_not_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.dat");
    std::fs::write(&path, long(6, "none", 200).build()).unwrap();
    assert_eq!(glance(&path).unwrap().unwrap().info.span, None);
    assert!(open(&path).unwrap().info().span.is_some());
}

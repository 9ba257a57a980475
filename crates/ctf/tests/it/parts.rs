//! The parts of a divided packet are packets again and hold the same events.

use crate::support::writer::{SPECS, sample};
use holdup_ctf::{Counts, RawKind, open_raw};
use holdup_testkit::needs;
use std::path::Path;

/// Divide every packet of the trace in `from` after every event that allows it; returns how many
/// packets there are.
fn divided(from: &Path, to: &Path) -> usize {
    let raw = open_raw(from, false).unwrap();
    let text = String::from_utf8(raw.folders[0].text.clone()).unwrap();
    // Metadata without packets must start with this signature.
    let text = text.trim_start_matches("/* CTF 1.8 */");
    std::fs::write(to.join("metadata"), format!("/* CTF 1.8 */{text}")).unwrap();
    let mut all = 0;
    for lane in 0..raw.cpus().count() {
        for stream in 0..raw.streams(lane) {
            let (mut out, mut counts, mut name) = (Vec::new(), Counts::default(), String::new());
            raw.each_packet(lane, stream, &mut |p| -> Result<(), ()> {
                assert!(p.is_divisible() && (p.events.is_empty() || p.may_begin(0)));
                name.clone_from(&raw.files[p.file].1);
                let mut put = |events, counts: &mut Counts| {
                    p.part(events, counts, &mut out);
                    counts.seq += 1;
                    all += 1;
                };
                counts.seq += p.gap.map_or(0, |g| g.packets);
                counts.discarded += p.gap.map_or(0, |g| g.events);
                // A loss before a packet dates from the packet's begin.
                put(0..0, &mut counts);
                let mut begin = 0;
                for end in 1..=p.events.len() {
                    if end == p.events.len() || p.may_begin(end) {
                        put(begin..end, &mut counts);
                        begin = end;
                    }
                }
                Ok(())
            })
            .unwrap();
            std::fs::write(to.join(name), out).unwrap();
        }
    }
    all
}

/// A trace of each layout, and the same trace divided.
fn each(mut check: impl FnMut(&Path, &Path, &str)) {
    for spec in SPECS {
        let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (name, bytes) in sample(spec) {
            std::fs::write(whole.path().join(name), bytes).unwrap();
        }
        let packets = divided(whole.path(), parts.path());
        assert!(packets > 10, "{spec:?}: {packets} packets");
        check(whole.path(), parts.path(), &format!("{spec:?}"));
    }
}

#[test]
fn packets_of_single_events_read_as_the_whole() {
    each(|whole, parts, spec| {
        let read = |path: &Path| crate::support::ours(&holdup_ctf::open(path).unwrap());
        let (whole, parts) = (read(whole), read(parts));
        assert_eq!(format!("{:?}", parts.0), format!("{:?}", whole.0), "{spec}");
        assert_eq!(parts.1, whole.1, "{spec}: what was lost");
    });
}

#[needs(babeltrace2)]
#[test]
fn babeltrace_reads_packets_of_single_events() {
    each(|_, parts, spec| {
        let theirs = crate::support::babeltrace(parts).unwrap();
        let trace = holdup_ctf::open(parts).unwrap();
        let (events, _) =
            crate::support::compare(&trace, theirs).unwrap_or_else(|e| panic!("{spec}: {e}"));
        assert_eq!(events, 21, "{spec}");
    });
}

#[test]
fn switches_losses_and_threads_of_the_beginning_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in sample(SPECS[1]) {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let raw = open_raw(folder.path(), false).unwrap();
    let mut kinds = Vec::new();
    for lane in 0..2 {
        raw.each_event(lane, &mut |_, cpu, kind| kinds.push((cpu.0, kind)));
    }
    let count = |cpu, kind| kinds.iter().filter(|k| **k == (cpu, kind)).count();
    assert_eq!((count(0, RawKind::Process), count(0, RawKind::Switch)), (2, 3));
    assert_eq!((count(1, RawKind::Lost), count(1, RawKind::Switch)), (1, 2));
}

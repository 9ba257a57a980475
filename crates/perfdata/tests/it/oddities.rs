//! Sound files that look damaged: what perf reads without complaint is no damage here either.

use crate::common::{Builder, Container, drain, open_bytes};
use holdup_trace::{Cpu, QualityCode, Reader};

fn some_switches(b: &mut Builder) {
    for i in 0..20 {
        b.switch(1000 + i, 0, 7, 8);
    }
}

/// perf before 3.7 named counters by records, and wrote only as many of the name's 64 bytes as it
/// needed.
#[test]
fn a_shortened_event_type_record_is_no_bad_record() {
    for big in [false, true] {
        let mut b = Builder::new(big);
        let body = [&b.u64(0)[..], b"cycles\0\0"].concat();
        b.push(65, 0, &body);
        some_switches(&mut b);
        let file = open_bytes(&b.build(Container::Pipe)).unwrap();
        let (events, quality) = drain(&file);
        assert!(quality.is_empty(), "{quality:?}");
        assert_eq!(events.len(), 20);
    }
}

/// `perf record -o - … > FILE 2>&1`.
#[test]
fn what_the_recorder_says_behind_the_data_is_no_truncation() {
    const SAYS: &[u8] = b"[ perf record: Woken up 1 times to write data ]\n\
        [ perf record: Captured and wrote 0.000 MB - ]\n";
    for big in [false, true] {
        let mut b = Builder::new(big);
        some_switches(&mut b);
        let bytes = [&b.build(Container::Pipe)[..], SAYS].concat();
        let (events, quality) = drain(&open_bytes(&bytes).unwrap());
        assert_eq!(events.len(), 20);
        assert_eq!(quality.count(QualityCode::Truncated), 0, "{quality:?}");
        assert_eq!(quality.count(QualityCode::TrailingBytes), SAYS.len() as u64);
    }
}

#[test]
fn a_few_zeros_behind_the_data_are_no_truncation_and_half_a_record_is() {
    let mut b = Builder::new(false);
    some_switches(&mut b);
    let whole = b.build(Container::Pipe);
    let count = |bytes: &[u8], code| drain(&open_bytes(bytes).unwrap()).1.count(code);
    let padded = [&whole[..], &[0]].concat();
    assert_eq!(count(&padded, QualityCode::Truncated), 0);
    assert_eq!(count(&padded, QualityCode::TrailingBytes), 1);
    for cut in [1, 5, 50, 100] {
        let cut = &whole[..whole.len() - cut];
        assert_eq!(count(cut, QualityCode::Truncated), 1);
        assert_eq!(count(cut, QualityCode::TrailingBytes), 0);
    }
}

/// Early Google perf used the numbers of later records for facts about the machine; its record type
/// 71 is not AUXTRACE followed by gigabytes.
#[test]
fn a_record_of_odd_size_has_no_payload_behind_it() {
    let mut b = Builder::new(false);
    let body = [&b.u32(64)[..], b"3.3.0", &[0; 59]].concat();
    b.push(71, 0, &body);
    some_switches(&mut b);
    let (events, _) = drain(&open_bytes(&b.build(Container::Pipe)).unwrap());
    assert_eq!(events.len(), 20);
}

/// A hardware trace that overflowed costs no event.
#[test]
fn a_loss_of_hardware_trace_is_no_loss_of_events() {
    let mut b = Builder::new(false);
    some_switches(&mut b);
    let aux = [b.u64(0), b.u64(4096), b.u64(1)].concat();
    b.side(11, 0, &aux, 1020, 0, 7);
    // PERF_RECORD_AUXTRACE_ERROR.
    b.push(72, 0, &[0; 40]);
    let (_, quality) = drain(&open_bytes(&b.build(Container::File)).unwrap());
    assert_eq!(quality.count(QualityCode::LostChunks), 0, "{quality:?}");
    assert_eq!(quality.count(QualityCode::AuxErrors), 2);
}

/// `perf record -C 0,5`: of the machine's CPUs only these were recorded. Large machines need
/// several records.
#[test]
fn recorded_cpus_are_those_of_the_index() {
    let recorded = |records: &[&[(u64, u64)]]| {
        let mut b = Builder::new(false);
        for entries in records {
            let mut body = b.u64(entries.len() as u64).to_vec();
            for (i, (cpu, tid)) in entries.iter().enumerate() {
                for word in [100 + i as u64, i as u64, *cpu, *tid] {
                    body.extend(b.u64(word));
                }
            }
            b.push(69, 0, &body);
        }
        some_switches(&mut b);
        open_bytes(&b.build(Container::Pipe)).unwrap().info().cpus_recorded.clone()
    };
    const ALL: u64 = u64::MAX;
    let cpus = |list: &[u16]| Some(list.iter().copied().map(Cpu).collect::<Vec<_>>());
    assert_eq!(recorded(&[&[(0, ALL), (5, ALL), (0, ALL)]]), cpus(&[0, 5]));
    assert_eq!(recorded(&[&[(0, ALL)], &[(1, ALL)]]), cpus(&[0, 1]));
    // Recordings of a single program, and of threads on any CPU.
    assert_eq!(recorded(&[&[(0, 7), (1, 7)]]), None);
    assert_eq!(recorded(&[&[(ALL, ALL)]]), None);
    assert_eq!(recorded(&[]), None);
}

//! Compares every event with Perfetto's own Python package: sequence, time, CPU, thread, and the
//! fields of events that holdup understands.

use holdup_perfetto::Perfetto;
use holdup_testkit::{Generic, Packing, PerfettoForm, corpus, needs, perfetto};
use holdup_trace::{Batch, Event, EventId, NameId, Reader, What, merge};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

/// The output of the other decoder.
fn decoder(path: &Path) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/decoder.py");
    let out = Command::new("python3").arg(script).arg(path).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The same lines by holdup, events of a CPU with the same time in file order.
fn lines(trace: &Perfetto) -> Vec<String> {
    let mut rows = Vec::new();
    merge::drive(trace, 2, &mut |events: &[Event], batch: &Batch| {
        for e in events.iter().filter(|e| e.id != EventId::SIDEBAND) {
            rows.push(((e.ts, e.cpu), line(trace, e, batch)));
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    rows.sort_by_key(|row| row.0);
    rows.into_iter().map(|row| row.1).collect()
}

fn line(trace: &Perfetto, e: &Event, batch: &Batch) -> String {
    let info = trace.info();
    let name = |id: NameId| info.names.get(id);
    let fields = match e.what {
        What::Switch { prev, next, prev_state, prev_comm, next_comm, prev_prio, next_prio } => {
            format!(
                " prev_comm={} prev_pid={prev} prev_prio={prev_prio} prev_state={prev_state} \
                 next_comm={} next_pid={next} next_prio={next_prio}",
                name(prev_comm),
                name(next_comm)
            )
        }
        What::Waking { tid, comm, prio, target, .. }
        | What::Wakeup { tid, comm, prio, target }
        | What::WakeupNew { tid, comm, prio, target } => {
            format!(" comm={} pid={tid} prio={prio} target_cpu={target}", name(comm))
        }
        What::Migrate { tid, from, to } => format!(" pid={tid} orig_cpu={from} dest_cpu={to}"),
        What::Fork { parent, child, child_comm } => {
            format!(" parent_pid={parent} child_comm={} child_pid={child}", name(child_comm))
        }
        What::Exec { tid, old, filename } => {
            format!(" filename={} pid={tid} old_pid={old}", name(filename))
        }
        What::Exit { tid, comm } => format!(" comm={} pid={tid}", name(comm)),
        What::SysEnter { nr, args } => {
            format!(" id={} args={:?}", nr as i32, batch.args(args).map_or(&[][..], |a| a))
        }
        What::SysExit { nr, ret } => format!(" id={} ret={ret}", nr as i32),
        What::IrqEntry { irq, name: n } => format!(" irq={irq} name={}", name(n)),
        What::IrqExit { irq } => format!(" irq={irq}"),
        What::SoftirqEntry { vec } | What::SoftirqExit { vec } | What::SoftirqRaise { vec } => {
            format!(" vec={vec}")
        }
        What::WorkQueue { work, function, .. } | What::WorkStart { work, function, .. } => {
            format!(" work={work} function={function}")
        }
        What::WorkEnd { work } => format!(" work={work}"),
        What::CpuIdle { state, cpu } => format!(" state={state} cpu_id={cpu}"),
        What::ContentionBegin { lock, flags, .. } => format!(" lock_addr={lock} flags={flags}"),
        // Numbers of 64 bits: the writer cannot know that this one has a sign.
        What::ContentionEnd { lock, ret } => format!(" lock_addr={lock} ret={}", ret as i64 as u64),
        _ => String::new(),
    };
    format!("{} {} {} {}{fields}", e.ts, e.cpu, e.tid, info.events[e.id.0 as usize].short_name())
}

fn compare(path: &Path) -> usize {
    let trace = holdup_perfetto::open(path).unwrap();
    let (ours, theirs) = (lines(&trace), decoder(path));
    assert_eq!(ours.len(), theirs.len(), "{}", path.display());
    for (a, b) in ours.iter().zip(&theirs) {
        assert_eq!(a, b, "{}", path.display());
    }
    ours.len()
}

#[needs(perfetto_python)]
#[test]
fn what_the_testkit_writes_is_what_perfetto_reads() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/equivalence");
    let dir = tempfile::tempdir().unwrap();
    for scenario in ["imb_single_c4", "thr_mutex_c4"] {
        let packed = std::fs::File::open(fixtures.join(scenario).join("trace.dat.zst")).unwrap();
        let packed = zstd::stream::read::Decoder::new(packed).unwrap();
        let dat = holdup_tracedat::open_stream(Path::new("-"), packed).unwrap();
        for compact in [false, true] {
            for (generic, packing) in
                [(Generic::Named, Packing::None), (Generic::Described, Packing::Deflate)]
            {
                let form = PerfettoForm { compact, generic, packing, ..PerfettoForm::default() };
                let path = dir.path().join("x.pftrace");
                std::fs::write(&path, perfetto(&dat, &form)).unwrap();
                assert!(compare(&path) > 10_000);
            }
        }
    }
}

#[needs(perfetto_python, corpus)]
#[test]
fn a_phones_trace_is_what_perfetto_reads() {
    let path = corpus().join(
        "public/microsoft+Microsoft-Performance-Tools-Linux-Android/TestData/Perfetto/\
         test_trace.perfetto-trace",
    );
    if path.exists() {
        assert_eq!(compare(&path), 35_877);
    }
}

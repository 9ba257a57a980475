//! What the tests against real recordings share.
#![allow(dead_code, reason = "each test file uses part of it")]

use holdup_trace::{Batch, Event, EventId, Names, Quality, Reader, StackRef, What, merge};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The output of a command.
pub(crate) fn output(program: &str, args: &[&str]) -> Vec<u8> {
    let out = Command::new(program).args(args).stderr(Stdio::null()).output().expect("runs");
    out.stdout
}

/// The files in the folders of `corpus` whose names end in `suffix`.
pub(crate) fn files(corpus: &Path, suffix: &str) -> Vec<PathBuf> {
    let list = |dir: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(dir)
            .map_or_else(|_| Vec::new(), |d| d.flatten().map(|e| e.path()).collect())
    };
    let mut files: Vec<PathBuf> = list(corpus).iter().flat_map(|folder| list(folder)).collect();
    files.retain(|f| f.to_string_lossy().ends_with(suffix));
    files.sort();
    files
}

/// A file of the corpus, inflated into `dir`.
pub(crate) fn inflate(file: &Path, dir: &Path) -> PathBuf {
    let to = dir.join(file.file_stem().expect("a name"));
    let packed = std::fs::File::open(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let plain = std::fs::File::create(&to).expect("writable");
    zstd::stream::copy_decode(packed, plain).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    to
}

/// Every event of a trace, in order, as text.
pub(crate) fn all(
    reader: &dyn Reader,
    show: &dyn Fn(&Event, &Batch, &dyn Reader) -> Option<String>,
) -> (Vec<String>, Quality) {
    let mut rows = Vec::new();
    let quality = merge::drive(reader, 2, &mut |events: &[Event], batch: &Batch| {
        rows.extend(
            events
                .iter()
                .filter(|e| e.id != EventId::SIDEBAND)
                .filter_map(|e| show(e, batch, reader)),
        );
        ControlFlow::Continue(())
    })
    .expect("readable");
    (rows, quality)
}

/// `what` with its names and arguments spelled out.
pub(crate) fn spell(what: &What, batch: &Batch, names: &Names) -> String {
    let n = |id| names.get(id);
    match *what {
        What::Switch { prev, next, prev_state, prev_comm, next_comm, prev_prio, next_prio } => {
            format!(
                "Switch {prev} {} {prev_prio} {prev_state} {next} {} {next_prio}",
                n(prev_comm),
                n(next_comm)
            )
        }
        What::Waking { tid, comm, prio, target, .. } => {
            format!("Waking {tid} {} {prio} {target}", n(comm))
        }
        What::Wakeup { tid, comm, prio, target } => {
            format!("Wakeup {tid} {} {prio} {target}", n(comm))
        }
        What::WakeupNew { tid, comm, prio, target } => {
            format!("WakeupNew {tid} {} {prio} {target}", n(comm))
        }
        What::Fork { parent, child, child_comm } => {
            format!("Fork {parent} {child} {}", n(child_comm))
        }
        What::Exec { tid, old, filename } => format!("Exec {tid} {old} {}", n(filename)),
        What::Exit { tid, comm } => format!("Exit {tid} {}", n(comm)),
        What::SysEnter { nr, args } => format!("SysEnter {nr} {:x?}", batch.args(args)),
        What::IrqEntry { irq, name } => format!("IrqEntry {irq} {}", n(name)),
        What::VectorEntry { vector, name } => format!("VectorEntry {vector} {}", n(name)),
        // Text resolves the function, binary has its address.
        What::WorkQueue { work, .. } => format!("WorkQueue {work:x}"),
        What::WorkStart { work, .. } => format!("WorkStart {work:x}"),
        // Text also resolves the instruction of a fault in the kernel.
        What::AttachTask { tid, root, path } => format!("AttachTask {tid} {root} {}", n(path)),
        What::BlockedReason { tid, io_wait, caller, name: id } => {
            format!("BlockedReason {tid} {io_wait} {caller:x} {}", n(id))
        }
        What::PageFault { user, address, ip } => {
            format!("PageFault {user} {address:x} {:x}", if user { ip } else { 0 })
        }
        What::ContentionBegin { lock, flags, stack } => {
            // perf prints addresses of user code relative to the mapped file.
            let kernel: Vec<u64> =
                batch.stack(stack).iter().copied().filter(|a| a >> 63 != 0).collect();
            format!(
                "ContentionBegin {lock:x} {flags} {:x?}",
                if stack == StackRef::NONE { &[] } else { &kernel[..] }
            )
        }
        What::LockAcquire { lock, name, flags } => {
            format!("LockAcquire {lock:x} {} {flags}", n(name))
        }
        What::LockContended { lock, name } => format!("LockContended {lock:x} {}", n(name)),
        What::LockAcquired { lock, name } => format!("LockAcquired {lock:x} {}", n(name)),
        What::LockRelease { lock, name } => format!("LockRelease {lock:x} {}", n(name)),
        What::Sample { period, stack } => format!("Sample {period} {:x?}", batch.stack(stack)),
        ref other => format!("{other:?}"),
    }
}

/// Time, CPU, thread, event and fields.
pub(crate) fn row(e: &Event, batch: &Batch, reader: &dyn Reader) -> Option<String> {
    let info = reader.info();
    let name = info.events.get(e.id.0 as usize).map_or("?", |d| d.short_name());
    Some(format!(
        "{} {} {} {name} {}",
        e.ts,
        e.cpu.0 as i16,
        e.tid,
        spell(&e.what, batch, &info.names)
    ))
}

/// The two lists are equal as sets; shows the first rows that differ.
pub(crate) fn assert_same(what: &str, mut a: Vec<String>, mut b: Vec<String>) {
    a.sort();
    b.sort();
    if a == b {
        return;
    }
    let only = |x: &[String], y: &[String]| {
        let other: std::collections::HashSet<&String> = y.iter().collect();
        x.iter().filter(|r| !other.contains(r)).take(8).cloned().collect::<Vec<_>>().join("\n")
    };
    panic!(
        "{what}: {} against {} events\nonly left:\n{}\nonly right:\n{}",
        a.len(),
        b.len(),
        only(&a, &b),
        only(&b, &a)
    );
}

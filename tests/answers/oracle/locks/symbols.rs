//! Kernel symbols for perf and holdup alike.

use crate::oracle::corpus::Recording;
use crate::oracle::perf;
use holdup_trace::SymbolTable;
use std::path::Path;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// The symbols of the kernel a recording was made on, if they are at hand, and perf told of them.
pub(crate) struct Symbols {
    pub(crate) table: Arc<SymbolTable>,
    /// For `perf --buildid-dir`; `None` where perf finds them by itself.
    pub(crate) cache: Option<PathBuf>,
}

pub(crate) fn symbols(file: &Recording) -> Option<Symbols> {
    let guest = [
        ("vm/debian61", "debian61"),
        ("vm/lockstat612", "lockstat612"),
        ("vm/mpup612", "smp612"),
        ("vm/funnel", "debian61"),
    ]
    .into_iter()
    .find(|(folder, _)| file.name.starts_with(folder));
    if let Some((_, kernel)) = guest {
        let packed = holdup_testkit::corpus().join(format!("vm/kallsyms/kallsyms.{kernel}.zst"));
        let text = zstd::decode_all(std::fs::File::open(packed).ok()?).ok()?;
        let ids = perf::run(&["buildid-list"], file).out;
        let id = ids.lines().find_map(|l| l.split_once(" [kernel.kallsyms]"))?.0.trim().to_owned();
        if id.len() < 8 {
            return None;
        }
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("buildids").join(&id);
        let folder = cache.join("[kernel.kallsyms]").join(&id);
        std::fs::create_dir_all(&folder).ok()?;
        std::fs::write(folder.join("kallsyms"), &text).ok()?;
        let link = cache.join(".build-id").join(&id[..2]);
        std::fs::create_dir_all(&link).ok()?;
        let link = link.join(&id[2..]);
        if link.symlink_metadata().is_err() {
            std::os::unix::fs::symlink(folder, link).ok()?;
        }
        return Some(Symbols {
            table: Arc::new(SymbolTable::from_kallsyms(&text)),
            cache: Some(cache),
        });
    }
    // Made on this machine, and the same kernel runs: perf finds the symbols itself.
    let running =
        Command::new("perf").args(["buildid-list", "-k"]).stdin(Stdio::null()).output().ok()?;
    let running = String::from_utf8_lossy(&running.stdout).trim().to_owned();
    let ids = perf::run(&["buildid-list"], file).out;
    if running.len() < 8 || !ids.lines().any(|l| l.split_whitespace().next() == Some(&running)) {
        return None;
    }
    let table = SymbolTable::from_kallsyms(&std::fs::read("/proc/kallsyms").ok()?);
    (!table.is_empty()).then(|| Symbols { table: Arc::new(table), cache: None })
}

//! Folders of raw ring-buffer pages, as read from `per_cpu/cpuN/trace_pipe_raw`.
//!
//! ```text
//!  DIR/traces/cpu0  or  DIR/cpu0  or  DIR/per_cpu/cpu0/trace_pipe_raw     pages
//!  DIR/formats/header_page, DIR/formats/sched/sched_switch/format         or events/…
//!  DIR/trace_clock, DIR/saved_cmdlines, DIR/kallsyms                      optional
//! ```

use crate::blocks::{CpuData, Fetch};
use crate::codec::Codec;
use crate::format::Descriptions;
use crate::meta::{Meta, Options, bracketed};
use crate::page::PageLayout;
use crate::reader::{Lane, Parts, TraceDat};
use crate::source::Source;
use holdup_trace::{ErrorKind, Quality, Result};
use holdup_tracepoint::{Big, Little};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Open a folder of raw per-CPU dumps with the descriptions of their events.
///
/// # Errors
/// The folder cannot be read, or holds no per-CPU file or no event description.
pub fn open_raw_dir(path: &Path) -> Result<TraceDat> {
    parse(path).map_err(|kind| kind.in_file(path))
}

fn parse(dir: &Path) -> Result<TraceDat, ErrorKind> {
    let files = cpu_files(dir)?;
    let missing = |expected: &str, found: &str| {
        ErrorKind::malformed(0, Some("folder of raw dumps".into()), expected, found)
    };
    if files.is_empty() {
        return Err(missing("files traces/cpu0, cpu0 or per_cpu/cpu0/trace_pipe_raw", "none"));
    }
    let mut formats = Vec::new();
    let mut header_page = fs::read_to_string(dir.join("header_page")).ok();
    for events in ["formats", "events"].map(|n| dir.join(n)) {
        header_page = header_page.or_else(|| fs::read_to_string(events.join("header_page")).ok());
        formats.extend(event_formats(&events));
    }
    if formats.is_empty() {
        return Err(missing(
            "event descriptions, formats/SYSTEM/NAME/format or events/SYSTEM/NAME/format",
            "none",
        ));
    }
    let layout =
        header_page.as_deref().and_then(PageLayout::parse).unwrap_or(PageLayout::default_for(8));
    let page_size = if layout.page > layout.header() { layout.page } else { 4096 };
    let mut lanes = Vec::new();
    for (cpu, file) in files {
        let source = Arc::new(Source::file(File::open(file)?)?);
        let len = source.len();
        let (data, cut) = CpuData::flat(source, 0, len, page_size);
        // The kernel hands out whole pages only.
        lanes.push(Lane { buffer: 0, cpu, data, cut: cut || len % page_size as u64 != 0 });
    }
    let text = |name: &str| fs::read(dir.join(name)).unwrap_or_default();
    let mut meta = Meta {
        version: 0,
        big: is_big_endian(&lanes, &layout),
        long_size: layout.long as u8,
        page_size: page_size as u32,
        codec: Codec::None,
        layout: Some(layout),
        formats,
        formats_by: Descriptions::Copied,
        kallsyms: text("kallsyms"),
        cmdlines: Vec::new(),
        cpus: Some(lanes.len() as u32),
        options: Options {
            clock: bracketed(&String::from_utf8_lossy(&text("trace_clock"))),
            ..Options::default()
        },
        buffers: Vec::new(),
        cut: 0,
        raw: None,
    };
    meta.add_cmdlines(&text("saved_cmdlines"));
    Parts { format: "ftrace raw".into(), meta, layout, lanes }.assemble(dir)
}

/// CPU numbers and files, ascending.
fn cpu_files(dir: &Path) -> Result<Vec<(u32, PathBuf)>, ErrorKind> {
    // The folder itself must be readable; its subfolders may or may not exist.
    fs::read_dir(dir)?;
    for parent in [dir.join("traces"), dir.join("per_cpu"), dir.to_owned()] {
        let mut files = Vec::new();
        for entry in fs::read_dir(parent).into_iter().flatten() {
            let path = entry?.path();
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            let Some(cpu) = name.strip_prefix("cpu").and_then(|n| n.parse().ok()) else { continue };
            let file = if path.is_dir() { path.join("trace_pipe_raw") } else { path };
            if file.is_file() {
                files.push((cpu, file));
            }
        }
        if !files.is_empty() {
            files.sort();
            return Ok(files);
        }
    }
    Ok(Vec::new())
}

/// (system, text) of every DIR/SYSTEM/NAME/format, in the order of their names.
fn event_formats(events: &Path) -> Vec<(String, String)> {
    let list = |dir: &Path| {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
        paths.sort();
        paths
    };
    let mut formats = Vec::new();
    for system in list(events) {
        let name = system.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for event in list(&system) {
            if let Ok(text) = fs::read(event.join("format")) {
                formats.push((name.clone(), String::from_utf8_lossy(&text).into_owned()));
            }
        }
    }
    formats
}

/// The texts do not state the byte order, but the pages show it: in the wrong byte order the count
/// of bytes on a page is far larger than the page.
fn is_big_endian(lanes: &[Lane], layout: &PageLayout) -> bool {
    lanes.iter().any(|lane| {
        let Ok(mut fetch) = Fetch::new(&lane.data) else { return false };
        let size = lane.data.page_size;
        fetch.load(0, &mut Quality::default()).is_ok()
            && layout.plausible::<Little>(fetch.block(), size).is_none()
            && layout.plausible::<Big>(fetch.block(), size).is_some()
    })
}

//! The tracing-data section: what tracefs says about the recorded events (kernel
//! `tools/perf/util/trace-event-info.c`; [`holdup_perfdata`]'s reader documents the layout).
//!
//! perf leaves out the kernel's symbols and looks them up on the machine where the file is read.
//! Here they are stored, so that functions and locks have names on any machine. perf skips them.

use super::bytes::Bytes;
use super::symbols::Symbols;
use super::{Error, Form};
use holdup_perfdata::format::TRACING_DATA_MAGIC;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Version of the layout.
const VERSION: &str = "0.6";

/// The formats of the recorded tracepoints, and what else tracefs has.
#[derive(Clone, Debug, Default)]
pub struct TracingData {
    header_page: Vec<u8>,
    header_event: Vec<u8>,
    /// Systems in alphabetical order with the formats of their events.
    systems: Vec<(String, Vec<Vec<u8>>)>,
    printk_formats: Vec<u8>,
    saved_cmdlines: Vec<u8>,
}

impl TracingData {
    /// Reads what `tracefs` (its mount point) says about `tracepoints`, each `system:name`.
    ///
    /// # Errors
    /// If the format of a tracepoint cannot be read. Anything else that is missing counts as empty,
    /// like in perf.
    pub fn read<'a>(
        tracefs: &Path,
        tracepoints: impl IntoIterator<Item = &'a str>,
    ) -> Result<TracingData, Error> {
        let mut names: Vec<(&str, &str)> =
            tracepoints.into_iter().filter_map(|t| t.split_once(':')).collect();
        names.sort_unstable();
        names.dedup();
        let mut systems: Vec<(String, Vec<Vec<u8>>)> = Vec::new();
        for (system, name) in names {
            let path: PathBuf = [tracefs, "events".as_ref(), system.as_ref(), name.as_ref()]
                .iter()
                .collect::<PathBuf>()
                .join("format");
            let format = read_at_once(&path).map_err(|why| Error::Unreadable { path, why })?;
            match systems.last_mut().filter(|(last, _)| last == system) {
                Some((_, formats)) => formats.push(format),
                None => systems.push((system.to_owned(), vec![format])),
            }
        }
        let file = |name: &str| read_at_once(&tracefs.join(name)).unwrap_or_default();
        Ok(TracingData {
            header_page: file("events/header_page"),
            header_event: file("events/header_event"),
            systems,
            printk_formats: file("printk_formats"),
            saved_cmdlines: file("saved_cmdlines"),
        })
    }

    /// Whether no tracepoint was recorded: then perf writes no such section.
    pub(crate) fn is_empty(&self) -> bool {
        self.systems.is_empty()
    }

    /// The section. perf cannot skip symbols that come through a pipe, so a pipe gets none.
    pub(crate) fn section(&self, form: Form, symbols: &Symbols, page_size: u32) -> Bytes {
        let mut b = Bytes::default();
        b.put(TRACING_DATA_MAGIC).c_str(VERSION);
        b.put(&[cfg!(target_endian = "big") as u8, size_of::<usize>() as u8]).u32(page_size);
        for (name, text) in
            [("header_page", &self.header_page), ("header_event", &self.header_event)]
        {
            sized64(b.c_str(name), text);
        }
        // No event of the system ftrace, which has a separate place, can be recorded.
        b.u32(0);
        b.count(self.systems.len());
        for (system, formats) in &self.systems {
            b.c_str(system).count(formats.len());
            formats.iter().for_each(|format| sized64(&mut b, format));
        }
        match form {
            Form::File => sized32(&mut b, symbols.text()),
            Form::Pipe => sized32(&mut b, &[]),
        }
        sized32(&mut b, &self.printk_formats);
        sized64(&mut b, &self.saved_cmdlines);
        b
    }
}

/// Reads a file of tracefs into a buffer that is large enough from the start. Linux 6.18 fills the
/// first read of `header_page` and then reports the end of the file.
fn read_at_once(path: &Path) -> io::Result<Vec<u8>> {
    const ROOM: usize = 64 << 10;
    let mut file = File::open(path)?;
    let mut text = Vec::new();
    loop {
        let have = text.len();
        text.resize(have + ROOM, 0);
        let n = file.read(&mut text[have..])?;
        text.truncate(have + n);
        if n == 0 {
            return Ok(text);
        }
    }
}

fn sized64(b: &mut Bytes, bytes: &[u8]) {
    b.u64(bytes.len() as u64).put(bytes);
}

fn sized32(b: &mut Bytes, bytes: &[u8]) {
    b.count(bytes.len()).put(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_format_is_an_error_that_names_the_file() {
        let tracefs = tempfile::tempdir().unwrap();
        let e = TracingData::read(tracefs.path(), ["sched:sched_switch"]).unwrap_err().to_string();
        assert!(e.contains("events/sched/sched_switch/format: cannot be read"), "{e}");
        assert!(TracingData::read(tracefs.path(), []).unwrap().is_empty());
    }
}

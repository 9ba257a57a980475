//! The destination of the answer.

use crate::ascii;
use crate::exit::{Result, unfinished, unwritable, usage};
use crate::pager::{self, Pager};
use crate::progress;
use holdup_render::{Format, Report};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Standard output or a file, opened.
pub(crate) enum Output {
    Stdout,
    File(PathBuf, File),
}

impl Output {
    /// Open `path`, or standard output; never overwrite an input.
    pub(crate) fn open(path: Option<&Path>, inputs: &[&Path]) -> Result<Output> {
        let Some(path) = path.filter(|p| p.as_os_str() != "-") else { return Ok(Output::Stdout) };
        if inputs.iter().any(|input| same_file(path, input)) {
            return Err(usage(format!(
                "{}: is the trace itself; it would be overwritten",
                path.display()
            )));
        }
        let file = File::create(path).map_err(|e| unwritable(path, &e))?;
        Ok(Output::File(path.to_owned(), file))
    }

    /// Whether to use colours: on a terminal, unless NO_COLOR or TERM=dumb forbids it; elsewhere
    /// only if CLICOLOR_FORCE requests it.
    pub(crate) fn wants_color(&self) -> bool {
        let choice = match self {
            Output::Stdout => anstream::AutoStream::choice(&io::stdout()),
            Output::File(_, file) => anstream::AutoStream::choice(file),
        };
        !matches!(choice, anstream::ColorChoice::Never)
    }

    /// Width in columns, on a terminal.
    pub(crate) fn width(&self) -> Option<usize> {
        match self {
            Output::Stdout if io::stdout().is_terminal() => {
                terminal_size::terminal_size().map(|(w, _)| w.0.into())
            }
            _ => None,
        }
    }

    /// The file's path, for messages.
    pub(crate) fn name(&self) -> Option<PathBuf> {
        match self {
            Output::Stdout => None,
            Output::File(path, _) => Some(path.clone()),
        }
    }

    /// Pass the output to `write`, which does its own buffering.
    pub(crate) fn stream<T>(self, write: impl FnOnce(&mut dyn Write) -> T) -> T {
        match self {
            Output::Stdout => {
                // Lines and progress would mix on one terminal.
                progress::end();
                match Pager::start() {
                    Some(pager) => pager.show(write),
                    None => write(&mut io::stdout().lock()),
                }
            }
            Output::File(_, mut file) => write(&mut file),
        }
    }

    /// Write `report`.
    pub(crate) fn write(self, report: &Report, format: &Format) -> Result<()> {
        if !matches!(format, Format::Text(_)) || !ascii::only() {
            return self.write_with(|out| holdup_render::write(report, format, out));
        }
        self.write_with(|out| {
            let mut text = Vec::new();
            holdup_render::write(report, format, &mut text)?;
            out.write_all(ascii::of(&String::from_utf8_lossy(&text)).as_bytes())
        })
    }

    /// Pass a buffered output to `write`.
    pub(crate) fn write_with(
        self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        progress::end();
        let failed = unfinished(self.name());
        let written = match self {
            Output::Stdout if io::stdout().is_terminal() => {
                let mut text = Vec::new();
                write(&mut text).and_then(|()| pager::print(&text))
            }
            Output::Stdout => {
                let mut out = BufWriter::new(io::stdout().lock());
                write(&mut out).and_then(|()| out.flush())
            }
            Output::File(_, file) => {
                let mut out = BufWriter::new(file);
                write(&mut out).and_then(|()| out.flush())
            }
        };
        written.map_err(failed)
    }
}

/// Whether two paths are one file.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (a.metadata(), b.metadata()) {
        (Ok(a), Ok(b)) => a.is_file() && a.dev() == b.dev() && a.ino() == b.ino(),
        _ => false,
    }
}

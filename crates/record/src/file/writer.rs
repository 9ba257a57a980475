//! The recording as it grows.

use super::bytes::Bytes;
use super::compress::Compressor;
use super::host::Roots;
use super::tally::{Joined, Tally, time_of};
use super::{Description, Error, Form, pipe, sections};
use holdup_perfdata::format::{self, SECTION, feature, header, record};
use holdup_perfdata::trailer_size;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Writes a recording, record by record.
pub struct Writer {
    output: Output,
    compressor: Option<Compressor>,
    /// What waits to be written in one go: compressed records.
    buffer: Bytes,
    /// Offset of the time in a sample.
    time: Option<usize>,
    tally: Tally,
    /// What it was at the last whole round.
    whole: Tally,
    bytes: u64,
    /// What was seen meanwhile: sections of text.
    seen: Vec<(u32, String)>,
}

enum Output {
    File(Box<Tables>),
    Pipe(Box<dyn Write + Send>),
    /// Writing failed; what comes is dropped.
    Stopped,
}

/// A file, and where its parts are.
struct Tables {
    file: File,
    path: PathBuf,
    /// Where the data begin, and where the last whole round ends: there its table is.
    data: u64,
    round: u64,
    /// Behind that table; where the data begin until there is a round. The file ends here if the
    /// recorder does.
    end: u64,
    /// Bytes per entry of the attrs, and the attrs.
    attr_entry: u64,
    attrs: (u64, u64),
    /// The feature sections, ascending by number: offset and size.
    sections: Vec<(u32, u64, u64)>,
}

/// What a finished recording is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// What is in it.
    pub tally: Tally,
    /// Bytes written, header and sections included.
    pub bytes: u64,
    /// Under which name it is now.
    pub name: Name,
}

/// What a file is called when the recording is over: another recorder may have wanted its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Name {
    /// As it was asked for.
    #[default]
    Own,
    /// With `.old` behind it.
    Old,
    /// Nobody knows; it may be gone.
    Unknown,
}

impl Name {
    /// Where a recording is that was to be `path`.
    pub fn of(self, path: &Path) -> PathBuf {
        if self == Name::Old { old(path) } else { path.to_owned() }
    }
}

/// What a file becomes when its name is wanted.
fn old(path: &Path) -> PathBuf {
    let mut old = path.as_os_str().to_owned();
    old.push(".old");
    old.into()
}

impl Tables {
    /// Under which name the file is.
    fn name(&self) -> Name {
        let which = |m: std::fs::Metadata| (m.dev(), m.ino());
        let Ok(this) = self.file.metadata().map(which) else { return Name::Own };
        let is = |path: &Path| path.metadata().is_ok_and(|m| which(m) == this);
        if is(&self.path) {
            Name::Own
        } else if is(&old(&self.path)) {
            Name::Old
        } else {
            Name::Unknown
        }
    }
}

impl Written {
    /// What both are together.
    #[must_use]
    pub fn and(self, o: Written) -> Written {
        Written { tally: self.tally.and(o.tally), bytes: self.bytes + o.bytes, name: o.name }
    }
}

impl Writer {
    /// What was written so far.
    pub(crate) fn written(&self) -> Written {
        Written { tally: self.tally, bytes: self.bytes, name: Name::Own }
    }

    /// Begin a file. One that is there already is kept, as perf does it: its name gets `.old`
    /// behind it, and what had that name before is gone.
    ///
    /// # Errors
    /// `path` cannot be written, or is something else than a regular file.
    pub fn create(path: &Path, description: &Description) -> Result<Writer, Error> {
        let uncreated = |why| Error::Uncreated { path: path.to_owned(), why };
        same_size(description)?;
        match path.metadata() {
            Ok(m) if !m.is_file() && !m.is_dir() => {
                return Err(Error::NoFile { path: path.to_owned() });
            }
            Ok(m) if m.is_file() && m.len() > 0 => {
                std::fs::rename(path, old(path)).map_err(uncreated)?;
            }
            _ => {}
        }
        let mut options = OpenOptions::new();
        // A recording shows what everybody did: it is its owner's alone, as perf's are.
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(path).map_err(uncreated)?;
        let roots = Roots::default();
        let (tables, head) = Tables::plan(file, path, description, &roots);
        let mut writer = Writer::new(Output::File(Box::new(tables)), description)?;
        writer.append(&head.0)?;
        writer.begin(description, &roots)?;
        Ok(writer)
    }

    /// Begin a recording that goes through a pipe.
    ///
    /// # Errors
    /// `pipe` cannot be written to.
    pub fn pipe(pipe: Box<dyn Write + Send>, description: &Description) -> Result<Writer, Error> {
        same_size(description)?;
        let roots = Roots::default();
        let mut writer = Writer::new(Output::Pipe(pipe), description)?;
        writer.append(&pipe::head(description, &roots).0)?;
        writer.begin(description, &roots)?;
        Ok(writer)
    }

    fn new(output: Output, description: &Description) -> Result<Writer, Error> {
        let mut writer = Writer {
            output,
            compressor: None,
            buffer: Bytes::default(),
            time: time_of(&description.events),
            tally: Tally::default(),
            whole: Tally::default(),
            bytes: 0,
            seen: Vec::new(),
        };
        let compressor = description.compression.map(Compressor::new).transpose();
        writer.compressor = compressor.map_err(|why| writer.stop(why))?;
        Ok(writer)
    }

    /// What runs already, and the first round: from here on the file can be read.
    fn begin(&mut self, description: &Description, roots: &Roots) -> Result<(), Error> {
        let sample_type = description.events.first().and_then(|e| e.sample_type()).unwrap_or(0);
        let records = description.running.records(
            &description.symbols,
            &roots.proc,
            trailer_size(sample_type),
        );
        self.append(&records.0)?;
        self.round()
    }

    /// Append whole records of one ring, in the order they were written in: `records`, and
    /// `wrapped` where the ring goes on at its start.
    ///
    /// # Errors
    /// The output cannot be written. A file keeps the rounds before; what is appended later is
    /// dropped.
    pub fn data(&mut self, records: &[u8], wrapped: &[u8]) -> Result<(), Error> {
        if let Output::Stopped = self.output {
            return Ok(());
        }
        self.tally.add(Joined(records, wrapped), self.time);
        let Some(compressor) = &mut self.compressor else {
            self.append(records)?;
            return self.append(wrapped);
        };
        let mut packed = std::mem::take(&mut self.buffer);
        packed.0.clear();
        let done = compressor
            .push(records, &mut packed)
            .and_then(|()| compressor.push(wrapped, &mut packed))
            .map_err(|why| self.stop(why))
            .and_then(|()| self.append(&packed.0));
        self.buffer = packed;
        done
    }

    /// All rings were looked at: readers may take what came before the last call as complete, and
    /// a file is whole up to here whatever happens now.
    ///
    /// # Errors
    /// As [`Writer::data`].
    pub fn round(&mut self) -> Result<(), Error> {
        let mut b = Bytes::default();
        match &self.output {
            Output::File(tables) => tables.round_record(&mut b),
            Output::Pipe(_) | Output::Stopped => {
                b.record(record::FINISHED_ROUND, 0, |_| {});
            }
        }
        let at = self.bytes;
        self.append(&b.0)?;
        let done = match &mut self.output {
            Output::File(tables) => {
                (tables.round, tables.end) = (at, self.bytes);
                let done = tables.know(self.tally.span, self.compressor.as_ref());
                done.and_then(|()| tables.write_header(Ended::No))
            }
            Output::Pipe(pipe) => pipe.flush(),
            Output::Stopped => return Ok(()),
        };
        self.whole = self.tally;
        done.map_err(|why| self.stop(why))
    }

    /// What was seen, as the text of a section of this number, for the end of a file; a pipe has no
    /// place for it. Numbers ascend.
    pub fn saw(&mut self, section: u32, text: Option<String>) {
        self.seen.extend(text.map(|text| (section, text)));
    }

    /// End the recording. Everything must have been appended.
    ///
    /// # Errors
    /// As [`Writer::data`]. If writing has failed before, that is not said again.
    pub fn finish(mut self) -> Result<Written, Error> {
        self.round()?;
        if let Output::File(tables) = &mut self.output {
            let end = self.bytes;
            let seen = std::mem::take(&mut self.seen);
            // Behind the table, which perf looks for behind the data.
            let mut at = end + (SECTION * (tables.sections.len() + seen.len())) as u64;
            for (number, text) in &seen {
                tables.sections.push((*number, at, text.len() as u64));
                at += text.len() as u64;
            }
            tables.sections.sort_unstable();
            let table = tables.table();
            self.append(&table.0)?;
            for (_, text) in &seen {
                self.append(text.as_bytes())?;
            }
            if let Output::File(tables) = &mut self.output {
                tables.round = end;
                let done = tables.write_header(Ended::Yes);
                done.map_err(|why| self.stop(why))?;
            }
        }
        let name = match &self.output {
            Output::File(tables) => tables.name(),
            Output::Pipe(_) | Output::Stopped => Name::Own,
        };
        Ok(Written { name, ..self.written() })
    }

    /// What is in the recording so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The time of the latest sample; 0 before there is one.
    pub(crate) fn latest(&self) -> u64 {
        self.tally.span.map_or(0, |(_, last)| last)
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let done = match &mut self.output {
            Output::File(tables) => tables.file.write_all(bytes),
            Output::Pipe(pipe) => pipe.write_all(bytes),
            Output::Stopped => return Ok(()),
        };
        done.map_err(|why| self.stop(why))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Writing failed: leave whole rounds, and say so.
    fn stop(&mut self, why: io::Error) -> Error {
        match std::mem::replace(&mut self.output, Output::Stopped) {
            Output::File(tables) if tables.end == tables.data => {
                let _ = tables.file.set_len(0);
                Error::Uncreated { path: tables.path, why }
            }
            Output::File(tables) => {
                // What is behind the last round is of no use to perf, and where the disk is full
                // its room is wanted.
                let _ = tables.file.set_len(tables.end);
                (self.bytes, self.tally) = (tables.end, self.whole);
                Error::Stopped { path: tables.path, why }
            }
            Output::Pipe(_) | Output::Stopped => Error::Pipe(why),
        }
    }
}

/// perf's file has one size for all attrs.
fn same_size(description: &Description) -> Result<(), Error> {
    let mut sizes = description.events.iter().map(|e| e.attr.len());
    let expected = sizes.next().unwrap_or(0);
    match sizes.find(|&found| found != expected) {
        Some(found) => Err(Error::Attributes { expected, found }),
        None => Ok(()),
    }
}

/// Whether the recorder came to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    No,
    Yes,
}

impl Tables {
    /// Lay the file out: the header, the attrs and the sections, which are returned too.
    fn plan(file: File, path: &Path, description: &Description, roots: &Roots) -> (Tables, Bytes) {
        let events = &description.events;
        let mut b = Bytes::default();
        b.zeros(header::FULL_SIZE as usize);
        let mut ids = Vec::new();
        for e in events {
            ids.push((b.0.len() as u64, 8 * e.ids.len() as u64));
            e.ids.iter().for_each(|&id| {
                b.u64(id);
            });
        }
        let attrs = b.0.len() as u64;
        for (e, (offset, size)) in events.iter().zip(ids) {
            b.put(&e.attr).u64(offset).u64(size);
        }
        let attrs = (attrs, b.0.len() as u64 - attrs);
        let sections = sections::of(description, Form::File, roots);
        let place = |(number, section): (u32, Bytes)| {
            // perf aligns nothing here, but words are better read where they belong.
            b.zeros(b.0.len().next_multiple_of(8) - b.0.len());
            let offset = b.0.len() as u64;
            b.put(&section.0);
            (number, offset, section.0.len() as u64)
        };
        let sections = sections.into_iter().map(place).collect();
        b.zeros(b.0.len().next_multiple_of(8) - b.0.len());
        let data = b.0.len() as u64;
        let attr_entry = (events.first().map_or(0, |e| e.attr.len()) + SECTION) as u64;
        let path = path.to_owned();
        let tables =
            Tables { file, path, data, round: data, end: data, attr_entry, attrs, sections };
        (tables, b)
    }

    /// The table of sections.
    fn table(&self) -> Bytes {
        let mut b = Bytes::default();
        for &(_, offset, size) in &self.sections {
            b.u64(offset).u64(size);
        }
        b
    }

    /// A record that is also the table: its header and a word are the entry of feature 0.
    fn round_record(&self, b: &mut Bytes) {
        b.record(record::FINISHED_ROUND, 0, |b| {
            b.zeros(SECTION - record::HEADER).put(&self.table().0);
        });
    }

    /// Write down what has become known of the samples.
    fn know(&self, span: Option<(u64, u64)>, packed: Option<&Compressor>) -> io::Result<()> {
        for &(number, offset, _) in &self.sections {
            let section = match (number, span, packed) {
                (feature::SAMPLE_TIME, Some(span), _) => sections::sample_time(span),
                (feature::COMPRESSED, _, Some(c)) => sections::compressed(c.level, c.ratio()),
                _ => continue,
            };
            self.file.write_all_at(&section.0, offset)?;
        }
        Ok(())
    }

    /// The header. It lies within a page, so whoever looks sees the old one or the new one.
    fn write_header(&self, ended: Ended) -> io::Result<()> {
        let mut features = [0u64; 4];
        let reserved = (ended == Ended::No).then_some(feature::RESERVED);
        for number in self.sections.iter().map(|s| s.0).chain(reserved) {
            features[number as usize / 64] |= 1 << (number % 64);
        }
        let mut b = Bytes::default();
        b.put(format::MAGIC[cfg!(target_endian = "big") as usize]).u64(header::FULL_SIZE);
        b.u64(self.attr_entry).u64(self.attrs.0).u64(self.attrs.1);
        b.u64(self.data).u64(self.round - self.data);
        // Names of events, which perf has had elsewhere since 2012.
        b.u64(0).u64(0);
        features.iter().for_each(|&word| {
            b.u64(word);
        });
        self.file.write_all_at(&b.0, 0)
    }
}

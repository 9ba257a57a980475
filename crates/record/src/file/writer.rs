//! The recording while it is written.

use super::bytes::Bytes;
use super::compress::Compressor;
use super::host::Roots;
use super::joined::Joined;
use super::sampled::SampledCode;
use super::tally::{Tally, time_of};
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
    /// Compressed records that are to be written in one go.
    buffer: Bytes,
    /// Offset of the time in a sample.
    time: Option<usize>,
    tally: Tally,
    /// What was sampled of code.
    code: SampledCode,
    /// The counts at the last whole round.
    whole: Tally,
    bytes: u64,
    /// Text sections for the end of the file, from what was observed during the recording.
    seen: Vec<(u32, String)>,
}

enum Output {
    File(Box<Tables>),
    Pipe(Box<dyn Write + Send>),
    /// Writing failed; further data are dropped.
    Stopped,
}

/// A file, and the places of its parts.
struct Tables {
    file: File,
    path: PathBuf,
    /// Where the data begin, and where the last whole round ends, which is the place of its table.
    data: u64,
    round: u64,
    /// End of that table; the start of the data until there is a round. If the recorder is killed,
    /// the file ends here.
    end: u64,
    /// Bytes per entry of the attrs, and the attrs.
    attr_entry: u64,
    attrs: (u64, u64),
    /// The feature sections, ascending by number: offset and size.
    sections: Vec<(u32, u64, u64)>,
}

/// The properties of a finished recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// What the file contains.
    pub tally: Tally,
    /// Bytes written, including header and sections.
    pub bytes: u64,
    /// Its current name.
    pub name: Name,
}

/// The name of a file when its recording is over: another recorder may have taken its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Name {
    /// The requested name.
    #[default]
    Own,
    /// The requested name with `.old` appended.
    Old,
    /// Unknown; the file may be gone.
    Unknown,
}

impl Name {
    /// The current path of a recording that was written as `path`.
    pub fn of(self, path: &Path) -> PathBuf {
        if self == Name::Old { old(path) } else { path.to_owned() }
    }
}

/// The path to which a file is renamed when its name is needed.
fn old(path: &Path) -> PathBuf {
    let mut old = path.as_os_str().to_owned();
    old.push(".old");
    old.into()
}

impl Tables {
    /// The current name of the file.
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
    /// The sum of both.
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

    /// Begins a file. Like in perf, an existing file is kept: it is renamed with `.old` appended,
    /// and replaces a file of that name.
    ///
    /// # Errors
    /// If `path` cannot be written, or is not a regular file.
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
        // A recording shows what all users did: only its owner may read it, like perf's files.
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(path).map_err(uncreated)?;
        let roots = Roots::default();
        let (tables, head) = Tables::plan(file, path, description, &roots);
        let mut writer = Writer::new(Output::File(Box::new(tables)), description)?;
        writer.append(&head.0)?;
        writer.begin(description, &roots)?;
        Ok(writer)
    }

    /// Begins a recording that goes through a pipe.
    ///
    /// # Errors
    /// If `pipe` cannot be written to.
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
            code: SampledCode::of(&description.events),
            whole: Tally::default(),
            bytes: 0,
            seen: Vec::new(),
        };
        let compressor = description.compression.map(Compressor::new).transpose();
        writer.compressor = compressor.map_err(|why| writer.stop(why))?;
        Ok(writer)
    }

    /// Writes what runs already, and the first round: from here on the file can be read.
    fn begin(&mut self, description: &Description, roots: &Roots) -> Result<(), Error> {
        let sample_type = description.events.first().and_then(|e| e.sample_type()).unwrap_or(0);
        let records = description.running.records(
            &description.symbols,
            &roots.proc,
            trailer_size(sample_type),
        );
        Tally::default().add(Joined(&records.0, &[]), None, &mut self.code);
        self.append(&records.0)?;
        self.round()
    }

    /// Appends whole records of one ring, in the order of writing: `records`, then `wrapped` if the
    /// ring continues at its start.
    ///
    /// # Errors
    /// If the output cannot be written. A file keeps the rounds before; data appended later are
    /// dropped.
    pub fn data(&mut self, records: &[u8], wrapped: &[u8]) -> Result<(), Error> {
        if let Output::Stopped = self.output {
            return Ok(());
        }
        self.tally.add(Joined(records, wrapped), self.time, &mut self.code);
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

    /// All rings were read: readers may treat what came before the previous call as complete, and a
    /// file is whole up to here whatever happens later.
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

    /// Adds a text section of this number to the end of a file; a pipe has no place for it. Numbers
    /// must ascend.
    pub fn saw(&mut self, section: u32, text: Option<String>) {
        self.seen.extend(text.map(|text| (section, text)));
    }

    /// Ends the recording. Everything must have been appended.
    ///
    /// # Errors
    /// As [`Writer::data`]. An earlier failure to write is not reported again.
    pub fn finish(mut self) -> Result<Written, Error> {
        self.round()?;
        if matches!(self.output, Output::File(_)) {
            self.saw(feature::SPINS, self.code.text());
        }
        if let Output::File(tables) = &mut self.output {
            let end = self.bytes;
            let seen = std::mem::take(&mut self.seen);
            // After the table, which perf expects directly after the data.
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

    /// Writing failed: leaves whole rounds, and returns the error.
    fn stop(&mut self, why: io::Error) -> Error {
        match std::mem::replace(&mut self.output, Output::Stopped) {
            Output::File(tables) if tables.end == tables.data => {
                let _ = tables.file.set_len(0);
                Error::Uncreated { path: tables.path, why }
            }
            Output::File(tables) => {
                // perf cannot use what comes after the last round, and on a full disk the space is
                // needed.
                let _ = tables.file.set_len(tables.end);
                (self.bytes, self.tally) = (tables.end, self.whole);
                Error::Stopped { path: tables.path, why }
            }
            Output::Pipe(_) | Output::Stopped => Error::Pipe(why),
        }
    }
}

/// perf's format has one size for all attrs.
fn same_size(description: &Description) -> Result<(), Error> {
    let mut sizes = description.events.iter().map(|e| e.attr.len());
    let expected = sizes.next().unwrap_or(0);
    match sizes.find(|&found| found != expected) {
        Some(found) => Err(Error::Attributes { expected, found }),
        None => Ok(()),
    }
}

/// Whether the recorder ended normally.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    No,
    Yes,
}

impl Tables {
    /// Lays out the file: the header, the attrs and the sections, which are also returned.
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
            // perf aligns nothing here, but aligned words are easier to read.
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

    /// Fills in what is now known about the samples.
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

    /// Writes the header. It lies within a page, so readers see either the old or the new one.
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
        // Names of events, which perf has stored elsewhere since 2012.
        b.u64(0).u64(0);
        features.iter().for_each(|&word| {
            b.u64(word);
        });
        self.file.write_all_at(&b.0, 0)
    }
}

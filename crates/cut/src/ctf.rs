//! CTF: a folder of metadata and streams. A packet of the cut has consecutive events of one packet
//! of the whole, with its header, its own sizes and times, and counters that restart: losses
//! elsewhere in the trace are not losses of the cut.
//!
//! Without names, text in events is replaced where the metadata declares text, and user-defined
//! names in the metadata are replaced. Traces of user space are left out, because their programs
//! choose the names of their events.
//!
//! An LTTng event does not carry its thread: the latest switch of its CPU shows it, so that switch
//! stays with the event.

use crate::keep::Keep;
use crate::names::Names;
use crate::spot::Place;
use crate::{CutError, Written, opens, tsdl};
use holdup_ctf::{Counts, RawCtf, RawEvent, RawKind, RawPacket, Spot, open_raw};
use holdup_trace::{ErrorKind, Nanos};
use rustc_hash::FxHashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Cut the folder or archive `input`; the output is a folder.
pub(crate) fn write(input: &Path, keep: Keep, output: &Path) -> Result<Written, CutError> {
    let raw = open_raw(input, keep.cut.anonymous)?;
    let names = keep.cut.anonymous.then(Names::default);
    if names.is_some() && !raw.folders.iter().any(|folder| folder.kernel) {
        let what = "a CTF trace of programs without the kernel cannot be anonymized: the names of \
                    its events would show what the programs do"
            .into();
        let way_out = "export only the tables that you may share (holdup export)".into();
        return Err(ErrorKind::Unsupported { what, way_out }.in_file(input).into());
    }
    let failed = |error: io::Error| CutError::Output { path: output.to_owned(), error };
    let parent = output.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    let mut builder = tempfile::Builder::new();
    let folder = builder.prefix(".holdup-cut").permissions(readable).tempdir_in(parent);
    let folder = folder.map_err(failed)?;
    let folder_of = folder.path().to_owned();
    let mut copy = Copy { raw: &raw, keep, names, folder: folder_of, bytes: 0 };
    copy.metadata().map_err(failed)?;
    for (lane, _) in raw.cpus().enumerate() {
        let switches = switches(&raw, lane, &copy.keep);
        for stream in 0..raw.streams(lane) {
            copy.stream(lane, stream, &switches).map_err(failed)?;
        }
    }
    let Copy { mut keep, bytes, .. } = copy;
    keep.written.bytes = bytes;
    opens(folder.path(), &keep.written)?;
    // Fails if a non-empty folder exists there.
    fs::rename(folder.path(), output).map_err(failed)?;
    // The temporary folder was renamed, so it must not be removed.
    let _ = folder.keep();
    Ok(keep.written)
}

/// Switches and losses of a CPU that show the threads of the records kept from before the part.
fn switches(raw: &RawCtf, lane: usize, keep: &Keep) -> FxHashSet<Place> {
    let from = keep.cut.times().0;
    let mut stay = FxHashSet::default();
    // The running thread is known from a switch, or from a loss and the switch after it.
    let (mut latest, mut open, mut begun) = (None, false, false);
    raw.each_event(lane, &mut |time: Nanos, cpu, kind| {
        let place = (time, cpu);
        if kind == RawKind::Switch && std::mem::take(&mut open) {
            stay.insert(place);
        }
        let needed = match time < from {
            true => kind == RawKind::Process || keep.stays_from_before(place),
            false => !std::mem::replace(&mut begun, true),
        };
        if needed && kind != RawKind::Lost {
            stay.extend(latest.map(|(_, place)| place));
            open |= kind != RawKind::Switch && !matches!(latest, Some((RawKind::Switch, _)));
        }
        if matches!(kind, RawKind::Switch | RawKind::Lost) {
            latest = Some((kind, place));
        }
    });
    stay
}

struct Copy<'a> {
    raw: &'a RawCtf,
    keep: Keep,
    /// Replacements for names, if names are removed.
    names: Option<Names>,
    /// The output folder.
    folder: PathBuf,
    bytes: u64,
}

/// A stream of the cut.
#[derive(Default)]
struct Stream {
    file: Option<(usize, BufWriter<File>)>,
    /// Number of packets and lost events so far.
    counts: Counts,
    /// Whether something was written.
    begun: bool,
    /// A packet without events, to show that the CPU exists if its stream has no event in the part.
    empty: Option<(usize, Vec<u8>)>,
    buffer: Vec<u8>,
}

impl Copy<'_> {
    fn path(&self, folder: usize) -> PathBuf {
        let name = self.raw.folders.get(folder).map_or("", |f| f.name.as_str());
        if self.names.is_some() {
            // A session may have any name.
            let own = if name.is_empty() { String::new() } else { format!("trace{folder}") };
            return self.folder.join(own);
        }
        // Names may come from an archive and must not lead outside of the folder.
        let inside = |part: &&str| !matches!(*part, "" | "." | "..");
        self.folder.join(name.split('/').filter(inside).collect::<PathBuf>())
    }

    fn metadata(&mut self) -> io::Result<()> {
        for (number, folder) in self.raw.folders.iter().enumerate() {
            let text = match &mut self.names {
                Some(_) if !folder.kernel => continue,
                Some(names) => tsdl::nameless(&folder.text, names),
                None => folder.text.clone(),
            };
            let text = noted(&text, &self.keep.cut.words());
            let path = self.path(number);
            fs::create_dir_all(&path)?;
            fs::write(path.join("metadata"), &text)?;
            self.bytes += text.len() as u64;
        }
        Ok(())
    }

    fn stream(&mut self, lane: usize, number: usize, more: &FxHashSet<Place>) -> io::Result<()> {
        let mut stream = Stream::default();
        let raw = self.raw;
        raw.each_packet(lane, number, &mut |packet| match self.nameless(packet) {
            None if self.names.is_some() => Ok(()),
            None => self.packet(packet, more, &mut stream),
            Some(bytes) => self.packet(&packet.with_bytes(&bytes), more, &mut stream),
        })?;
        if let Some((file, bytes)) = stream.empty.take().filter(|_| !stream.begun) {
            self.put(file, &bytes, &mut stream)?;
        }
        stream.file.map_or(Ok(()), |(_, mut out)| out.flush())
    }

    /// The bytes of a packet with replaced names; `None` if names stay, or for a user-space trace.
    fn nameless(&mut self, packet: &RawPacket<'_>) -> Option<Vec<u8>> {
        let names = self.names.as_mut()?;
        let folder = self.raw.files.get(packet.file)?.0;
        self.raw.folders.get(folder).filter(|folder| folder.kernel)?;
        // Bytes from which no event is read may hold anything, so start with zeros.
        let mut bytes = vec![0; packet.bytes.len()];
        for used in packet.used() {
            let end = used.end.min(bytes.len());
            if let (Some(to), Some(from)) =
                (bytes.get_mut(used.start..end), packet.bytes.get(used.start..end))
            {
                to.copy_from_slice(from);
            }
        }
        for Spot { bits, data, .. } in packet.spots {
            let (start, end) = ((bits.start / 8) as usize, bits.end.div_ceil(8) as usize);
            if !*data {
                let end = end.min(bytes.len());
                if let Some(text) = bytes.get_mut(start..end) {
                    names.replace_c(text);
                }
                continue;
            }
            // Neighbouring bits may belong to other fields.
            for bit in bits.start..bits.end.min(bytes.len() as u64 * 8) {
                let mask = if packet.big { 0x80 >> (bit % 8) } else { 1 << (bit % 8) };
                bytes[(bit / 8) as usize] &= !mask;
            }
        }
        Some(bytes)
    }

    fn packet(
        &mut self,
        packet: &RawPacket<'_>,
        more: &FxHashSet<Place>,
        stream: &mut Stream,
    ) -> io::Result<()> {
        if !packet.is_divisible() {
            for event in packet.events {
                self.keep.event(event.time, event.cpu);
            }
            return self.put(packet.file, packet.bytes, stream);
        }
        if !stream.begun && stream.empty.is_none() {
            let mut empty = Vec::new();
            packet.part(0..0, &Counts::default(), &mut empty);
            stream.empty = Some((packet.file, empty));
        }
        if let Some(gap) = packet.gap
            && (self.keep.side_band(gap.time, gap.cpu) || more.contains(&(gap.time, gap.cpu)))
        {
            // A loss needs something before it.
            if !stream.begun {
                self.part(packet, 0..0, stream)?;
            }
            stream.counts.seq += gap.packets;
            stream.counts.discarded += gap.events;
            self.part(packet, 0..0, stream)?;
        }
        let mut row: Option<Range<usize>> = None;
        for (i, event) in packet.events.iter().enumerate() {
            if !self.stays(event, more) {
                continue;
            }
            let begin = (0..=i).rev().find(|&i| packet.may_begin(i)).unwrap_or(0);
            row = match row {
                Some(row) if row.end >= begin => Some(row.start..i + 1),
                Some(row) => {
                    self.part(packet, row, stream)?;
                    Some(begin..i + 1)
                }
                None => Some(begin..i + 1),
            };
        }
        row.map_or(Ok(()), |row| self.part(packet, row, stream))
    }

    fn stays(&mut self, event: &RawEvent, more: &FxHashSet<Place>) -> bool {
        if self.keep.event(event.time, event.cpu) {
            return true;
        }
        let chosen_out = self.keep.is_inside(event.time);
        let stays = event.kind == RawKind::Process && !chosen_out
            || event.kind == RawKind::Switch && more.contains(&(event.time, event.cpu));
        self.keep.written.outside += u64::from(stays);
        stays
    }

    fn part(
        &mut self,
        packet: &RawPacket<'_>,
        events: Range<usize>,
        stream: &mut Stream,
    ) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut stream.buffer);
        buffer.clear();
        packet.part(events, &stream.counts, &mut buffer);
        stream.counts.seq += 1;
        let done = self.put(packet.file, &buffer, stream);
        stream.buffer = buffer;
        done
    }

    fn put(&mut self, file: usize, bytes: &[u8], stream: &mut Stream) -> io::Result<()> {
        stream.begun = true;
        if stream.file.as_ref().is_none_or(|(open, _)| *open != file) {
            if let Some((_, mut out)) = stream.file.take() {
                out.flush()?;
            }
            let (folder, name) = &self.raw.files[file];
            let path = match self.names {
                Some(_) => self.path(*folder).join(format!("stream_{file}")),
                None => self.path(*folder).join(name),
            };
            // A stream may span several files, and a file may hold several streams.
            let out = File::options().append(true).create(true).open(path)?;
            stream.file = Some((file, BufWriter::new(out)));
        }
        self.bytes += bytes.len() as u64;
        stream.file.as_mut().map_or(Ok(()), |(_, out)| out.write_all(bytes))
    }
}

/// The key of the note in the metadata's `env`.
const NOTE: &[u8] = b"holdup_cut";
/// The first bytes of metadata in text form.
const MAGIC: &[u8] = b"/* CTF 1.8";

/// The metadata with the note that says which part this is.
fn noted(text: &[u8], words: &str) -> Vec<u8> {
    let note = [b"\n\t", NOTE, b" = \"", words.as_bytes(), b"\";"].concat();
    let mut out = Vec::with_capacity(text.len() + note.len());
    if !text.starts_with(MAGIC) {
        out.extend([MAGIC, b" */\n\n"].concat());
    }
    let Some(at) = environment(text) else {
        out.extend_from_slice(text);
        out.extend([b"\nenv {", &note[..], b"\n};\n"].concat());
        return out;
    };
    out.extend_from_slice(&text[..at]);
    out.extend(note);
    // Remove the note of the input, which may be a cut itself.
    let rest = &text[at..];
    let old = rest.trim_ascii_start().strip_prefix(NOTE);
    let end = old.and_then(|old| old.iter().position(|&b| b == b';').map(|n| &old[n + 1..]));
    out.extend_from_slice(end.unwrap_or(rest));
    out
}

/// Offset of the content of the block `env {`, after the brace.
fn environment(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0u32);
    while at < text.len() {
        let rest = &text[at..];
        let skip = |open: usize, end: &[u8]| {
            let found = rest[open..].windows(end.len()).position(|w| w == end);
            found.map_or(rest.len(), |n| open + n + end.len())
        };
        at += match rest {
            [b'/', b'*', ..] => skip(2, b"*/"),
            [b'/', b'/', ..] => skip(2, b"\n"),
            [b'"', ..] => string(rest),
            [b'{', ..] => {
                depth += 1;
                1
            }
            [b'}', ..] => {
                depth = depth.saturating_sub(1);
                1
            }
            [first, ..] if first.is_ascii_alphanumeric() || *first == b'_' => {
                let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
                let len = rest.iter().take_while(|b| is_word(b)).count();
                let behind = rest[len..].trim_ascii_start();
                if depth == 0 && &rest[..len] == b"env" && behind.starts_with(b"{") {
                    return Some(text.len() - behind.len() + 1);
                }
                len
            }
            _ => 1,
        };
    }
    None
}

/// Length in bytes of a string with its quotes.
fn string(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&b) = text.get(at) {
        at += if b == b'\\' { 2 } else { 1 };
        if b == b'"' {
            break;
        }
    }
    at.min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(text: &str) -> String {
        String::from_utf8(noted(text.as_bytes(), "holdup cut --cpu 1")).unwrap()
    }

    #[test]
    fn the_note_stands_in_the_environment() {
        let line = "\n\tholdup_cut = \"holdup cut --cpu 1\";";
        let text =
            "/* CTF 1.8 */\n// env {\ntrace { env = \"\\\"env {\"; };\nenv {\n\ta = 1;\n};\n";
        let noted = note(text);
        assert_eq!(noted, text.replace("\nenv {", &format!("\nenv {{{line}")));
        assert_eq!(note(&noted), noted, "there is one note");
        let noted = note("trace { };\n");
        assert_eq!(noted, format!("/* CTF 1.8 */\n\ntrace {{ }};\n\nenv {{{line}\n}};\n"));
    }

    #[test]
    fn text_that_ends_anywhere_is_no_harm() {
        let text = "/* CTF 1.8 */ trace { x = \"\\\"\"; }; env { a = \"b\"; };";
        for n in 0..text.len() {
            let _ = noted(&text.as_bytes()[..n], "w");
        }
    }
}

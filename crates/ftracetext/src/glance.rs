//! A quick look at a large text: its beginning, its end, and some pieces in between are read as if
//! they were the whole text.
//!
//! A text has no tables. So an event seen in a piece exists, but an event not seen may still exist.
//! The number of events can only be estimated, and the time of the earliest is not known.

use crate::sniff::{DialectKind, sniff};
use crate::trace::TextOptions;
use holdup_trace::{ErrorKind, Glance, Quality, QualityCode, Reader, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes at the beginning: all headings of a usual text, and many events.
const FRONT: u64 = 256 << 10;
/// Number of pieces after the front, the last at the end of the file, and the bytes of each.
const PIECES: u64 = 24;
const PIECE: u64 = 64 << 10;

impl TextOptions {
    /// Look at a text without reading all of it. `None` where samples prove nothing: for a short
    /// text or one of unusual lines, and for a systrace page, whose trace can be anywhere.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn glance(&self, path: &Path) -> Result<Option<Glance>> {
        let file = File::open(path).map_err(|e| ErrorKind::from(e).in_file(path))?;
        let samples = Samples::of(&file).map_err(|e| ErrorKind::from(e).in_file(path))?;
        let Some(samples) = samples else { return Ok(None) };
        // Reading the whole text will report what is wrong.
        let Ok(mut text) = self.open_stream(path, &*samples.text) else { return Ok(None) };
        let looked_at = samples.text.len() as u64;
        let estimated_events = Glance::estimate(text.event_count(), looked_at, samples.size);
        let (info, found) = text.amend();
        // Samples cannot show how many events lack a column, or whether all of a kind do.
        if QualityCode::LACKS.into_iter().any(|code| found.count(code) > 0) {
            return Ok(None);
        }
        let mut quality = Quality::default();
        for code in [QualityCode::MicrosecondClock, QualityCode::TickClock, QualityCode::Truncated]
        {
            quality.add(code, found.count(code));
        }
        let mut info = std::mem::replace(info, holdup_trace::TraceInfo::new(path.into(), ""));
        // Offsets in the samples are not offsets in the file.
        info.extra.retain(|(label, _)| !label.starts_with("unreadable line"));
        if let Some((first, last)) = info.span.take() {
            let s = |ns: u64| format!("{}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000);
            let value = format!("{} - {} s, if its lines are in order", s(first), s(last));
            info.extra.push(("time of the samples".to_owned(), value));
        }
        Ok(Some(Glance {
            info,
            quality,
            listed: None,
            all_kinds: false,
            all_tasks: false,
            estimated_events,
            size: samples.size,
            looked_at,
        }))
    }
}

/// Whole lines from several places of a text, in file order.
struct Samples {
    text: Vec<u8>,
    size: u64,
}

impl Samples {
    fn of(file: &File) -> std::io::Result<Option<Samples>> {
        let size = file.metadata()?.len();
        let mut text = Vec::new();
        let step = size.saturating_sub(FRONT) / PIECES;
        if step <= PIECE {
            return Ok(None);
        }
        let front = piece(file, 0, FRONT)?;
        if sniff(&front).is_none_or(|d| d.kind == DialectKind::Html) {
            return Ok(None);
        }
        text.extend_from_slice(until_last_line(&front));
        for i in 1..=PIECES {
            // Each piece ends where the next stride begins, so the last ends with the file.
            let to = if i == PIECES { size } else { FRONT + i * step };
            let bytes = piece(file, to - PIECE, PIECE)?;
            // The line in which the piece begins is incomplete.
            let begin = memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |n| n + 1);
            let whole =
                if i == PIECES { &bytes[begin..] } else { until_last_line(&bytes[begin..]) };
            text.extend_from_slice(whole);
        }
        Ok(Some(Samples { text, size }))
    }
}

fn piece(file: &File, at: u64, len: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], at + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}

fn until_last_line(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr::memrchr(b'\n', bytes).map_or(0, |n| n + 1)]
}

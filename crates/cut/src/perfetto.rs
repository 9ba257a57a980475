//! Perfetto: packets are copied unchanged, one by one and uncompressed. A packet of ftrace events
//! stays if one of its events is in the part or needed for the state at its beginning, so the cut
//! begins and ends up to a packet outside of the part; its note says which events belong to the
//! part. Descriptions of threads and machines stay; measurements from other times are removed.
//!
//! Without names a packet is rewritten with only the data known to contain none.

use crate::keep::Keep;
use crate::names::Names;
use crate::wire::{Field, fields, put_bytes};
use crate::{CutError, Written, into_file};
use holdup_perfetto::{RawPacket, each_packet};
use std::io::{self, Write};
use std::path::Path;

/// `Trace.packet`.
const PACKET: u32 = 1;
/// Fields of `TracePacket`.
const TIMESTAMP: u32 = 8;
const INTERNED_DATA: u32 = 12;
const SEQUENCE_FLAGS: u32 = 13;
const TIMESTAMP_CLOCK_ID: u32 = 58;
const FOR_TESTING: u32 = 900;
/// `TestEvent.str`.
const TEXT: u32 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: later packets refer to this one.
const CLEARED: u64 = 1;
/// `BUILTIN_CLOCK_BOOTTIME`, the clock of ftrace's times.
const BOOTTIME: u64 = 6;
/// Packets with measurements: `sys_stats`, `process_stats`, `track_event`, `android_log`,
/// `perf_sample`, `frame_timeline_event`.
const MEASURED: [u32; 6] = [7, 9, 11, 39, 66, 76];

/// Cut the file `input`.
pub(crate) fn write(input: &Path, keep: Keep, output: &Path) -> Result<Written, CutError> {
    let mut keep = keep;
    let mut names = keep.cut.anonymous.then(Names::default);
    into_file(output, |out| {
        let failed = |error: io::Error| CutError::Output { path: output.to_owned(), error };
        let mut key = Vec::new();
        let mut note = Vec::new();
        put_bytes(&mut note, TEXT, keep.cut.words().as_bytes());
        let mut noted = Vec::new();
        put_bytes(&mut noted, FOR_TESTING, &note);
        let mut trailer = Vec::new();
        put_bytes(&mut trailer, PACKET, &noted);
        each_packet(input, &mut |packet: &RawPacket<'_>| -> Result<(), CutError> {
            if !stays(packet, &mut keep) {
                return Ok(());
            }
            key.clear();
            match &mut names {
                None => put_bytes(&mut key, PACKET, packet.content),
                Some(names) => match packet.nameless(&mut |word| names.replace(word)) {
                    Some(content) => put_bytes(&mut key, PACKET, &content),
                    None => return Ok(()),
                },
            }
            out.write_all(&key).map_err(failed)
        })?;
        // At the end, because tools recognise the format by the first packets.
        out.write_all(&trailer).map_err(failed)?;
        Ok(keep.written)
    })
}

fn stays(packet: &RawPacket<'_>, keep: &mut Keep) -> bool {
    if packet.times.is_empty() {
        return !is_measured_elsewhen(packet.content, keep);
    }
    let before = keep.written;
    let mut stays = false;
    for time in packet.times {
        stays |= keep.event(*time, packet.cpu);
    }
    // A sample's packet may define data to which later samples refer.
    stays |= is_referred_to(packet.content);
    if stays {
        let inside = keep.written.inside - before.inside;
        keep.written.outside = before.outside + packet.times.len() as u64 - inside;
    }
    stays
}

fn is_referred_to(content: &[u8]) -> bool {
    fields(content).any(|field| match field {
        (INTERNED_DATA, _) => true,
        (SEQUENCE_FLAGS, Field::Int(n)) => n & CLEARED != 0,
        _ => false,
    })
}

/// Whether a packet without events is a measurement from a time outside of the part, and no later
/// packet refers to it.
fn is_measured_elsewhen(content: &[u8], keep: &Keep) -> bool {
    let (mut time, mut clock, mut measured) = (None, BOOTTIME, false);
    for (number, field) in fields(content) {
        match (number, field) {
            (TIMESTAMP, Field::Int(n)) => time = Some(n),
            (TIMESTAMP_CLOCK_ID, Field::Int(n)) => clock = n,
            (number, _) => measured |= MEASURED.contains(&number),
        }
    }
    let stays = is_referred_to(content) || clock != BOOTTIME;
    measured && !stays && time.is_some_and(|t| !keep.is_inside(t))
}

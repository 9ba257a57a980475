//! The packets of a stream file: their offsets, contents and losses.

use crate::exec::{Regs, run};
use crate::kind::reg;
use crate::schema::{StreamClass, TraceClass};
use holdup_trace::{Cpu, Quality, QualityCode};

/// First bytes of a packet, in the byte order of the trace.
pub(crate) const MAGIC: u64 = 0xc1fc_1fc1;

/// A packet of events.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Number of the file and first byte in it.
    pub(crate) file: u32,
    pub(crate) start: u64,
    /// Bytes of the packet that exist in the file.
    pub(crate) len: u64,
    /// Bits that hold header, context and events.
    pub(crate) content: u64,
    /// Number of the trace, and of the stream's kind in it.
    pub(crate) class: (u32, u32),
    /// Time at which it was begun, in steps of the clock.
    pub(crate) begin: Option<u64>,
    pub(crate) cpu: Cpu,
    /// Number of the stream among several of one kind.
    pub(crate) instance: u64,
    /// Sequence number of the packet in its stream.
    pub(crate) seq: Option<u64>,
    /// Events discarded between the stream's beginning and the packet's end.
    pub(crate) discarded: Option<u64>,
}

/// Why the rest of a file is not read.
enum Stop {
    /// Not where a packet begins, or not one of this trace.
    NoPacket,
    /// Its sizes are impossible.
    Sizes,
}

/// Find the packets of `bytes`, which are file number `file` of trace number `number`.
pub(crate) fn index(
    bytes: &[u8],
    file: u32,
    number: u32,
    trace: &TraceClass,
    quality: &mut Quality,
) -> Vec<Packet> {
    let mut packets = Vec::new();
    let mut regs = Regs::new();
    let mut start = 0usize;
    while start < bytes.len() {
        let rest = &bytes[start..];
        match one(rest, number, trace, &mut regs) {
            Ok((mut packet, size)) => {
                packet.file = file;
                packet.start = start as u64;
                // The recorder died, or the file was cut: the events before the cut are sound.
                if packet.len < size {
                    quality.add(QualityCode::Truncated, 1);
                }
                // Less than the size of the header itself.
                if packet.content == 0 {
                    quality.add(QualityCode::BadRecords, 1);
                }
                start += packet.len as usize;
                packets.push(packet);
            }
            Err(stop) => {
                // Buffers of a crashed machine end in bytes never written.
                if rest.iter().all(|&b| b == 0) {
                    break;
                }
                if matches!(stop, Stop::Sizes) {
                    quality.add(QualityCode::BadRecords, 1);
                }
                quality.add(QualityCode::SkippedBytes, rest.len() as u64);
                break;
            }
        }
    }
    packets
}

/// The packet at the start of `bytes`, and its size in bytes by its own account.
fn one(
    bytes: &[u8],
    number: u32,
    trace: &TraceClass,
    regs: &mut Regs,
) -> Result<(Packet, u64), Stop> {
    let end = bytes.len() as u64 * 8;
    for r in [reg::CONTENT, reg::PACKET, reg::SEQ, reg::DISCARDED, reg::CPU, reg::BEGIN] {
        regs.int[usize::from(r)] = u64::MAX;
    }
    regs.int[usize::from(reg::INSTANCE)] = 0;
    let mut at = 0;
    let header = &trace.header;
    run(&header.steps, bytes, &mut at, end, regs).map_err(|_| Stop::NoPacket)?;
    if header.has_magic && regs.int[usize::from(reg::MAGIC)] != MAGIC {
        return Err(Stop::NoPacket);
    }
    if let Some(uuid) = trace.uuid.filter(|_| header.has_uuid)
        && text(bytes, regs.text[usize::from(reg::UUID)]) != uuid
    {
        return Err(Stop::NoPacket);
    }
    let wanted = regs.int[usize::from(reg::STREAM)];
    let stream = match header.has_stream {
        true => trace.streams.iter().position(|s| s.id == wanted),
        false => (!trace.streams.is_empty()).then_some(0),
    };
    let Some(stream) = stream else { return Err(Stop::NoPacket) };
    let class = &trace.streams[stream];
    enter(class, bytes, &mut at, end, regs).map_err(|()| Stop::NoPacket)?;
    let get = |r: u8| Some(regs.int[usize::from(r)]).filter(|&v| v != u64::MAX);
    // If one size is missing, the other replaces it; if both are, the packet reaches to the file's
    // end.
    let whole = get(reg::PACKET).or(get(reg::CONTENT)).unwrap_or(end);
    let content = get(reg::CONTENT).unwrap_or(whole);
    if !whole.is_multiple_of(8) || whole < at || whole == 0 || content > whole {
        return Err(Stop::Sizes);
    }
    let size = whole / 8;
    let len = size.min(bytes.len() as u64);
    let packet = Packet {
        file: 0,
        start: 0,
        len,
        content: if content < at { 0 } else { content.min(len * 8) },
        class: (number, stream as u32),
        begin: get(reg::BEGIN),
        cpu: get(reg::CPU).and_then(|cpu| u16::try_from(cpu).ok()).map_or(Cpu::UNKNOWN, Cpu),
        instance: regs.int[usize::from(reg::INSTANCE)],
        seq: get(reg::SEQ),
        discarded: get(reg::DISCARDED),
    };
    Ok((packet, size))
}

/// Read a packet's header and context into `regs`; leaves `at` where the events begin.
pub(crate) fn enter(
    class: &StreamClass,
    data: &[u8],
    at: &mut u64,
    end: u64,
    regs: &mut Regs,
) -> Result<(), ()> {
    *at = 0;
    for steps in &class.packet {
        run(steps, data, at, end, regs).map_err(|_| ())?;
    }
    Ok(())
}

/// The bytes a plan found.
#[inline]
pub(crate) fn text(data: &[u8], (from, len): (u32, u32)) -> &[u8] {
    let from = from as usize;
    data.get(from..from.saturating_add(len as usize).min(data.len())).unwrap_or(&[])
}

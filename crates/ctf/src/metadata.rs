//! The file `metadata`: text, or packets of text.

use holdup_trace::ErrorKind;

/// First bytes of a packet of metadata, in the byte order of the trace.
pub(crate) const MAGIC: u32 = 0x75d1_1d57;
/// First words of plain text.
pub(crate) const TEXT: &[u8] = b"/* CTF 1.8";
/// Bytes in front of the text in a packet (CTF 1.8, 7.1): magic, uuid, checksum, content and
/// packet size in bits, three bytes of schemes, version.
const HEADER: usize = 37;

/// Whether a file begins as packets of metadata do.
pub(crate) fn is_packets(head: &[u8]) -> bool {
    head.first_chunk().is_some_and(|&magic| {
        u32::from_le_bytes(magic) == MAGIC || u32::from_be_bytes(magic) == MAGIC
    })
}

/// The error for metadata of CTF 2, which is JSON, in packets or not.
fn json() -> ErrorKind {
    ErrorKind::Unsupported {
        what: "a CTF 2 trace (its metadata is JSON)".into(),
        way_out: "record with lttng create --trace-format=ctf-1.8, or convert it: \
            babeltrace2 convert TRACE --component=sink.ctf.fs \
            --params='path=\"OUT\",ctf-version=\"1\"'"
            .into(),
    }
}

/// The text of the metadata, and whether its end is missing.
pub(crate) fn text(bytes: &[u8]) -> Result<(Vec<u8>, bool), ErrorKind> {
    if bytes.first() == Some(&0x1e) || bytes.starts_with(b"{") {
        return Err(json());
    }
    if !is_packets(bytes) {
        return Ok((bytes.to_vec(), false));
    }
    let big = bytes[0] == 0x75;
    let u32_at = |packet: &[u8], at: usize| -> u32 {
        let raw = packet.get(at..).and_then(|b| b.first_chunk()).copied().unwrap_or([0; 4]);
        if big { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) }
    };
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let packet = &bytes[at..];
        let bad = |offset: usize, expected: &str, found: String| {
            Err(ErrorKind::malformed(
                (at + offset) as u64,
                "packet of metadata".to_owned(),
                expected,
                found,
            ))
        };
        if packet.len() < HEADER {
            return Ok((out, true));
        }
        if u32_at(packet, 0) != MAGIC {
            return bad(0, "the magic number 75d11d57", format!("{:08x}", u32_at(packet, 0)));
        }
        if packet[35] == 2 || packet.get(HEADER) == Some(&0x1e) {
            return Err(json());
        }
        if packet[35..37] != [1, 8] {
            let found = format!("{}.{}", packet[35], packet[36]);
            return bad(35, "version 1.8", found);
        }
        if packet[32..34] != [0, 0] {
            let found = format!("compression {}, encryption {}", packet[32], packet[33]);
            return bad(32, "plain text", found);
        }
        let content = (u32_at(packet, 24) / 8) as usize;
        let size = (u32_at(packet, 28) / 8) as usize;
        if content < HEADER || size < content {
            return bad(24, "a packet that holds its header", format!("{content} of {size} bytes"));
        }
        out.extend_from_slice(&packet[HEADER..content.min(packet.len())]);
        if content > packet.len() {
            return Ok((out, true));
        }
        at += size;
    }
    Ok((out, false))
}

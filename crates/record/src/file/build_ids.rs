//! Build ids of the kernel and of each mapped file, so that perf finds the right symbols later.

use super::bytes::Bytes;
use super::running::Running;
use holdup_perfdata::format::{STRING_ALIGN, record};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that perf reserves: the length of a SHA-1.
const ROOM: usize = 20;
/// Maximal size of a note section that is read. Real ones have some hundred bytes.
const MOST: u64 = 64 << 10;

/// The content of the section, which a pipe contains as records. Empty if no build id is known.
pub(crate) fn records(running: &Running, proc: &Path, sys: &Path) -> Bytes {
    let mut b = Bytes::default();
    let kernel = fs::read(sys.join("kernel/notes")).unwrap_or_default();
    if let Some(id) = in_notes(&kernel) {
        record(&mut b, record::MISC_KERNEL, id, b"[kernel.kallsyms]");
    }
    for (path, name) in running.files(proc) {
        if let Some(id) = of_file(&path) {
            record(&mut b, record::MISC_USER, &id, &name);
        }
    }
    b
}

/// One record of perf's format (`struct perf_record_header_build_id`).
fn record(b: &mut Bytes, misc: u16, id: &[u8], name: &[u8]) {
    let id = &id[..id.len().min(ROOM)];
    b.record(record::HEADER_BUILD_ID, misc | record::MISC_BUILD_ID_SIZE, |b| {
        // The process that has it mapped: -1 is the machine itself, not a guest of it.
        b.u32(u32::MAX).put(id).zeros(ROOM - id.len()).put(&[id.len() as u8, 0, 0, 0]);
        let padded = (name.len() + 1).next_multiple_of(STRING_ALIGN);
        // perf pads such records to a multiple of 8 plus 4 bytes; the name may be longer.
        b.put(name).zeros(padded - name.len() + 4);
    });
}

/// The build id among ELF notes. A note has three words (length of name, of content, type), name
/// and content, the latter two padded to 4 bytes.
fn in_notes(mut notes: &[u8]) -> Option<&[u8]> {
    const BUILD_ID: u32 = 3; // NT_GNU_BUILD_ID
    let word =
        |b: &[u8], at: usize| b.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word));
    loop {
        let (name, content) = (word(notes, 0)? as usize, word(notes, 4)? as usize);
        let kind = word(notes, 8)?;
        let begin = name.checked_next_multiple_of(4)?.checked_add(12)?;
        let end = begin.checked_add(content)?;
        let found = notes.get(begin..end)?;
        if kind == BUILD_ID && notes.get(12..12 + name) == Some(b"GNU\0") && !found.is_empty() {
            return Some(found);
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
}

/// The build id of an ELF file in this machine's byte order; `None` if it has none or is not an ELF
/// file.
fn of_file(path: &Path) -> Option<Vec<u8>> {
    const NOTE: u32 = 4; // PT_NOTE
    // Opening a pipe would block.
    let file = File::open(path).ok().filter(|f| f.metadata().is_ok_and(|m| m.is_file()))?;
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).ok()?;
    let order = if cfg!(target_endian = "big") { 2 } else { 1 };
    if !head.starts_with(b"\x7fELF") || head[5] != order {
        return None;
    }
    // Offsets depend on the class: 1 is 32 bits, 2 is 64.
    let wide = match head[4] {
        1 => false,
        2 => true,
        _ => return None,
    };
    let half = |b: &[u8], at: usize| u16::from_ne_bytes([b[at], b[at + 1]]);
    let word = |b: &[u8], at: usize| -> u64 {
        let n = if wide { 8 } else { 4 };
        let mut bytes = [0; 8];
        bytes[..n].copy_from_slice(&b[at..at + n]);
        if cfg!(target_endian = "big") {
            u64::from_be_bytes(bytes) >> (64 - 8 * n)
        } else {
            u64::from_le_bytes(bytes)
        }
    };
    let (at, size, count) = if wide {
        (word(&head, 32), half(&head, 54), half(&head, 56))
    } else {
        (word(&head, 28), half(&head, 42), half(&head, 44))
    };
    let mut entry = [0; 56];
    let entry = if wide { &mut entry[..] } else { &mut entry[..32] };
    for i in 0..u64::from(count) {
        file.read_exact_at(entry, at.checked_add(i * u64::from(size))?).ok()?;
        let kind = u32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]);
        if kind != NOTE {
            continue;
        }
        let (offset, len) = if wide {
            (word(entry, 8), word(entry, 32))
        } else {
            (word(entry, 4), word(entry, 16))
        };
        let mut notes = vec![0; len.min(MOST) as usize];
        if file.read_exact_at(&mut notes, offset).is_ok()
            && let Some(id) = in_notes(&notes)
        {
            return Some(id.to_vec());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
        let mut b = Bytes::default();
        b.count(name.len()).count(content.len()).u32(kind);
        for part in [name, content] {
            b.put(part).zeros(part.len().next_multiple_of(4) - part.len());
        }
        b.0
    }

    #[test]
    fn the_build_id_is_found_among_other_notes_and_nothing_in_cut_ones() {
        let notes = [note(b"Linux\0", 1, b"x"), note(b"GNU\0", 3, &[7; 20])].concat();
        assert_eq!(in_notes(&notes), Some(&[7; 20][..]));
        for n in 0..notes.len() {
            assert_eq!(in_notes(&notes[..n]), None);
        }
        assert_eq!(in_notes(&[0xff; 64]), None);
    }

    #[test]
    fn what_is_no_elf_file_has_none() {
        assert_eq!(of_file(Path::new("/proc/self/status")), None);
        assert_eq!(of_file(Path::new("/")), None);
        assert_eq!(of_file(Path::new("/nowhere")), None);
    }
}

//! Strings in the fields of raw events.

use crate::names::Names;
use holdup_tracepoint::{Field, Format};

/// Systems whose events users of the machine defined and named.
const PRIVATE: [&str; 7] =
    ["probe", "sdt_", "uprobes", "kprobes", "synthetic", "user_events", "bpf_trace"];

/// Whether the events of this system were named by the user who recorded them.
pub(crate) fn is_private(system: &str) -> bool {
    PRIVATE.iter().any(|p| system.starts_with(p))
}

/// Positions of strings and copied memory in an event.
pub(crate) struct Strings {
    places: Vec<Where>,
}

struct Where {
    at: usize,
    size: usize,
    /// Whether the field holds the string's location: relative to the event's start or to the
    /// field.
    loc: Option<bool>,
    /// Whether it is bytes of memory, not text.
    data: bool,
}

impl Strings {
    /// The positions in events of this format.
    pub(crate) fn of(format: &Format) -> Strings {
        let places = format.fields.iter().filter_map(|f| of_field(format, f));
        Strings { places: places.collect() }
    }

    /// Replace strings and copied memory in `event`.
    pub(crate) fn replace(&self, event: &mut [u8], big: bool, names: &mut Names) {
        for p in &self.places {
            let range = match p.loc {
                None => p.at..p.at.saturating_add(p.size),
                Some(relative) => {
                    let Some(b) = event.get(p.at..).and_then(|b| b.first_chunk::<4>()) else {
                        continue;
                    };
                    let v = if big { u32::from_be_bytes(*b) } else { u32::from_le_bytes(*b) };
                    let (at, len) = ((v & 0xffff) as usize, (v >> 16) as usize);
                    let at = at + if relative { p.at + 4 } else { 0 };
                    at..at + len
                }
            };
            let end = range.end.min(event.len());
            let Some(field) = event.get_mut(range.start..end) else { continue };
            match p.data {
                true => field.fill(0),
                false => names.replace_c(field),
            }
        }
    }
}

fn of_field(format: &Format, f: &Field) -> Option<Where> {
    // Names of lock classes come from the kernel's source.
    if format.system == "lock" {
        return None;
    }
    let is_loc = f.data_loc || f.rel_loc;
    if f.array.is_none() && !is_loc {
        return None;
    }
    let data = f.ty.contains("unsigned char") || f.ty.contains("u8");
    if !data && !f.ty.contains("char") {
        return None;
    }
    // An array without a size extends to the end.
    let size = if f.size == 0 { usize::MAX } else { f.size as usize };
    Some(Where { at: f.offset as usize, size, loc: is_loc.then_some(f.rel_loc), data })
}

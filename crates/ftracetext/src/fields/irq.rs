//! `irq:*`, `workqueue:*`, `exceptions:*`.

use super::{Context, without_address};
use crate::scan::{Keys, int, pointer, trim_end, trim_start, word};
use holdup_trace::{NameId, What};

/// `irq=24 name=virtio0-input.0`.
pub(super) fn entry(body: &[u8], cx: &mut Context<'_>) -> Option<What> {
    let mut k = Keys::new(body);
    let irq = k.int(b"irq=")? as u32;
    let name = k.rest(b"name=").or_else(|| k.rest(b"handler=")).unwrap_or(b"");
    Some(What::IrqEntry { irq, name: cx.name(irq, without_address(trim_end(name))) })
}

/// A work item and its function: an address, or a name where the text resolved it.
pub(super) struct Work {
    pub(super) work: u64,
    pub(super) function: u64,
    pub(super) name: NameId,
}

/// `work struct=0x… function=f …`, `work struct 0x…: function f`, raw `work=0x… function=f`.
pub(super) fn work(body: &[u8], cx: &mut Context<'_>) -> Option<Work> {
    let work = work_address(body)?;
    let mut k = Keys::new(body);
    let function = k.rest(b"function=").or_else(|| k.rest(b"function ")).map_or(&b""[..], word);
    // A symbol may be all hex digits (`decade`); an address has at least eight.
    Some(match pointer(function) {
        Some((function, len)) if len >= 8 => Work { work, function, name: NameId::NONE },
        _ => {
            // Some options print `function+0x0/0x50`.
            let end = function.iter().position(|&b| b == b'+').unwrap_or(function.len());
            Work { work, function: 0, name: cx.name((work >> 4) as u32, &function[..end]) }
        }
    })
}

/// The address of the work item.
pub(super) fn work_address(body: &[u8]) -> Option<u64> {
    let mut k = Keys::new(body);
    let text = k.rest(b"struct=").or_else(|| k.rest(b"struct ")).or_else(|| k.rest(b"work="))?;
    Some(pointer(trim_start(text))?.0)
}

/// `address=0x… ip=0x… error_code=…`. A symbol in place of an address is not resolved back.
#[inline]
pub(super) fn page_fault(body: &[u8], user: bool) -> Option<What> {
    let mut k = Keys::new(body);
    let address = place(k.rest(b"address=")?);
    let ip = place(k.rest(b"ip=")?);
    Some(What::PageFault { user, address, ip })
}

fn place(s: &[u8]) -> u64 {
    if s.starts_with(b"0x") { int(s).unwrap_or(0) } else { 0 }
}

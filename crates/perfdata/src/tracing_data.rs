//! The tracing-data section: tracefs' own description of the events, as `trace-cmd` and perf
//! store it (kernel `tools/perf/util/trace-event-info.c`).
//!
//! ```text
//! 17 08 44 "tracing"  version NUL  endian:u8 (1 big)  long:u8  page:u32
//! "header_page" NUL  size:u64 text      "header_event" NUL  size:u64 text
//! count:u32  { size:u64 text }                                the ftrace system
//! count:u32  { system NUL  count:u32  { size:u64 text } }     the others
//! size:u32 kallsyms   size:u32 printk formats   size:u64 saved cmdlines (version 0.6)
//! ```

use crate::cursor::{Cursor, Order, text};
use crate::format::TRACING_DATA_MAGIC as MAGIC;
use holdup_tracepoint::Format;

/// The content of the section.
#[derive(Debug, Default)]
pub(crate) struct TracingData {
    /// Bytes of a C `long` on the recorded machine.
    pub(crate) long_size: u8,
    /// The formats of all events described.
    pub(crate) formats: Vec<Format>,
    /// Descriptions that could not be read.
    pub(crate) bad_formats: u64,
    /// `/proc/kallsyms`, possibly empty.
    pub(crate) kallsyms: Vec<u8>,
    /// (thread, name) pairs.
    pub(crate) cmdlines: Vec<(u32, String)>,
    /// Whether the section ends before its content does.
    pub(crate) truncated: bool,
}

/// Parse as far as the bytes reach; `None` if they are no tracing data at all.
pub(crate) fn parse(bytes: &[u8]) -> Option<TracingData> {
    let mut c = Cursor::new(bytes, Order::Little);
    if c.bytes(MAGIC.len())? != MAGIC {
        return None;
    }
    let version = text(c.c_str()?);
    let order = if c.u8()? == 0 { Order::Little } else { Order::Big };
    c.set_order(order);
    let mut data =
        TracingData { long_size: if c.u8()? == 4 { 4 } else { 8 }, ..TracingData::default() };
    data.truncated = rest(&mut c, &version, &mut data).is_none();
    Some(data)
}

fn rest(c: &mut Cursor<'_>, version: &str, data: &mut TracingData) -> Option<()> {
    c.u32()?; // page size
    for _ in ["header_page", "header_event"] {
        c.c_str()?;
        c.sized64()?;
    }
    formats(c, "ftrace", data)?;
    for _ in 0..c.u32()? {
        let system = text(c.c_str()?);
        formats(c, &system, data)?;
    }
    data.kallsyms = c.sized32()?.to_vec();
    c.sized32()?; // printk formats
    // Versions are "0.4", "0.5", "0.6": one digit each.
    if version >= "0.6" {
        let lines = String::from_utf8_lossy(c.sized64()?).into_owned();
        data.cmdlines = lines
            .lines()
            .filter_map(|l| l.split_once(' '))
            .filter_map(|(pid, comm)| {
                Some((pid.trim().parse().ok()?, comm.trim_end_matches('\0').to_owned()))
            })
            .collect();
    }
    Some(())
}

fn formats(c: &mut Cursor<'_>, system: &str, data: &mut TracingData) -> Option<()> {
    for _ in 0..c.u32()? {
        let bytes = c.sized64()?;
        match Format::parse(&String::from_utf8_lossy(bytes), system) {
            Ok(f) => data.formats.push(f),
            Err(_) => data.bad_formats += 1,
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(order: Order) -> Vec<u8> {
        let u32b = |v: u32| if order == Order::Big { v.to_be_bytes() } else { v.to_le_bytes() };
        let u64b = |v: u64| if order == Order::Big { v.to_be_bytes() } else { v.to_le_bytes() };
        let mut b = Vec::from(*MAGIC);
        b.extend(b"0.6\0");
        b.extend([(order == Order::Big) as u8, 8]);
        b.extend(u32b(4096));
        for name in [&b"header_page\0"[..], b"header_event\0"] {
            b.extend(name);
            b.extend(u64b(2));
            b.extend(b"xx");
        }
        b.extend(u32b(0));
        b.extend(u32b(1));
        b.extend(b"sched\0");
        b.extend(u32b(2));
        for t in [&b"name: sched_switch\nID: 5\nformat:\n"[..], b"junk"] {
            b.extend(u64b(t.len() as u64));
            b.extend(t);
        }
        b.extend(u32b(3));
        b.extend(b"sym");
        b.extend(u32b(0));
        b.extend(u64b(9));
        b.extend(b"17 a b c\n");
        b
    }

    #[test]
    fn both_byte_orders_and_every_truncation() {
        for order in [Order::Little, Order::Big] {
            let b = sample(order);
            let d = parse(&b).unwrap();
            assert_eq!(
                (d.formats.len(), d.bad_formats, &d.kallsyms[..], d.truncated),
                (1, 1, &b"sym"[..], false)
            );
            assert_eq!(d.cmdlines, [(17, "a b c".to_owned())]);
            for n in 0..b.len() {
                assert!(parse(&b[..n]).is_none_or(|d| d.truncated), "{n}");
            }
        }
    }
}

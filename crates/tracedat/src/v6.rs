//! Version 6: one fixed sequence. Source: trace-cmd.dat.v6(5).

use crate::meta::{Buffer, CpuExtent, MANY, Meta, Pointer, TextExtent, bracketed, section, sized};
use crate::source::{Cursor, Source, printable};
use holdup_trace::ErrorKind;

/// A guard: more instances than this are damage.
const MOST_INSTANCES: usize = 1024;

/// Read everything after the initial format.
pub(crate) fn read(meta: &mut Meta, source: &Source, c: &mut Cursor<'_>) -> Result<(), ErrorKind> {
    type Read = fn(&mut Meta, &mut Cursor<'_>) -> Result<(), ErrorKind>;
    let parts: [(_, _, Read); 6] = [
        ("header info", section::HEADER_INFO, Meta::header_info),
        ("ftrace event formats", section::FTRACE_EVENTS, Meta::ftrace_events),
        ("event formats", section::EVENT_FORMATS, Meta::event_formats),
        ("kallsyms", section::KALLSYMS, Meta::kallsyms),
        ("printk formats", section::PRINTK, Meta::printk_formats),
        ("saved command lines", section::CMDLINES, Meta::saved_cmdlines),
    ];
    for (name, id, read) in parts {
        c.enter(name);
        let from = c.pos();
        read(meta, c)?;
        meta.keep(id, source, (from, c.pos()))?;
    }
    c.enter("CPU count");
    let at = c.pos();
    let cpus = c.u32("CPU count")?;
    if cpus > MANY {
        return Err(c.error(at, format!("at most {MANY} CPUs"), cpus.to_string()));
    }
    meta.cpus = Some(cpus);
    let (top, instances) = buffer(meta, c, String::new())?;
    meta.buffers.push(top);
    if meta.options.clock.is_none() && meta.options.texts.is_empty() {
        // With a TRACECLOCK option the content of `trace_clock` follows the table of CPU data. Old
        // versions did not write its size; the clock is no reason to reject the file.
        meta.options.clock =
            sized(c, "trace clock").ok().and_then(|t| bracketed(&String::from_utf8_lossy(&t)));
    }
    for (name, offset) in instances.into_iter().take(MOST_INSTANCES) {
        let mut c = Cursor::new(source, offset, meta.big, format!("instance {name}"));
        match buffer(meta, &mut c, name) {
            Ok((b, _)) => meta.buffers.push(b),
            Err(ErrorKind::Io(e)) => return Err(e.into()),
            Err(_) => meta.cut += 1,
        }
    }
    Ok(())
}

/// Options, if any, and the table of one buffer's data. Instances found in the options are returned
/// by name and offset.
fn buffer(
    meta: &mut Meta,
    c: &mut Cursor<'_>,
    name: String,
) -> Result<(Buffer, Vec<(String, u64)>), ErrorKind> {
    let mut instances = Vec::new();
    c.enter("options");
    let mut at = c.pos();
    let mut kind = c.bytes(10, "\"options\", \"flyrecord\" or \"latency\"")?;
    if kind == b"options  \0" {
        loop {
            let id = c.u16("option number")?;
            if id == 0 {
                break;
            }
            let size = c.u32("option size")?;
            let data = c.bytes(size as u64, "option")?;
            if let Pointer::Instance(name, offset) = meta.option(id, &data) {
                instances.push((name, offset));
            }
        }
        at = c.pos();
        kind = c.bytes(10, "\"flyrecord\" or \"latency\"")?;
    }
    c.enter("table of CPU data");
    match kind.as_slice() {
        b"flyrecord\0" => {}
        b"latency  \0" => {
            meta.options.texts.push(TextExtent::ToTheEnd(c.pos()));
            return Ok((
                Buffer {
                    name,
                    clock: String::new(),
                    page_size: 0,
                    compressed: false,
                    cpus: Vec::new(),
                },
                instances,
            ));
        }
        other => return Err(c.error(at, "\"flyrecord\\0\" or \"latency  \\0\"", printable(other))),
    }
    // An option may have corrected the number of CPUs.
    let mut cpus = Vec::new();
    for cpu in 0..meta.cpus.unwrap_or(0) {
        cpus.push(CpuExtent {
            cpu,
            offset: c.u64("offset of CPU data")?,
            size: c.u64("size of CPU data")?,
        });
    }
    Ok((Buffer { name, clock: String::new(), page_size: 0, compressed: false, cpus }, instances))
}

//! Files of the latency tracers (irqsoff, wakeup and similar ones): in place of ring buffers they
//! hold the text of the kernel's `trace` file. This module only extracts the text, with what the
//! rest of the file says about the machine.

use crate::blocks::{CpuData, Fetch};
use crate::meta::{Meta, TextExtent, section};
use crate::source::{Cursor, Source};
use holdup_trace::{ErrorKind, Quality, QualityCode, SymbolTable, TraceInfo};
use std::sync::Arc;

/// Upper bound on the size of a text: the tracers keep one buffer's worth.
const LARGEST: usize = 1 << 30;
/// Only used to cut the data into blocks, and text has no pages.
const PAGE: usize = 4096;

/// The text of a latency tracer, and what the file says apart from it.
pub struct LatencyText {
    text: Vec<u8>,
    meta: Meta,
    quality: Quality,
}

impl LatencyText {
    pub(crate) fn read(
        mut meta: Meta,
        at: TextExtent,
        source: Source,
    ) -> Result<LatencyText, ErrorKind> {
        let mut quality = Quality::default();
        let source = Arc::new(source);
        let (data, cut) = match at {
            // Nothing follows the text.
            TextExtent::ToTheEnd(offset) => {
                CpuData::flat(source.clone(), offset, source.len().saturating_sub(offset), PAGE)
            }
            TextExtent::Section(offset) => {
                let mut c = Cursor::new(&source, offset, meta.big, "text of a latency tracer");
                let id = c.u16("section number")?;
                if id != section::BUFFER_TEXT {
                    return Err(c.error(
                        offset,
                        format!("section {}", section::BUFFER_TEXT),
                        format!("section {id}"),
                    ));
                }
                let packed = c.u16("section flags")? & crate::v7::COMPRESSED != 0;
                c.u32("section description")?;
                let size = c.u64("section size")?;
                let start = c.pos();
                drop(c);
                if packed {
                    CpuData::chunked(source, start, meta.big, meta.codec, PAGE)?
                } else {
                    CpuData::flat(source, start, size, PAGE)
                }
            }
        };
        meta.cut += cut as u64;
        let mut text = Vec::new();
        let mut fetch = Fetch::new(&data)?;
        for block in 0..data.blocks() {
            fetch.load(block, &mut quality)?;
            text.extend_from_slice(fetch.block());
            if text.len() > LARGEST {
                return Err(ErrorKind::Unsupported {
                    what: format!(
                        "a trace.dat whose latency tracer wrote more than {} GiB of text",
                        LARGEST >> 30
                    ),
                    way_out: "print it with `trace-cmd report FILE` and read that text".into(),
                });
            }
        }
        // Sizes are rounded up, and old versions wrote wrong ones; text has no NUL.
        text.truncate(text.iter().position(|&b| b == 0).unwrap_or(text.len()));
        quality.add(QualityCode::Truncated, meta.cut);
        Ok(LatencyText { text, meta, quality })
    }

    /// Take the text, for the reader of ftrace text.
    pub fn take_text(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.text)
    }

    /// Complete what the text says with what the rest of the file says.
    pub fn amend(&self, info: &mut TraceInfo, quality: &mut Quality) {
        info.format = format!("trace.dat v{}, text of a latency tracer", self.meta.version);
        // The text states how many CPUs recorded; otherwise the file does.
        let cpus = info.cpus_online;
        crate::describe::describe_machine(info, &self.meta);
        info.cpus_online = cpus.or(info.cpus_online);
        if let Some(clock) = &self.meta.options.clock {
            info.clock.name.clone_from(clock);
        }
        info.symbols = SymbolTable::from_kallsyms(&self.meta.kallsyms);
        let more = self.meta.options.texts.len().saturating_sub(1);
        if more > 0 {
            info.extra.push(("further buffers of text, not read".into(), more.to_string()));
        }
        quality.absorb(&self.quality);
    }
}

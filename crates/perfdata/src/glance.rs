//! A quick look at a file: reads the tables, the records perf wrote before the first sample, and
//! windows of the rest.
//!
//! ```text
//!  header attrs │ front ▓▓▓▓│      ▓│      ▓│      ▓│     ▓│ features
//!               └ walked whole      └ windows at equal distances, the last at the end
//! ```
//!
//! Events seen in a window are proven; events that only the attrs promise are listed. The time span
//! is perf's own (HEADER_SAMPLE_TIME), which the windows may refute.

use crate::attr::{Attr, flag};
use crate::cursor::Order;
use crate::describe;
use crate::open::Facts;
use crate::record::{self, next_record};
use crate::rounds::Rounds;
use crate::schema::{Schema, When};
use crate::source::Source;
use crate::walk::{Walked, resync, walk};
use crate::window::Window;
use holdup_trace::{Capabilities, ErrorKind, Extras, Glance, Result};
use holdup_tracepoint::{Big, Endian, Little};
use std::fs::File;
use std::path::Path;

/// Bytes at the start that are walked record by record. perf names the machine's threads and mapped
/// files there, some hundred KiB on a large machine.
const FRONT: u64 = 4 << 20;
/// Number of windows after the front, and the bytes of each: some ten thousand samples in a few
/// milliseconds.
const WINDOWS: u64 = 32;
const WINDOW: u64 = 64 << 10;

/// Look at a perf.data file without reading all of it; the time hardly depends on its size.
///
/// # Errors
/// Those of [`crate::open`].
pub fn glance(path: &Path) -> Result<Glance> {
    look(path).map_err(|kind| kind.in_file(path))
}

fn look(path: &Path) -> Result<Glance, ErrorKind> {
    let source = Source::file(File::open(path)?)?;
    let (mut facts, (start, end)) = Facts::of_tables(path, &source)?;
    let schema = facts.schema();
    let walked = front(facts.order, &source, &schema, start, end)?;
    facts.records(&source, &walked.meta)?;
    let schema = facts.schema();
    let mut seen = Seen::new(&facts.attrs);
    match facts.order {
        Order::Little => seen.look::<Little>(&source, &schema, start, end)?,
        Order::Big => seen.look::<Big>(&source, &schema, start, end)?,
    }
    let stated = facts.features.sample_span;
    facts.describe(&walked.tasks);
    let census = |kind: u32| walked.census[kind as usize];
    if census(record::COMPRESSED) + census(record::COMPRESSED2) > 0 {
        facts.info.format += " (compressed)";
    }
    let mut info = facts.info;
    info.span = stated.filter(|&(first, last)| {
        first > 0 && first <= last && seen.span.is_none_or(|(a, b)| first <= a && b <= last)
    });
    describe::presences(&mut info.events, &schema, |i, _| seen.attrs.get(i) == Some(&true));
    let listed = Capabilities::promised(&info.events, promised(&facts.attrs));
    info.capabilities = Capabilities::seen(&info.events, seen.extras(&facts.attrs));
    Ok(Glance {
        info,
        quality: facts.quality,
        listed: Some(listed),
        all_kinds: true,
        all_tasks: census(record::FINISHED_INIT) > 0,
        estimated_events: Glance::estimate(seen.samples, seen.bytes, end.saturating_sub(start)),
        size: source.len(),
        looked_at: seen.bytes,
    })
}

/// Walk the records perf wrote first.
fn front(
    order: Order,
    source: &Source,
    schema: &Schema,
    start: u64,
    limit: u64,
) -> std::io::Result<Walked> {
    let end = limit.min(start.saturating_add(FRONT));
    let (mut window, before) = (Window::default(), Rounds::default());
    match order {
        Order::Little => walk::<Little>(source, schema, start, end, limit, &mut window, before),
        Order::Big => walk::<Big>(source, schema, start, end, limit, &mut window, before),
    }
}

/// What was found in the windows.
struct Seen {
    /// For each attr, whether a sample was found.
    attrs: Vec<bool>,
    /// Whether a SWITCH record was found.
    switches: bool,
    span: Option<(u64, u64)>,
    samples: u64,
    bytes: u64,
}

impl Seen {
    fn new(attrs: &[Attr]) -> Seen {
        let attrs = vec![false; attrs.len()];
        Seen { attrs, switches: false, span: None, samples: 0, bytes: 0 }
    }

    fn look<E: Endian>(
        &mut self,
        source: &Source,
        schema: &Schema,
        start: u64,
        end: u64,
    ) -> std::io::Result<()> {
        let len = end.saturating_sub(start);
        let room = len.saturating_sub(WINDOW);
        for i in 0..WINDOWS {
            // Records begin at multiples of 8 from the start of the data.
            let at = start + (room / (WINDOWS - 1) * i).next_multiple_of(8);
            let to = end.min(at.saturating_add(WINDOW));
            let begin = if i == 0 { Some(start) } else { resync::<E>(source, schema, at, end)? };
            let Some(begin) = begin.filter(|&b| b < to) else { continue };
            let bytes = source.read_vec(begin, to - begin)?;
            let mut used = 0;
            while let Some((kind, rec)) = next_record::<E>(&bytes, used) {
                used += rec.len();
                self.record::<E>(schema, kind, rec);
                if record::payload::<E>(kind, rec) > 0 {
                    break;
                }
            }
            self.bytes += used as u64;
        }
        Ok(())
    }

    fn record<E: Endian>(&mut self, schema: &Schema, kind: u32, rec: &[u8]) {
        match kind {
            record::SAMPLE if schema.knows::<E>(rec) => {}
            record::SWITCH | record::SWITCH_CPU_WIDE => {
                self.switches = true;
                return;
            }
            _ => return,
        }
        self.samples += 1;
        if let Some(event) = schema.of_sample::<E>(rec)
            && let Some(seen) = self.attrs.get_mut(event.event.0 as usize)
        {
            *seen = true;
        }
        if let When::At(t) = schema.when::<E>(kind, rec)
            && t != 0
        {
            self.span = Some(self.span.map_or((t, t), |(a, b)| (a.min(t), b.max(t))));
        }
    }

    /// Kinds of data found so far in addition to tracepoints.
    fn extras(&self, attrs: &[Attr]) -> Extras {
        let met = || attrs.iter().zip(&self.attrs).filter(|(_, seen)| **seen).map(|(a, _)| a);
        Extras {
            stacks: met().any(Attr::has_chains),
            counters: met().any(Attr::counts_hardware),
            switch_records: self.switches,
            groups: met().any(Attr::tells_group),
        }
    }
}

/// Kinds of data that perf was asked for in addition to tracepoints.
fn promised(attrs: &[Attr]) -> Extras {
    Extras {
        stacks: attrs.iter().any(Attr::has_chains),
        counters: attrs.iter().any(Attr::counts_hardware),
        switch_records: attrs.iter().any(|a| a.has(flag::CONTEXT_SWITCH)),
        groups: attrs.iter().any(Attr::tells_group),
    }
}

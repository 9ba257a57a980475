//! Writes one line per event.

use crate::describe::Describe;
use crate::fields::{fields, json_comm, json_id};
use crate::names::Spelled;
use crate::put::Out;
use crate::word::Word;
use crate::{Context, Form, Tracker};
use holdup_profile::NamedFrame;
use holdup_symbols::Named;
use holdup_trace::{Batch, Cpu, Event, EventId, Nanos, Pid, Tid, TraceInfo, What};
use std::sync::Arc;

/// The columns of the text format: where each begins.
const CPU: usize = 24;
const THREAD_WIDTH: usize = 25;
/// Each context is indented this much further.
const INDENT: usize = 8;

/// Formats lines in one format.
pub(crate) struct Writer<'a> {
    info: &'a TraceInfo,
    form: Form,
    describe: Describe<'a>,
    /// Thread names in this format.
    comms: Spelled,
    /// By event: its name in this format.
    events: Vec<Word>,
    start: Nanos,
    last: Option<Nanos>,
    /// The clock counts microseconds: further decimals would be meaningless.
    coarse: bool,
    /// The description of one event, for CSV.
    cell: Out,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(info: &'a TraceInfo, form: &Form) -> Writer<'a> {
        let spell: fn(&str) -> String = match form {
            Form::Text { .. } | Form::Csv { .. } => |name| holdup_render::escape(name).into_owned(),
            Form::Json => |name| serde_json::Value::from(name).to_string(),
        };
        let name = |e: &holdup_trace::EventDesc| match form {
            Form::Text { .. } => spell(e.short_name()),
            Form::Csv { .. } | Form::Json => spell(&e.full_name()),
        };
        Writer {
            info,
            form: form.clone(),
            describe: Describe::new(info),
            comms: Spelled::new(info.names.clone(), spell),
            events: info.events.iter().map(|e| Word::new(&name(e))).collect(),
            start: info.span.map_or(0, |s| s.0),
            last: None,
            coarse: info.clock.resolution_ns >= 1000,
            cell: Out::new(1 << 10),
        }
    }

    /// The header.
    pub(crate) fn head(&self, out: &mut Out) {
        match &self.form {
            Form::Text { quiet } => {
                if !quiet {
                    self.about(out);
                }
                out.str(
                    "EVENT                   CPU     ELAPSED_SEC     DELTA_US  \
                    THREAD                   APPL    SYSCALL KERNEL  INTERRUPT\n",
                );
            }
            Form::Json => {}
            Form::Csv { separator } => {
                let keys =
                    ["ts_ns", "cpu", "tid", "pid", "comm", "event", "context", "description"];
                out.str(&keys.join(separator));
                out.push(b'\n');
            }
        }
    }

    fn about(&self, out: &mut Out) {
        out.str("# ");
        out.str(&holdup_render::escape(&self.info.format));
        if let Some((start, _)) = self.info.span {
            out.str(", starts at ");
            out.decimal::<9>(start, 0);
            out.str(" s");
        }
        if !self.info.clock.name.is_empty() {
            out.str(" of clock ");
            out.str(&holdup_render::escape(&self.info.clock.name));
        }
        if self.coarse {
            out.str(", time stamps in microseconds");
        }
        out.push(b'\n');
    }

    /// Write one event.
    #[inline]
    pub(crate) fn line(
        &mut self,
        out: &mut Out,
        e: &Event,
        batch: &Batch,
        context: Context,
        tracker: &Tracker,
        chain: Option<&[NamedFrame]>,
    ) {
        match self.form {
            Form::Text { .. } => {
                self.text(out, e, batch, context, tracker);
                frames_as_text(out, chain.unwrap_or_default());
            }
            Form::Json => {
                self.json(out, e, batch, context, tracker);
                if let Some(chain) = chain {
                    frames_as_json(out, chain);
                }
                out.push(b'}');
            }
            Form::Csv { .. } => self.csv(out, e, batch, context, tracker),
        }
        out.push(b'\n');
        self.last = Some(e.ts);
    }

    fn text(
        &mut self,
        out: &mut Out,
        e: &Event,
        batch: &Batch,
        context: Context,
        tracker: &Tracker,
    ) {
        let start = out.len();
        self.event(out, e);
        if e.cpu == Cpu::UNKNOWN {
            out.pad_to(start, CPU + 2);
            out.push(b'-');
        } else {
            out.pad_to(start, CPU);
            out.int_right(e.cpu.0.into(), 3);
        }
        let elapsed = e.ts.saturating_sub(self.start);
        let delta = e.ts.saturating_sub(self.last.unwrap_or(e.ts));
        out.push(b' ');
        if self.coarse {
            out.decimal::<6>(elapsed / 1000, 15);
            out.push(b' ');
            out.int_right(delta / 1000, 12);
        } else {
            out.decimal::<9>(elapsed, 15);
            out.push(b' ');
            out.decimal::<3>(delta, 12);
        }
        out.str("  ");
        let at = out.len();
        // Blanks are counted in columns, not bytes.
        let surplus = self.describe.thread(out, e.tid, tracker.comm(e));
        out.pad_to(at, THREAD_WIDTH + surplus);
        out.blanks(INDENT * context as usize);
        let before = out.len();
        self.describe.text(out, e, batch, tracker);
        if out.len() == before {
            out.trim();
            out.str(" -");
        }
    }

    fn json(
        &mut self,
        out: &mut Out,
        e: &Event,
        batch: &Batch,
        context: Context,
        tracker: &Tracker,
    ) {
        out.str("{\"ts_ns\":");
        out.int(e.ts);
        out.str(",\"cpu\":");
        match e.cpu {
            Cpu::UNKNOWN => out.str("null"),
            cpu => out.int(cpu.0),
        }
        out.str(",\"tid\":");
        json_id(out, e.tid.0);
        out.str(",\"pid\":");
        json_id(out, tracker.pid(e).0);
        out.str(",\"comm\":");
        json_comm(out, &mut self.comms, e.tid, tracker.comm(e));
        out.str(",\"event\":");
        if e.id == EventId::SIDEBAND {
            out.push(b'"');
            out.str(record_name(e));
            out.push(b'"');
        } else {
            self.event(out, e);
        }
        out.str(",\"context\":\"");
        out.str(context.name());
        out.str("\",\"fields\":{");
        fields(out, &mut self.comms, &self.describe, e, batch, tracker);
        out.push(b'}');
    }

    fn csv(
        &mut self,
        out: &mut Out,
        e: &Event,
        batch: &Batch,
        context: Context,
        tracker: &Tracker,
    ) {
        let Form::Csv { separator } = &self.form else { return };
        out.int(e.ts);
        out.str(separator);
        if e.cpu != Cpu::UNKNOWN {
            out.int(e.cpu.0);
        }
        out.str(separator);
        if e.tid != Tid::UNKNOWN {
            out.int(e.tid.0);
        }
        out.str(separator);
        match tracker.pid(e) {
            Pid::UNKNOWN => {}
            pid => out.int(pid.0),
        }
        out.str(separator);
        let comm =
            if e.tid == Tid::IDLE { b"<idle>" } else { self.comms.get(tracker.comm(e)).text() };
        csv_cell(out, comm, separator);
        out.str(separator);
        let event = self.events.get(e.id.0 as usize);
        csv_cell(out, event.map_or(record_name(e).as_bytes(), Word::text), separator);
        out.str(separator);
        out.str(context.name());
        out.str(separator);
        self.cell.clear();
        self.describe.text(&mut self.cell, e, batch, tracker);
        csv_cell(out, self.cell.written(), separator);
    }

    #[inline(always)]
    fn event(&self, out: &mut Out, e: &Event) {
        match self.events.get(e.id.0 as usize) {
            Some(name) => out.word(name),
            None => out.str(record_name(e)),
        }
    }
}

/// A line for each frame, as `perf script` writes them: address, function, file.
fn frames_as_text(out: &mut Out, chain: &[NamedFrame]) {
    for frame in chain {
        let Named { dso, function } = &frame.named;
        let function = function.as_deref().unwrap_or("[unknown]");
        let dso = dso.as_deref().unwrap_or("[unknown]");
        out.str("\n        ");
        out.hex(frame.address);
        out.push(b' ');
        out.str(&holdup_render::escape(function));
        out.str(" (");
        out.str(&holdup_render::escape(dso));
        out.push(b')');
    }
}

fn frames_as_json(out: &mut Out, chain: &[NamedFrame]) {
    out.str(",\"stack\":[");
    for (i, frame) in chain.iter().enumerate() {
        let Named { dso, function } = &frame.named;
        let text = |name: &Option<Arc<str>>| serde_json::Value::from(name.as_deref()).to_string();
        out.str(if i == 0 { "{\"address\":" } else { ",{\"address\":" });
        out.int(frame.address);
        out.str(",\"symbol\":");
        out.str(&text(function));
        out.str(",\"dso\":");
        out.str(&text(dso));
        out.push(b'}');
    }
    out.push(b']');
}

/// Side-band records have no name of their own in the list of events.
fn record_name(e: &Event) -> &'static str {
    match e.what {
        What::Readings { .. } => "READ",
        What::Stack { .. } => "CALLCHAIN",
        What::Leaves { .. } => "LEAVES",
        What::Mapped { .. } => "MMAP",
        What::InGroup { .. } => "CGROUP",
        What::Comm { .. } => "COMM",
        What::TaskNew { .. } => "FORK",
        What::TaskEnd { .. } => "EXIT",
        What::ContextSwitch { .. } => "SWITCH",
        What::Lost { .. } => "LOST",
        _ => "RECORD",
    }
}

fn csv_cell(out: &mut Out, cell: &[u8], separator: &str) {
    let special = |b: &u8| matches!(b, b'"' | b'\n' | b'\r') || separator.as_bytes().contains(b);
    if !cell.iter().any(special) {
        out.bytes(cell);
        return;
    }
    out.push(b'"');
    for &b in cell {
        if b == b'"' {
            out.push(b'"');
        }
        out.push(b);
    }
    out.push(b'"');
}

//! A trace as it were if nothing but switches had been recorded: a first look at who runs when,
//! in a fraction of the time that all events take.

use crate::{
    Batch, Beside, Capabilities, EventKind, Presence, Quality, Reader, Result, Run, RunDecoder,
    SymbolTable, TraceInfo, What,
};

/// The switches of a trace.
pub struct Switches<'a> {
    reader: &'a dyn Reader,
    info: TraceInfo,
    quality: Quality,
}

impl<'a> Switches<'a> {
    /// Those of `reader`, with what it knows of threads.
    pub fn of(reader: &'a dyn Reader) -> Switches<'a> {
        let mut info = reader.info().clone();
        let beside = Beside { switch_records: info.capabilities.switches, ..Beside::default() };
        for event in &mut info.events {
            if EventKind::of(&event.system, event.short_name()) != Some(EventKind::Switch) {
                event.presence = Presence::Described;
            }
        }
        info.capabilities = Capabilities::of(&info.events, beside);
        info.symbols = SymbolTable::default();
        Switches { reader, info, quality: Quality::default() }
    }
}

impl Reader for Switches<'_> {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn quality(&self) -> &Quality {
        &self.quality
    }

    fn amend(&mut self) -> (&mut TraceInfo, &mut Quality) {
        (&mut self.info, &mut self.quality)
    }

    fn runs(&self) -> &[Run] {
        self.reader.runs()
    }

    fn is_slow_to_decode(&self) -> bool {
        self.reader.is_slow_to_decode()
    }

    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        Box::new(Filter(self.reader.decoder_of_switches(run)))
    }
}

/// Drops what a decoder brings along.
struct Filter<'a>(Box<dyn RunDecoder + 'a>);

impl RunDecoder for Filter<'_> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        let more = self.0.fill(batch);
        batch.events.retain(|e| tells_who_runs(&e.what));
        more
    }
}

fn tells_who_runs(what: &What) -> bool {
    matches!(
        what,
        What::Switch { .. }
            | What::ContextSwitch { .. }
            | What::Comm { .. }
            | What::TaskNew { .. }
            | What::TaskEnd { .. }
            | What::Lost { .. }
    )
}

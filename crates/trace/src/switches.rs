//! A view of a trace with switches only: a first look at which thread runs when, in a fraction of
//! the time that all events take.

use crate::{
    Capabilities, Event, EventKind, Extras, Opened, Presence, Quality, Reader, RunDecoder, Sieve,
    SymbolTable, What,
};

/// The switches of a trace.
pub struct Switches<'a> {
    reader: &'a dyn Reader,
    opened: Opened,
}

impl<'a> Switches<'a> {
    /// The switches of `reader`, with what it knows about threads.
    pub fn of(reader: &'a dyn Reader) -> Switches<'a> {
        let mut info = reader.info().clone();
        let extras = Extras { switch_records: info.capabilities.switches, ..Extras::default() };
        for event in &mut info.events {
            if EventKind::of(&event.system, event.short_name()) != Some(EventKind::Switch) {
                event.presence = Presence::Described;
            }
        }
        info.capabilities = Capabilities::of(&info.events, extras);
        info.symbols = SymbolTable::default();
        let (quality, runs) = (Quality::default(), reader.runs().to_vec());
        Switches { reader, opened: Opened { info, quality, runs } }
    }
}

impl Reader for Switches<'_> {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn opened_mut(&mut self) -> &mut Opened {
        &mut self.opened
    }

    /// Few events are left, so finding them is most of the work.
    fn is_slow_to_decode(&self) -> bool {
        true
    }

    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        Box::new(Sieve(self.reader.decoder_of_switches(run), tells_who_runs))
    }
}

fn tells_who_runs(event: &mut Event) -> bool {
    matches!(
        event.what,
        What::Switch { .. }
            | What::ContextSwitch { .. }
            | What::Comm { .. }
            | What::TaskNew { .. }
            | What::TaskEnd { .. }
            | What::InGroup { .. }
            | What::AttachTask { .. }
            | What::Lost { .. }
    )
}

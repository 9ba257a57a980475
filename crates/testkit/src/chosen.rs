//! A trace as if only some of its system calls had been recorded.

use holdup_syscalls::{Arch, entry_number};
use holdup_trace::{
    Capabilities, Event, EventDesc, EventId, EventKind, Extras, Opened, Presence, Reader,
    RunDecoder, Sieve, What,
};
use std::collections::BTreeMap;

/// A recording of all system calls as it would be with tracepoints of some calls only. The cost of
/// tracing stays that of recording all calls: the untraced calls are as slow as when each left two
/// events.
pub struct ChosenCalls<'a> {
    reader: &'a dyn Reader,
    opened: Opened,
    /// The events of each chosen call, by its number.
    ids: BTreeMap<u32, CallIds>,
}

/// The events of one call.
#[derive(Clone, Copy)]
struct CallIds {
    enter: EventId,
    exit: EventId,
}

impl<'a> ChosenCalls<'a> {
    /// A view of a trace with all calls; the chosen ones are named like the kernel's tracepoints.
    /// `None` if the trace does not have all calls.
    pub fn of<'c>(
        reader: &'a dyn Reader,
        calls: impl IntoIterator<Item = &'c str>,
    ) -> Option<ChosenCalls<'a>> {
        let mut info = reader.info().clone();
        if !info.capabilities.syscalls.are_all() {
            return None;
        }
        let extras = Extras {
            stacks: info.capabilities.stacks,
            counters: info.capabilities.counters,
            // If records show the switches, events are not needed.
            switch_records: info.capabilities.switches,
            groups: info.capabilities.groups,
        };
        for desc in &mut info.events {
            use EventKind::*;
            let kind = EventKind::of(&desc.system, desc.short_name());
            if matches!(kind, Some(SysEnter | SysExit | SysEnterNamed | SysExitNamed)) {
                desc.presence = Presence::Described;
            }
        }
        let arch = Arch::from_uname(info.arch.as_deref().unwrap_or("x86_64"));
        let mut ids = BTreeMap::new();
        for call in calls {
            let Some(nr) = entry_number(arch, call) else { continue };
            let mut event = |half: &str| {
                let (name, system) = (format!("syscalls:sys_{half}_{call}"), "syscalls".to_owned());
                info.events.push(EventDesc { name, system, presence: Presence::Enabled });
                EventId(info.events.len() as u16 - 1)
            };
            ids.insert(nr, CallIds { enter: event("enter"), exit: event("exit") });
        }
        info.capabilities = Capabilities::of(&info.events, extras);
        let opened = Opened { info, ..reader.opened().clone() };
        Some(ChosenCalls { reader, opened, ids })
    }

    /// Whether the event would have been recorded; a chosen call's gets that call's id.
    fn keeps(&self, e: &mut Event) -> bool {
        let (nr, id): (u32, fn(&CallIds) -> EventId) = match e.what {
            What::SysEnter { nr, .. } => (nr, |ids| ids.enter),
            What::SysExit { nr, .. } => (nr, |ids| ids.exit),
            _ => return true,
        };
        let ids = self.ids.get(&nr);
        e.id = ids.map_or(e.id, id);
        ids.is_some()
    }
}

impl Reader for ChosenCalls<'_> {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn opened_mut(&mut self) -> &mut Opened {
        &mut self.opened
    }

    fn is_slow_to_decode(&self) -> bool {
        self.reader.is_slow_to_decode()
    }

    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        Box::new(Sieve(self.reader.decoder(run), |e: &mut Event| self.keeps(e)))
    }
}

//! The events a file describes, as tables indexed by their id.

use holdup_trace::{Capabilities, EventDesc, EventId, QualityCode};
use holdup_tracepoint::{Abi, Format, Plan};
use std::collections::BTreeSet;

/// Events of every kernel of the last fifteen years, each of another system. A file that
/// describes most of them describes all events of its machine; one that does not was recorded
/// with `-e`, and then describes exactly the events asked for (trace-cmd-record(1)).
const EVERYWHERE: [(&str, &str); 5] = [
    ("signal", "signal_generate"),
    ("timer", "timer_start"),
    ("task", "task_newtask"),
    ("irq", "softirq_entry"),
    ("sched", "sched_switch"),
];

/// Stands for an id without description in [`EventTable::ids`].
const NONE: u16 = u16::MAX;

/// What to do with an event, by the id in its `common_type`.
pub(crate) struct EventTable {
    /// Indexed by [`EventId`].
    pub(crate) descs: Vec<EventDesc>,
    plans: Vec<Plan>,
    /// `common_type` to event; [`NONE`] where nothing is described.
    ids: Vec<u16>,
    /// Where `common_pid` is.
    pub(crate) pid_at: usize,
    /// The file was recorded with a list of events and describes these only.
    pub(crate) selected: bool,
    /// Events from this index on occur without being described.
    described: usize,
    /// Descriptions that could not be read.
    pub(crate) unreadable: usize,
}

impl EventTable {
    /// Compile the descriptions, pairs of system and `format` text, of a kernel of this release.
    pub(crate) fn compile(
        texts: &[(String, String)],
        abi: Abi,
        release: Option<&str>,
    ) -> EventTable {
        let mut table = EventTable {
            descs: Vec::new(),
            plans: Vec::new(),
            ids: Vec::new(),
            pid_at: 4,
            selected: false,
            described: 0,
            unreadable: 0,
        };
        let mut everywhere = BTreeSet::new();
        let mut pid_at = None;
        for (system, text) in texts {
            let Ok(format) = Format::parse(text, system) else {
                table.unreadable += 1;
                continue;
            };
            if let Some(at) = EVERYWHERE.iter().position(|&(s, n)| s == system && n == format.name)
            {
                everywhere.insert(at);
            }
            if pid_at.is_none() {
                pid_at =
                    format.field("common_pid").filter(|f| f.size == 4).map(|f| f.offset as usize);
            }
            let plan = Plan::compile_for(&format, abi, release);
            table.add(format.id, EventDesc { name: format.name, system: format.system }, plan);
        }
        table.described = table.descs.len();
        table.pid_at = pid_at.unwrap_or(4);
        table.selected =
            everywhere.len() < EVERYWHERE.len() - 1 && texts.iter().any(|(s, _)| s != "ftrace");
        table
    }

    fn add(&mut self, raw: u16, desc: EventDesc, plan: Plan) {
        let Some(event) = u16::try_from(self.descs.len()).ok().filter(|&e| e != NONE) else {
            return;
        };
        if self.ids.len() <= raw as usize {
            self.ids.resize(raw as usize + 1, NONE);
        }
        // An id described twice: the last one stands, as in trace-cmd.
        self.ids[raw as usize] = event;
        self.descs.push(desc);
        self.plans.push(plan);
    }

    /// Give events that occur but are not described a name of their own.
    pub(crate) fn add_unknown(&mut self, raw: u16) {
        self.add(
            raw,
            EventDesc { name: format!("unknown event {raw}"), system: String::new() },
            Plan::Other,
        );
    }

    /// The event with this `common_type`.
    #[inline(always)]
    pub(crate) fn lookup(&self, raw: u16) -> Option<(EventId, &Plan)> {
        let event = *self.ids.get(raw as usize)?;
        let plan = self.plans.get(event as usize)?;
        Some((EventId(event), plan))
    }

    /// What is worth knowing about how events that occur are read: label and words.
    pub(crate) fn notes<'a>(
        &'a self,
        occurring: &'a [u16],
    ) -> impl Iterator<Item = (String, String)> + 'a {
        occurring.iter().filter_map(|&raw| self.lookup(raw)?.1.note())
    }

    /// Why an event that decoded to nothing did so, if it is the file's fault.
    pub(crate) fn fault(&self, event: EventId, plan: &Plan) -> Option<QualityCode> {
        match plan {
            Plan::Incomplete(_) => Some(QualityCode::MissingField),
            _ if event.0 as usize >= self.described => Some(QualityCode::MissingFormat),
            _ => None,
        }
    }

    /// What the file can prove, given the ids that occur in it.
    pub(crate) fn capabilities(&self, occurring: &[u16]) -> Capabilities {
        let mut caps = self.listed().unwrap_or_default();
        self.note_seen(occurring, &mut caps);
        caps
    }

    /// What events with these ids prove.
    pub(crate) fn seen(&self, occurring: &[u16]) -> Capabilities {
        let mut caps = Capabilities::default();
        self.note_seen(occurring, &mut caps);
        caps
    }

    fn note_seen(&self, occurring: &[u16], caps: &mut Capabilities) {
        for (event, _) in occurring.iter().filter_map(|&raw| self.lookup(raw)) {
            let desc = &self.descs[event.0 as usize];
            caps.note_event(&desc.system, &desc.name);
        }
    }

    /// What the events that were asked for would prove; `None` if the file describes all events
    /// of its machine and does not say which of them were.
    pub(crate) fn listed(&self) -> Option<Capabilities> {
        let mut caps = Capabilities::default();
        for desc in self.descs.iter().filter(|d| d.system != "ftrace") {
            caps.note_event(&desc.system, &desc.name);
        }
        self.selected.then_some(caps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, id: u16) -> String {
        format!(
            "name: {name}\nID: {id}\nformat:\n\
                \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n"
        )
    }

    fn table(events: &[(&str, &str)]) -> EventTable {
        let texts: Vec<_> = events
            .iter()
            .enumerate()
            .map(|(i, (s, n))| (s.to_string(), text(n, i as u16 + 1)))
            .collect();
        EventTable::compile(&texts, Abi { long_size: 8 }, None)
    }

    #[test]
    fn a_selective_list_proves_absence() {
        let t = table(&[
            ("ftrace", "function"),
            ("sched", "sched_switch"),
            ("lock", "contention_begin"),
        ]);
        assert!(t.selected);
        assert!(t.capabilities(&[2]).contention, "asked for and never seen: there was none");
        let all = table(&[
            ("ftrace", "function"),
            EVERYWHERE[0],
            EVERYWHERE[1],
            EVERYWHERE[2],
            EVERYWHERE[3],
            ("lock", "contention_begin"),
        ]);
        assert!(!all.selected && !all.capabilities(&[1]).contention);
        assert!(!table(&[("ftrace", "function")]).selected);
    }

    #[test]
    fn unknown_ids_get_a_name() {
        let mut t = table(&[("sched", "sched_switch")]);
        assert!(t.lookup(77).is_none());
        t.add_unknown(77);
        let (event, plan) = t.lookup(77).unwrap();
        assert_eq!(
            (t.descs[event.0 as usize].name.as_str(), plan),
            ("unknown event 77", &Plan::Other)
        );
        assert_eq!(t.fault(event, plan), Some(QualityCode::MissingFormat));
        let (event, plan) = t.lookup(1).unwrap();
        assert_eq!(
            t.fault(event, plan),
            Some(QualityCode::MissingField),
            "a switch without fields"
        );
        assert!(t.lookup(76).is_none() && t.lookup(u16::MAX).is_none());
    }
}

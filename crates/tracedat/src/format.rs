//! The events a file describes, as tables indexed by their id.

use crate::stacks::{Recorders, StackPlan};
use holdup_trace::{Capabilities, EventDesc, EventId, Extras, Presence, QualityCode};
use holdup_tracepoint::{Abi, Format, Plan};
use std::collections::BTreeSet;

/// Events of every kernel of the last fifteen years, each of another system. `trace-cmd record -e`
/// writes only the formats of the events requested; without `-e`, with `-e all`, and when
/// `trace-cmd extract` saves events that another tool enabled, it writes the formats of all events
/// of the kernel. So a file that describes most of these five describes its machine, not its
/// recording.
const EVERYWHERE: [(&str, &str); 5] = [
    ("signal", "signal_generate"),
    ("timer", "timer_start"),
    ("task", "task_newtask"),
    ("irq", "softirq_entry"),
    ("sched", "sched_switch"),
];

/// Stands for an id without description in [`EventTable::ids`].
const NONE: u16 = u16::MAX;

/// Who chose the events that are described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Descriptions {
    /// trace-cmd: the events that were requested, unless all events of the kernel are described.
    TraceCmd,
    /// Someone who copied files into a folder: the formats say nothing about which events were
    /// enabled.
    Copied,
}

/// How to decode an event, by the id in its `common_type`.
pub(crate) struct EventTable {
    /// Indexed by [`EventId`].
    pub(crate) descs: Vec<EventDesc>,
    plans: Vec<Plan>,
    /// `common_type` to event; [`NONE`] where nothing is described.
    ids: Vec<u16>,
    /// The events that are call chains of other events.
    stacks: Vec<(EventId, StackPlan)>,
    /// The chain that is written last for an event; `None` if the file has no chains.
    pub(crate) last_stack: Option<EventId>,
    /// The kernel functions with which chains of the kernel begin.
    pub(crate) recorders: Recorders,
    /// Offset of `common_pid` in bytes.
    pub(crate) pid_at: usize,
    /// Whether the described events were requested: see [`Descriptions`].
    pub(crate) selected: bool,
    /// Events from this index on occur but are not described.
    described: usize,
    /// Descriptions that could not be read.
    pub(crate) unreadable: usize,
}

impl EventTable {
    /// Compile the descriptions (pairs of system and `format` text) of a kernel of this release.
    pub(crate) fn compile(
        texts: &[(String, String)],
        chosen_by: Descriptions,
        abi: Abi,
        release: Option<&str>,
    ) -> EventTable {
        let mut table = EventTable {
            descs: Vec::new(),
            plans: Vec::new(),
            ids: Vec::new(),
            stacks: Vec::new(),
            last_stack: None,
            recorders: Recorders::default(),
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
            if let Some(stack) = StackPlan::compile(&format, abi) {
                table.stacks.push((EventId(table.descs.len() as u16), stack));
            }
            let (name, system) = (format.name, format.system);
            table.add(format.id, EventDesc { name, system, presence: Presence::Described }, plan);
        }
        table.described = table.descs.len();
        table.pid_at = pid_at.unwrap_or(4);
        table.selected = chosen_by == Descriptions::TraceCmd
            && everywhere.len() < EVERYWHERE.len() - 1
            && texts.iter().any(|(s, _)| s != "ftrace");
        table
    }

    fn add(&mut self, raw: u16, desc: EventDesc, plan: Plan) {
        let Some(event) = u16::try_from(self.descs.len()).ok().filter(|&e| e != NONE) else {
            return;
        };
        if self.ids.len() <= raw as usize {
            self.ids.resize(raw as usize + 1, NONE);
        }
        // If an id is described twice, the last description counts, as in trace-cmd.
        self.ids[raw as usize] = event;
        self.descs.push(desc);
        self.plans.push(plan);
    }

    /// Give events that occur but are not described a name of their own.
    pub(crate) fn add_unknown(&mut self, raw: u16) {
        self.add(
            raw,
            EventDesc {
                name: format!("unknown event {raw}"),
                system: String::new(),
                presence: Presence::Seen,
            },
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

    /// How to read the event if it is a call chain of another event.
    pub(crate) fn stack(&self, event: EventId) -> Option<&StackPlan> {
        self.stacks.iter().find(|(id, _)| *id == event).map(|(_, plan)| plan)
    }

    /// Notes on how the events that occur are read: label and text.
    pub(crate) fn notes<'a>(
        &'a self,
        occurring: &'a [u16],
    ) -> impl Iterator<Item = (String, String)> + 'a {
        occurring.iter().filter_map(|&raw| self.lookup(raw)?.1.note())
    }

    /// Why an event decoded to nothing, if the file is to blame.
    pub(crate) fn fault(&self, event: EventId, plan: &Plan) -> Option<QualityCode> {
        match plan {
            Plan::Incomplete(_) => Some(QualityCode::MissingField),
            _ if event.0 as usize >= self.described => Some(QualityCode::MissingFormat),
            _ => None,
        }
    }

    /// Set for each event how the file knows of it, given the ids that occur in it.
    pub(crate) fn settle(&mut self, occurring: &[u16]) {
        // The tracers' own events are always described.
        for desc in self.descs.iter_mut().filter(|d| self.selected && d.system != "ftrace") {
            desc.presence = Presence::Enabled;
        }
        for &raw in occurring {
            if let Some((event, _)) = self.lookup(raw) {
                self.descs[event.0 as usize].presence = Presence::Seen;
            }
        }
        let seen = self.stacks.iter().filter(|(id, _)| {
            self.descs.get(id.0 as usize).is_some_and(|d| d.presence == Presence::Seen)
        });
        self.last_stack = seen.max_by_key(|(_, plan)| plan.user).map(|(id, _)| *id);
        // An event that cannot be read proves nothing.
        for (desc, plan) in self.descs.iter_mut().zip(&self.plans) {
            if matches!(plan, Plan::Incomplete(_)) {
                desc.presence = Presence::Described;
            }
        }
    }

    /// What the requested events would prove; `None` if the file describes all events of its
    /// machine and does not say which were requested.
    pub(crate) fn listed(&self) -> Option<Capabilities> {
        self.selected.then(|| Capabilities::promised(&self.descs, Extras::default()))
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
        EventTable::compile(&texts, Descriptions::TraceCmd, Abi { long_size: 8 }, None)
    }

    fn presence(mut table: EventTable, occurring: &[u16]) -> Vec<Presence> {
        table.settle(occurring);
        table.descs.iter().map(|d| d.presence).collect()
    }

    #[test]
    fn a_selective_list_proves_absence() {
        use Presence::{Described, Enabled, Seen};
        let few = [("ftrace", "function"), ("timer", "timer_start"), ("block", "block_rq_issue")];
        assert_eq!(presence(table(&few), &[3]), [Described, Enabled, Seen]);
        let all = [EVERYWHERE[0], EVERYWHERE[1], EVERYWHERE[2], ("irq", "tasklet_entry")];
        assert_eq!(presence(table(&all), &[1]), [Seen, Enabled, Enabled, Enabled]);
        let all = [EVERYWHERE[0], EVERYWHERE[1], EVERYWHERE[2], EVERYWHERE[3]];
        assert!(!table(&all).selected, "the formats of a whole kernel");
        assert!(!table(&[("ftrace", "function")]).selected);
    }

    #[test]
    fn formats_that_somebody_copied_prove_nothing() {
        let texts = [("timer".to_owned(), text("timer_start", 1))];
        let copied = EventTable::compile(&texts, Descriptions::Copied, Abi { long_size: 8 }, None);
        assert_eq!(presence(copied, &[]), [Presence::Described]);
    }

    #[test]
    fn an_event_that_cannot_be_read_proves_nothing() {
        let switch = table(&[("sched", "sched_switch")]);
        assert_eq!(presence(switch, &[1]), [Presence::Described], "it has no fields");
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

//! The events of a file: which occur, their names, and the plan for each.
//!
//! There are three kinds of events: those that Perfetto knows, by the number of their message
//! (`ftrace_events.txt`); those described in the trace itself, also by a number; and `generic`
//! events, which carry their name every time.

use crate::bundle::Raw;
use crate::fields::Plan;
use crate::schema::{descriptor, event, generic};
use crate::wire::{Broken, Fields};
use holdup_trace::{EventDesc, EventId, EventKind, NameId, Names, Presence};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::LazyLock;

/// Number, name and fields of the events Perfetto knows.
const KNOWN: &str = include_str!("ftrace_events.txt");
/// Messages below this number are looked up in an array.
const DENSE: usize = 1024;
/// More kinds of events than any kernel has: a damaged file may have more, which are then not
/// distinguished.
const MOST_KINDS: usize = 8192;
/// The limit for names that events carry themselves, which are compared one by one.
const MOST_NAMES: usize = 256;

/// A `GenericEventDescriptor`: an event described in the trace.
#[derive(Clone, Debug)]
struct Descriptor {
    system: String,
    name: String,
    fields: Vec<(String, u32)>,
}

/// How often each event was seen in the bundles.
pub(crate) struct Seen {
    dense: Vec<u64>,
    sparse: FxHashMap<u32, u64>,
    names: Vec<(Vec<u8>, u64)>,
    descriptors: FxHashMap<u32, Descriptor>,
    /// For the first events of each number: the plan to read them, and how many it fits.
    looked_at: FxHashMap<u32, Look>,
    pub(crate) events: u64,
}

/// The result of checking the first events of a number.
struct Look {
    plan: Plan,
    fit: u64,
    other: u64,
}

/// Each thread checks this many of them.
const LOOKS: u64 = 16;

impl Seen {
    pub(crate) fn new() -> Seen {
        Seen {
            dense: vec![0; DENSE],
            sparse: FxHashMap::default(),
            names: Vec::new(),
            descriptors: FxHashMap::default(),
            looked_at: FxHashMap::default(),
            events: 0,
        }
    }

    /// Count `n` events of message `number`.
    #[inline]
    pub(crate) fn count(&mut self, number: u32, n: u64) {
        self.events += n;
        match self.dense.get_mut(number as usize) {
            Some(count) => *count += n,
            None if self.sparse.len() < MOST_KINDS || self.sparse.contains_key(&number) => {
                *self.sparse.entry(number).or_default() += n;
            }
            None => {}
        }
    }

    /// Count an event.
    #[inline(always)]
    pub(crate) fn event(&mut self, raw: &Raw<'_>) {
        self.count(raw.number, 1);
        if raw.number == event::GENERIC {
            self.named(generic_name(raw.content), 1);
        } else if self.dense.get(raw.number as usize).is_some_and(|&n| n <= LOOKS) {
            self.look_at(raw);
        }
    }

    /// Whether the event is what Perfetto means by its number, by the types of its fields.
    #[cold]
    fn look_at(&mut self, raw: &Raw<'_>) {
        let look = self.looked_at.entry(raw.number).or_insert_with(|| Look {
            plan: plan_of(raw.number),
            fit: 0,
            other: 0,
        });
        match look.plan.fits(raw.content) {
            true => look.fit += 1,
            false => look.other += 1,
        }
    }

    /// Whether the recorder uses the number for another event than Perfetto does.
    fn means_other(&self, number: u32) -> bool {
        self.looked_at.get(&number).is_some_and(|look| look.other > look.fit)
    }

    fn named(&mut self, name: &[u8], n: u64) {
        match self.names.iter().position(|(known, _)| known == name) {
            Some(place) => self.names[place].1 += n,
            None if self.names.len() < MOST_NAMES => self.names.push((name.to_owned(), n)),
            None => {}
        }
    }

    /// Record a `GenericEventDescriptor`.
    pub(crate) fn descriptor(&mut self, message: &[u8]) -> Result<(), Broken> {
        let (mut number, mut system, mut described) = (0, String::new(), None);
        Fields::of(message).each(|n, value| match n {
            descriptor::FIELD_ID => number = value.int().unwrap_or(0) as u32,
            descriptor::GROUP_NAME => system = value.text().unwrap_or_default(),
            descriptor::EVENT_DESCRIPTOR => described = value.bytes(),
            _ => {}
        })?;
        let known = self.descriptors.contains_key(&number);
        let Some(described) = described.filter(|_| !known && self.descriptors.len() < MOST_KINDS)
        else {
            return Ok(());
        };
        let (mut name, mut fields) = (String::new(), Vec::new());
        let mut inner = Ok(());
        Fields::of(described).each(|n, value| match (n, value.bytes()) {
            (descriptor::NAME, _) => name = value.text().unwrap_or_default(),
            (descriptor::FIELD, Some(field)) => {
                let (mut label, mut place) = (String::new(), 0);
                let read = Fields::of(field).each(|n, value| match n {
                    descriptor::FIELD_NAME => label = value.text().unwrap_or_default(),
                    descriptor::FIELD_NUMBER => place = value.int().unwrap_or(0) as u32,
                    _ => {}
                });
                inner = inner.and(read);
                fields.push((label, place));
            }
            _ => {}
        })?;
        inner?;
        self.descriptors.insert(number, Descriptor { system, name, fields });
        Ok(())
    }

    /// Add what another thread has seen.
    pub(crate) fn absorb(&mut self, other: Seen) {
        for (number, n) in other.dense.into_iter().enumerate().filter(|(_, n)| *n > 0) {
            self.count(number as u32, n);
        }
        let mut sparse: Vec<(u32, u64)> = other.sparse.into_iter().collect();
        sparse.sort_unstable();
        for (number, n) in sparse {
            self.count(number, n);
        }
        for (name, n) in other.names {
            self.named(&name, n);
        }
        for (number, look) in other.looked_at {
            match self.looked_at.get_mut(&number) {
                Some(known) => {
                    (known.fit, known.other) = (known.fit + look.fit, known.other + look.other);
                }
                None => drop(self.looked_at.insert(number, look)),
            }
        }
        for (number, descriptor) in other.descriptors {
            self.descriptors.entry(number).or_insert(descriptor);
        }
    }
}

/// The name in a `GenericFtraceEvent`, empty if it has none.
#[inline]
pub(crate) fn generic_name(content: &[u8]) -> &[u8] {
    let mut fields = Fields::of(content);
    while let Ok(Some((number, value))) = fields.next() {
        if number == generic::EVENT_NAME {
            return value.bytes().unwrap_or(&[]);
        }
    }
    &[]
}

/// The events of the file by their numbers.
pub(crate) struct Table {
    pub(crate) descs: Vec<EventDesc>,
    plans: Vec<Plan>,
    dense: Vec<u16>,
    sparse: FxHashMap<u32, u16>,
    named: Vec<(Vec<u8>, u16)>,
    /// Number of events without any description, and of events that lack a field.
    pub(crate) undescribed: u64,
    pub(crate) incomplete: u64,
}

const NONE: u16 = u16::MAX;

impl Table {
    /// Name the events that were seen, and plan how to read them.
    pub(crate) fn new(seen: &Seen, names: &Names) -> Table {
        let mut table = Table {
            descs: Vec::new(),
            plans: Vec::new(),
            dense: vec![NONE; DENSE],
            sparse: FxHashMap::default(),
            named: Vec::new(),
            undescribed: 0,
            incomplete: 0,
        };
        let dense = seen.dense.iter().enumerate().map(|(number, &n)| (number as u32, n));
        let mut sparse: Vec<(u32, u64)> = seen.sparse.iter().map(|(&k, &n)| (k, n)).collect();
        sparse.sort_unstable();
        for (number, n) in dense.chain(sparse).filter(|&(_, n)| n > 0) {
            if number != event::GENERIC {
                table.add_numbered(number, n, seen, names);
            }
        }
        let mut generic = seen.names.clone();
        generic.sort_unstable();
        for (name, n) in generic {
            table.add_named(name, n);
        }
        table
    }

    fn add(&mut self, system: &str, name: &str, plan: Plan, n: u64) -> u16 {
        if plan == Plan::Incomplete {
            self.incomplete += n;
        }
        // This table has only events that occur.
        let presence = match plan {
            Plan::Incomplete => Presence::Described,
            _ => Presence::Seen,
        };
        self.descs.push(EventDesc { name: name.to_owned(), system: system.to_owned(), presence });
        self.plans.push(plan);
        (self.descs.len() - 1) as u16
    }

    fn add_numbered(&mut self, number: u32, n: u64, seen: &Seen, names: &Names) {
        let known = known(number).filter(|_| !seen.means_other(number));
        let id = match (known, seen.descriptors.get(&number)) {
            (Some((name, fields)), _) => {
                let kind = kind_of(name);
                let system = kind.map_or("", EventKind::system);
                let plan = match kind {
                    Some(kind) => Plan::numbered(kind, detail(kind, name, names), fields),
                    None if number == event::TASK_RENAME => Plan::Rename,
                    None => Plan::Other,
                };
                self.add(system, name, plan, n)
            }
            (None, Some(d)) => {
                let kind = EventKind::of(&d.system, &d.name)
                    .or_else(|| if d.system.is_empty() { kind_of(&d.name) } else { None });
                let fields = d.fields.iter().map(|(name, number)| (name.as_str(), *number));
                let plan = kind.map_or(Plan::Other, |kind| {
                    Plan::numbered(kind, detail(kind, &d.name, names), fields)
                });
                let system = kind.map_or(d.system.clone(), |kind| kind.system().to_owned());
                self.add(&system, &d.name, plan, n)
            }
            (None, None) => {
                self.undescribed += n;
                self.add("", &format!("ftrace_event_{number}"), Plan::Other, n)
            }
        };
        match self.dense.get_mut(number as usize) {
            Some(place) => *place = id,
            None => drop(self.sparse.insert(number, id)),
        }
    }

    fn add_named(&mut self, name: Vec<u8>, n: u64) {
        let text = String::from_utf8_lossy(&name).into_owned();
        let kind = kind_of(&text);
        let system = kind.map_or("", EventKind::system);
        let label = if text.is_empty() { "generic" } else { &text };
        let id = self.add(system, label, kind.map_or(Plan::Other, Plan::named), n);
        self.named.push((name, id));
    }

    /// Id and plan of an event.
    #[inline(always)]
    pub(crate) fn lookup(&self, raw: &Raw<'_>) -> Option<(EventId, &Plan)> {
        let id = match self.dense.get(raw.number as usize) {
            Some(&id) if id != NONE => id,
            _ => self.lookup_rare(raw)?,
        };
        Some((EventId(id), self.plans.get(id as usize)?))
    }

    #[inline(never)]
    fn lookup_rare(&self, raw: &Raw<'_>) -> Option<u16> {
        if raw.number == event::GENERIC {
            let name = generic_name(raw.content);
            return self.named.iter().find(|(known, _)| known == name).map(|(_, id)| *id);
        }
        self.sparse.get(&raw.number).copied()
    }

    /// The plan of the event whose message has this number.
    pub(crate) fn plan(&self, number: u32) -> Option<&Plan> {
        let id = match self.dense.get(number as usize) {
            Some(&id) => id,
            None => *self.sparse.get(&number)?,
        };
        self.plans.get(usize::from(id))
    }

    /// The plan of the generic event with this name.
    pub(crate) fn named_plan(&self, name: &[u8]) -> Option<&Plan> {
        let id = self.named.iter().find(|(known, _)| known == name)?.1;
        self.plans.get(usize::from(id))
    }

    /// Id of the event whose message has this number.
    pub(crate) fn id(&self, number: u32) -> EventId {
        EventId(self.dense.get(number as usize).copied().unwrap_or(NONE))
    }
}

/// The plan for an event that Perfetto knows.
fn plan_of(number: u32) -> Plan {
    match known(number).and_then(|(name, of)| Some((kind_of(name)?, of))) {
        Some((kind, fields)) => Plan::numbered(kind, NameId::NONE, fields),
        None => Plan::Other,
    }
}

/// The cached plan for an event that Perfetto knows.
pub(crate) fn known_plan(number: u32) -> Option<&'static Plan> {
    static PLANS: LazyLock<Vec<Plan>> = LazyLock::new(|| (0..DENSE as u32).map(plan_of).collect());
    PLANS.get(number as usize)
}

/// Whether the kernel has an event of this name. Custom events are expected to have other names.
pub(crate) fn is_known(name: &str) -> bool {
    static NAMES: LazyLock<FxHashSet<&str>> = LazyLock::new(|| {
        let words = KNOWN.lines().filter(|line| !line.starts_with('#'));
        words.filter_map(|line| line.split(' ').nth(1)).collect()
    });
    NAMES.contains(name) || kind_of(name).is_some_and(|kind| kind.detail(name).is_none())
}

/// Name and fields of an event Perfetto knows.
fn known(number: u32) -> Option<(&'static str, impl Iterator<Item = (&'static str, u32)>)> {
    let line = KNOWN.lines().find_map(|line| {
        let (n, rest) = line.split_once(' ')?;
        (n.parse() == Ok(number)).then_some(rest)
    })?;
    let mut words = line.split(' ');
    let name = words.next()?;
    Some((
        name,
        words.filter_map(|w| w.split_once('=')).filter_map(|(n, at)| Some((n, at.parse().ok()?))),
    ))
}

/// Perfetto leaves the system out. It knows only one of the vectors of x86.
fn kind_of(name: &str) -> Option<EventKind> {
    EventKind::by_name(name).or_else(|| {
        name.starts_with("local_timer_").then(|| EventKind::of("irq_vectors", name)).flatten()
    })
}

fn detail(kind: EventKind, name: &str, names: &Names) -> NameId {
    names.intern(kind.detail(name).unwrap_or("").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_what_the_schema_calls_them() {
        let fields = |n| known(n).map(|(name, fields)| (name, fields.collect::<Vec<_>>()));
        assert_eq!(fields(17).map(|f| f.0), Some("sched_wakeup"));
        assert_eq!(fields(329), Some(("sys_enter", vec![("id", 1), ("args", 2)])));
        assert_eq!(fields(event::SCHED_SWITCH).map(|f| f.0), Some("sched_switch"));
        assert_eq!(fields(event::SCHED_WAKING).map(|f| f.0), Some("sched_waking"));
        assert_eq!(fields(event::TASK_RENAME).map(|f| f.0), Some("task_rename"));
        assert_eq!(fields(event::GENERIC).map(|f| f.0), Some("generic"));
        assert_eq!(fields(5), None);
    }

    /// For every event that holdup understands, Perfetto writes the fields that it needs.
    #[test]
    fn every_event_that_is_understood_is_complete() {
        let names = Names::new();
        let mut understood = 0;
        for number in 3..DENSE as u32 {
            let mut seen = Seen::new();
            seen.count(number, 1);
            let table = Table::new(&seen, &names);
            assert_eq!(table.incomplete, 0, "{:?}", table.descs);
            understood += matches!(table.plans.first(), Some(Plan::Numbered { .. })) as u32;
        }
        assert!(understood > 20, "{understood}");
    }
}

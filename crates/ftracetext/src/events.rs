//! The names of a file's events: found by the index, looked up by the decoders.

use crate::kind::{Kind, Meaning, meaning};
use crate::lack::Lack;
use crate::line::{Form, Line, Syntax};
use crate::numbers::{SyscallNumber, UNNUMBERED_SYSCALL};
use holdup_trace::{EventDesc, EventId, EventKind, Presence};
use rustc_hash::FxHashMap;

/// More names than this indicate misread lines; the rest share one entry.
pub(crate) const MAX_NAMES: usize = 4096;

/// One event of the file.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Box<[u8]>,
    pub(crate) form: Form,
    pub(crate) id: EventId,
    pub(crate) kind: Kind,
    /// Columns without which its events are useless.
    pub(crate) needs: Lack,
    /// Number of the syscall, for the named ones.
    pub(crate) nr: u32,
    /// See [`Meaning::detail`].
    pub(crate) detail: Box<str>,
}

impl Entry {
    /// A stand-alone entry, to read the fields of one line.
    pub(crate) fn without_number(line: &Line<'_>, kind: Kind) -> Entry {
        Entry {
            key: line.name.into(),
            form: line.form,
            id: EventId::SIDEBAND,
            kind,
            needs: kind.needs(),
            nr: 0,
            detail: "".into(),
        }
    }
}

/// All events of a file, by the names that the text prints.
#[derive(Default, Debug)]
pub(crate) struct Events {
    entries: Vec<Entry>,
    by_name: FxHashMap<(Form, Box<[u8]>), u32>,
    /// The shared entry of all names beyond the limit.
    overflow: Option<u32>,
    /// Syscalls the caller had no number for; the k-th has [`UNNUMBERED_SYSCALL`]` + k`.
    pub(crate) unnumbered: Vec<String>,
}

impl Events {
    /// Enter a name unless it is known; returns its index.
    pub(crate) fn intern(
        &mut self,
        name: &[u8],
        form: Form,
        rules: &Rules,
        descs: &mut Vec<EventDesc>,
    ) -> u32 {
        // All traced functions are one event.
        let name = if form == Form::Function { b"" } else { name };
        let full = self.entries.len() >= MAX_NAMES;
        let (name, form) =
            if full { (&b"(too many event names)"[..], Form::Colon) } else { (name, form) };
        if let Some(&i) = self.by_name.get(&(form, Box::from(name))) {
            return i;
        }
        let Meaning { kind, name: shown, system, detail } =
            meaning(name, form, rules.syntax == Syntax::Perf);
        let nr = if matches!(kind, Kind::Event(EventKind::SysEnterNamed | EventKind::SysExitNamed))
        {
            self.number(&detail, rules)
        } else {
            0
        };
        let id = if kind.is_record() {
            EventId::SIDEBAND
        } else {
            // Until a usable event of this name is found.
            let desc = EventDesc { name: shown, system, presence: Presence::Described };
            let at = descs
                .iter()
                .position(|d| d.name == desc.name && d.system == desc.system)
                .unwrap_or_else(|| {
                    descs.push(desc);
                    descs.len() - 1
                });
            EventId(at as u16)
        };
        let i = self.entries.len() as u32;
        let (key, detail, needs) = (name.into(), detail.into(), kind.needs());
        self.entries.push(Entry { key, form, id, kind, needs, nr, detail });
        self.by_name.insert((form, name.into()), i);
        if full {
            self.overflow = Some(i);
        }
        i
    }

    fn number(&mut self, call: &str, rules: &Rules) -> u32 {
        if let Some(nr) = (rules.syscall_nr)(rules.arch.as_deref(), call) {
            return nr;
        }
        let at = self.unnumbered.iter().position(|n| n == call).unwrap_or_else(|| {
            self.unnumbered.push(call.to_owned());
            self.unnumbered.len() - 1
        });
        UNNUMBERED_SYSCALL + at as u32
    }

    /// The entry of a name; `None` for one the index did not see (the file has changed).
    #[inline]
    pub(crate) fn find<'e>(
        &'e self,
        name: &[u8],
        form: Form,
        cache: &mut Cache,
    ) -> Option<&'e Entry> {
        let name = if form == Form::Function { b"" } else { name };
        let slot = slot(name, form);
        if let Some(e) = self.entries.get(cache.0[slot] as usize)
            && e.form == form
            && *e.key == *name
        {
            return Some(e);
        }
        let at = self.by_name.get(&(form, Box::from(name))).copied().or(self.overflow)?;
        cache.0[slot] = at;
        self.entries.get(at as usize)
    }

    /// The entry with index `place`.
    pub(crate) fn at(&self, place: u32) -> &Entry {
        &self.entries[place as usize]
    }
}

/// What decides the meaning of a name.
#[derive(Clone)]
pub(crate) struct Rules {
    pub(crate) syntax: Syntax,
    pub(crate) arch: Option<String>,
    pub(crate) syscall_nr: SyscallNumber,
}

const SLOTS: usize = 256;

/// A decoder's cache of names' indices, so that a recently seen name costs one comparison.
pub(crate) struct Cache([u32; SLOTS]);

impl Default for Cache {
    fn default() -> Cache {
        Cache([u32::MAX; SLOTS])
    }
}

/// Names differ in length, at the end and in the middle; this hash distinguishes the usual ones.
#[inline]
pub(crate) fn slot(name: &[u8], form: Form) -> usize {
    let at = |i: usize| name.get(i).copied().unwrap_or(0) as usize;
    let n = name.len();
    (n * 31
        + at(n.wrapping_sub(1)) * 7
        + at(n.wrapping_sub(3)) * 3
        + at(n / 2) * 5
        + at(n.wrapping_sub(6))
        + form as usize)
        % SLOTS
}

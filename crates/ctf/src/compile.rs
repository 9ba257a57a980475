//! Types compiled to plans.
//!
//! A walker goes over the fields of each scope once. Which registers a plan needs is known only
//! when later lengths and tags refer to its fields; until then its steps are drafts.

use crate::plan::{Count, Dest, Load, NOTED, NOTED_DATA, Plain, Slot, Step, TextLoad, Want};
use crate::types::{Enum, Int, Order, Type};
use std::sync::Arc;

/// Most fields and steps of one plan. The largest real ones have a few hundred.
const FIELDS: usize = 4096;

/// Registers for lengths and tags of headers and contexts, from here …
const SHARED: u8 = 64;
/// … and of the event's own fields. Registers below [`SHARED`] belong to the callers.
const OWN: u8 = 160;

/// The slot for unwanted text.
const UNWANTED: u8 = 7;

/// Why a type has no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoPlan {
    /// More fields than any sensible trace has.
    TooLarge,
    /// A length or tag does not refer to an earlier field.
    NoField(String),
}

/// An earlier field, which lengths and tags may refer to.
#[derive(Clone)]
struct Passed {
    path: String,
    load: usize,
    /// Its enumeration, if it has one.
    labels: Option<Arc<Enum>>,
}

/// A step whose loads are still indices, because later steps may ask for their registers.
enum Draft {
    Align(u32),
    Block { bits: u64, loads: Vec<usize>, texts: Vec<TextLoad> },
    Str(Option<u8>),
    Sequence { count: CountDraft, size: u64, stride: u64, text: Option<u8> },
    Repeat { count: CountDraft, body: Vec<Draft> },
    Choose { tag: usize, ranges: Vec<(i128, i128, u16)>, options: Vec<Vec<Draft>> },
}

enum CountDraft {
    Fixed(u64),
    Load(usize),
}

/// The fields of one scope (header, context, fields of an event) with their plan under
/// construction.
pub(crate) struct Scope {
    steps: Vec<Draft>,
    /// Named fields, for scopes that follow.
    passed: Vec<Passed>,
    prefix: &'static str,
}

/// Compiles the scopes of a kind of events one after the other; many events share the first scopes.
pub(crate) struct Compiler {
    big: bool,
    loads: Vec<Load>,
    scopes: Vec<Scope>,
    next: u8,
    fields: usize,
    /// How many more fields may be walked or looked at, over all plans of a trace. Without a limit,
    /// shared types would let a short text demand endless work.
    pub(crate) budget: u64,
    /// Note positions of all text and bytes, wanted or not.
    pub(crate) noting: bool,
}

impl Compiler {
    /// `big` is the trace's byte order.
    pub(crate) fn new(big: bool, budget: u64) -> Compiler {
        Compiler {
            big,
            loads: Vec::new(),
            scopes: Vec::new(),
            next: SHARED,
            fields: 0,
            budget,
            noting: false,
        }
    }

    /// Add a scope that all events share; `prefix` is its name in paths. If `timed`, integers that
    /// map a clock or are called `timestamp` are times.
    pub(crate) fn share(
        &mut self,
        of: Option<&Type>,
        prefix: &'static str,
        wants: &[Want<'_>],
        timed: bool,
    ) -> Result<(), NoPlan> {
        let scope = self.walk(of, prefix, wants, timed)?;
        self.scopes.push(scope);
        Ok(())
    }

    /// The plan of the fields of one event. Registers that it needs from shared scopes are recorded
    /// in their plans. Also returns which of the wanted fields were found.
    pub(crate) fn event(
        &mut self,
        context: Option<&Type>,
        of: Option<&Type>,
        wants: &[Want<'_>],
    ) -> Result<Box<[Step]>, NoPlan> {
        let (shared, fields) = (self.next, self.fields);
        self.next = OWN;
        let before = self.scopes.len();
        let result = self.walk(context, "event.context.", &[], false).and_then(|context| {
            self.scopes.push(context);
            self.walk(of, "event.fields.", wants, false)
        });
        self.next = shared;
        self.fields = fields;
        let mut drafts: Vec<Draft> =
            self.scopes.drain(before..).flat_map(|scope| scope.steps).collect();
        drafts.extend(result?.steps);
        let loads = &self.loads;
        Ok(drafts.iter().map(|d| finish(d, loads)).collect())
    }

    /// The plans of the shared scopes, in order.
    pub(crate) fn finish(self) -> Vec<Box<[Step]>> {
        let loads = &self.loads;
        self.scopes.iter().map(|s| s.steps.iter().map(|d| finish(d, loads)).collect()).collect()
    }

    fn walk(
        &mut self,
        of: Option<&Type>,
        prefix: &'static str,
        wants: &[Want<'_>],
        timed: bool,
    ) -> Result<Scope, NoPlan> {
        let mut walker = Walker {
            compiler: self,
            wants,
            timed,
            steps: Vec::new(),
            bits: 0,
            loads: Vec::new(),
            texts: Vec::new(),
            base: 1,
            open: vec![Vec::new()],
            depth: 0,
        };
        if let Some(of) = of {
            walker.walk("", of)?;
        }
        walker.flush();
        let passed = walker.open.pop().unwrap_or_default();
        Ok(Scope { steps: walker.steps, passed, prefix })
    }

    /// The register of a load, assigned now if it has none.
    fn register(&mut self, load: usize) -> Option<u8> {
        match self.loads[load].dest {
            Dest::Register(r) => Some(r),
            Dest::Time => None,
            Dest::Nowhere => {
                let register = self.next;
                self.next = self.next.checked_add(1)?;
                // Registers of shared scopes end where those of events begin.
                if register == OWN - 1 {
                    return None;
                }
                self.loads[load].dest = Dest::Register(register);
                Some(register)
            }
        }
    }
}

fn finish(draft: &Draft, all: &[Load]) -> Step {
    let register = |load: usize| match all[load].dest {
        Dest::Register(r) => r,
        // The walker assigned a register.
        Dest::Nowhere | Dest::Time => 0,
    };
    let count = |c: &CountDraft| match c {
        CountDraft::Fixed(n) => Count::Fixed(*n),
        CountDraft::Load(load) => Count::Register(register(*load)),
    };
    match draft {
        Draft::Align(n) => Step::Align(*n),
        Draft::Block { bits, loads, texts } => {
            let wanted = || loads.iter().map(|&l| all[l]).filter(|l| l.dest != Dest::Nowhere);
            Step::Block {
                bits: *bits,
                plain: wanted().filter_map(|l| Plain::of(&l)).collect(),
                loads: wanted().filter(|l| Plain::of(l).is_none()).collect(),
                texts: texts.as_slice().into(),
            }
        }
        Draft::Str(text) => Step::Str(*text),
        Draft::Sequence { count: c, size, stride, text } => {
            Step::Sequence { count: count(c), size: *size, stride: *stride, text: *text }
        }
        Draft::Repeat { count: c, body } => {
            Step::Repeat { count: count(c), body: body.iter().map(|d| finish(d, all)).collect() }
        }
        Draft::Choose { tag, ranges, options } => Step::Choose {
            tag: register(*tag),
            signed: all[*tag].signed,
            ranges: ranges.as_slice().into(),
            options: options.iter().map(|o| o.iter().map(|d| finish(d, all)).collect()).collect(),
        },
    }
}

struct Walker<'a> {
    compiler: &'a mut Compiler,
    wants: &'a [Want<'a>],
    timed: bool,
    steps: Vec<Draft>,
    /// The block under construction.
    bits: u64,
    loads: Vec<usize>,
    texts: Vec<TextLoad>,
    /// The start of the block is known to be a multiple of this many bits, a power of two.
    base: u32,
    /// Earlier fields, by the struct they are in, the innermost last.
    open: Vec<Vec<Passed>>,
    /// Structs around the field; 1 is the outermost.
    depth: u32,
}

impl Walker<'_> {
    fn flush(&mut self) {
        if self.bits > 0 || !self.loads.is_empty() || !self.texts.is_empty() {
            self.steps.push(Draft::Block {
                bits: self.bits,
                loads: std::mem::take(&mut self.loads),
                texts: std::mem::take(&mut self.texts),
            });
            // Known alignment of the end: the lowest set bit of the length, at most the start's
            // alignment.
            let low = 1u64 << self.bits.trailing_zeros().min(20);
            self.base = self.base.min(u32::try_from(low).unwrap_or(1));
            self.bits = 0;
        }
    }

    fn align(&mut self, to: u32) {
        if to <= self.base {
            self.bits = self.bits.next_multiple_of(u64::from(to));
        } else {
            self.flush();
            if to > self.base {
                self.steps.push(Draft::Align(to));
                self.base = to;
            }
        }
    }

    /// A step whose length is in the data, after which the place is a multiple of `base` bits.
    fn dynamic(&mut self, step: Draft, base: u32) {
        self.flush();
        self.steps.push(step);
        self.base = base;
    }

    fn wanted(&self, name: &str) -> Option<Slot> {
        // Headers may nest wanted fields in variants; events do not.
        if self.depth != 1 && !self.timed {
            return None;
        }
        let bare = name.strip_prefix('_').unwrap_or(name);
        self.wants.iter().find(|w| w.names.contains(&bare)).map(|w| w.to)
    }

    fn walk(&mut self, name: &str, of: &Type) -> Result<(), NoPlan> {
        self.compiler.fields += 1;
        self.compiler.budget = self.compiler.budget.saturating_sub(1);
        if self.compiler.fields > FIELDS || self.compiler.budget == 0 {
            return Err(NoPlan::TooLarge);
        }
        match of {
            Type::Int(int) => self.int(name, int, None),
            Type::Enum(e) => self.int(name, &e.int, Some(e)),
            Type::Float { size, align } => {
                self.align(*align);
                self.grow(u64::from(*size));
            }
            Type::Str => {
                self.align(8);
                let text = match self.wanted(name) {
                    Some(Slot::Text(slot)) => Some(slot),
                    _ => None,
                };
                let text = self.noted(text, true);
                self.dynamic(Draft::Str(text), 8);
            }
            Type::Struct(s) => {
                self.align(s.align);
                self.depth += 1;
                self.open.push(Vec::new());
                for (field, of) in &s.fields {
                    self.walk(field, of)?;
                }
                self.depth -= 1;
                let inner = self.open.pop().unwrap_or_default();
                self.leave(name, inner);
            }
            Type::Variant { variant, tag } => {
                let tag = tag.as_deref().unwrap_or_default();
                let Some(passed) = self.find(tag) else {
                    return Err(NoPlan::NoField(tag.to_owned()));
                };
                let mut ranges = Vec::new();
                let labels = passed.labels.as_deref().map_or(&[][..], |e| &e.ranges);
                for (label, low, high) in labels {
                    let option = variant.options.iter().position(|(name, _)| {
                        let bare = |s: &str| s.trim_start_matches('_').to_owned();
                        name == label || bare(name) == bare(label)
                    });
                    if let Some(option) = option {
                        ranges.push((*low, *high, option as u16));
                    }
                }
                let mut options = Vec::new();
                let mut all = Vec::new();
                for (option, of) in &variant.options {
                    let (steps, inner) = self.apart(option, of)?;
                    options.push(steps);
                    all.extend(inner);
                }
                self.dynamic(Draft::Choose { tag: passed.load, ranges, options }, 1);
                self.leave(name, all);
            }
            Type::Array(element, n) => self.array(name, &element.of, CountDraft::Fixed(*n))?,
            Type::Sequence(element, path) => {
                let Some(passed) = self.find(path) else {
                    return Err(NoPlan::NoField(path.to_string()));
                };
                self.array(name, &element.of, CountDraft::Load(passed.load))?;
            }
        }
        Ok(())
    }

    fn grow(&mut self, bits: u64) {
        // A block of this size is longer than any packet, so capping an overflow here is safe.
        self.bits = self.bits.saturating_add(bits).min(1 << 62);
    }

    fn int(&mut self, name: &str, int: &Int, labels: Option<&Arc<Enum>>) {
        self.align(int.align);
        let big = int.order.map_or(self.compiler.big, |o| o == Order::Big);
        let time = self.timed && (int.clock.is_some() || name.trim_matches('_') == "timestamp");
        let dest = match self.wanted(name) {
            _ if time => Dest::Time,
            Some(Slot::Register(r)) => Dest::Register(r),
            _ => Dest::Nowhere,
        };
        let Ok(offset) = u32::try_from(self.bits) else {
            return self.grow(u64::from(int.size));
        };
        self.compiler.loads.push(Load { offset, size: int.size, signed: int.signed, big, dest });
        let load = self.compiler.loads.len() - 1;
        self.loads.push(load);
        self.grow(u64::from(int.size));
        if let Some(scope) = self.open.last_mut() {
            scope.push(Passed { path: name.to_owned(), load, labels: labels.cloned() });
        }
    }

    /// After a struct or variant, its fields are known by a longer path.
    fn leave(&mut self, name: &str, inner: Vec<Passed>) {
        let Some(outer) = self.open.last_mut() else { return };
        for field in inner {
            let path = if name.is_empty() { field.path } else { format!("{name}.{}", field.path) };
            outer.push(Passed { path, ..field });
        }
    }

    /// An earlier field, looked up as in C: from the innermost struct outwards, then in the scopes
    /// before this one.
    fn find(&mut self, path: &str) -> Option<Passed> {
        let scopes = self.compiler.scopes.iter().map(|s| &s.passed);
        let all: usize = self.open.iter().chain(scopes).map(Vec::len).sum();
        self.compiler.budget = self.compiler.budget.saturating_sub(all as u64);
        let inner = self.open.iter().rev().flat_map(|s| s.iter().rev());
        let own = inner.into_iter().find(|p| p.path == path).cloned();
        let found = own.or_else(|| {
            let scopes = self.compiler.scopes.iter().rev();
            scopes
                .flat_map(|s| s.passed.iter().rev().map(move |p| (s, p)))
                .find(|(s, p)| path.strip_prefix(s.prefix).unwrap_or(path) == p.path)
                .map(|(_, p)| p.clone())
        });
        // `event.fields.n` names a field of the scope being read.
        let found = found.or_else(|| {
            let bare = path.strip_prefix("event.fields.")?;
            self.open.iter().rev().flatten().find(|p| p.path == bare).cloned()
        })?;
        self.compiler.register(found.load)?;
        Some(found)
    }

    /// Steps of a type that may be read not at all, once or many times.
    fn apart(&mut self, name: &str, of: &Type) -> Result<(Vec<Draft>, Vec<Passed>), NoPlan> {
        self.flush();
        let before = std::mem::take(&mut self.steps);
        let base = std::mem::replace(&mut self.base, 1);
        self.open.push(Vec::new());
        self.walk(name, of)?;
        self.flush();
        self.base = base;
        let inner = self.open.pop().unwrap_or_default();
        Ok((std::mem::replace(&mut self.steps, before), inner))
    }

    fn array(&mut self, name: &str, of: &Type, count: CountDraft) -> Result<(), NoPlan> {
        let slot = match self.wanted(name) {
            Some(Slot::Text(slot)) => Some(slot),
            _ => None,
        };
        let align = of.align();
        self.align(align);
        let text = match of {
            Type::Int(int) if int.size == 8 && align >= 8 => {
                self.noted(slot, int.text || slot.is_some())
            }
            // Characters that are not byte-aligned, or larger than a byte, are no names.
            Type::Int(int) if int.size == 8 || int.text => self.noted(None, false),
            _ => None,
        };
        let Some(size) = fixed_size(of) else {
            let (body, _) = self.apart("", of)?;
            self.dynamic(Draft::Repeat { count, body }, 1);
            return Ok(());
        };
        let stride = size.next_multiple_of(u64::from(align));
        // Data noted by bit position needs a step of its own.
        let apart = text.is_some_and(|slot| slot & NOTED_DATA == NOTED_DATA);
        match count {
            CountDraft::Fixed(n) if !apart => {
                if let (Some(slot), Ok(offset), Ok(len)) =
                    (text, u32::try_from(self.bits / 8), u32::try_from(n))
                {
                    self.texts.push(TextLoad { offset, len, slot });
                }
                if let Type::Int(int) = of {
                    self.elements(name, int, n, stride);
                }
                if n > 0 {
                    self.grow(stride.saturating_mul(n - 1).saturating_add(size));
                }
            }
            count => {
                let base = if size.is_multiple_of(8) && align >= 8 { 8 } else { 1 };
                self.dynamic(Draft::Sequence { count, size, stride, text }, base);
            }
        }
        Ok(())
    }
}

impl Walker<'_> {
    /// The slot for a text that goes to `slot` if it is wanted.
    fn noted(&self, slot: Option<u8>, is_text: bool) -> Option<u8> {
        match (self.compiler.noting, slot) {
            (false, slot) => slot,
            (true, slot) => {
                Some(slot.unwrap_or(UNWANTED) | if is_text { NOTED } else { NOTED_DATA })
            }
        }
    }

    /// Single elements of an array of known length may be wanted: `args[0]`.
    fn elements(&mut self, name: &str, int: &Int, n: u64, stride: u64) {
        let bare = name.strip_prefix('_').unwrap_or(name);
        let of_it = |wanted: &&str| wanted.strip_prefix(bare).is_some_and(|r| r.starts_with('['));
        if !self.wants.iter().flat_map(|w| w.names).any(of_it) {
            return;
        }
        for k in 0..n.min(6) {
            let Some(Slot::Register(r)) = self.wanted(&format!("{bare}[{k}]")) else { continue };
            let Ok(offset) = u32::try_from(self.bits + k * stride) else { return };
            let big = int.order.map_or(self.compiler.big, |o| o == Order::Big);
            let dest = Dest::Register(r);
            let load = Load { offset, size: int.size, signed: int.signed, big, dest };
            self.compiler.loads.push(load);
            self.loads.push(self.compiler.loads.len() - 1);
        }
    }
}

/// Size of a number in bits; `None` for types whose size varies or is not needed.
fn fixed_size(of: &Type) -> Option<u64> {
    match of {
        Type::Int(int) => Some(u64::from(int.size)),
        Type::Enum(e) => Some(u64::from(e.int.size)),
        Type::Float { size, .. } => Some(u64::from(*size)),
        _ => None,
    }
}

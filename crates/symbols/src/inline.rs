//! Inlined functions, from the tree of DWARF.
//!
//! The tree is walked without recursion, and the kept data has a limit for the whole file: a few
//! bytes can demand a million levels, or refer to one long list of addresses again and again.

use gimli::{
    AttributeValue, DebugInfoOffset, EndianRcSlice, EntriesRaw, Error, Reader as _, RunTimeEndian,
    Unit, UnitHeader, UnitOffset, UnitRef, UnitSectionOffset,
};
use rustc_hash::FxHashMap;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

pub(crate) type Slice = EndianRcSlice<RunTimeEndian>;

/// Most ranges of functions kept for one file. The largest programs have a million.
const MOST: usize = 1 << 22;
/// Most entries and ranges examined in one file: this takes seconds.
const STEPS: usize = 1 << 28;
/// Most references followed to find a name.
const HOPS: usize = 16;

/// An inlined function.
pub(crate) struct Inlined {
    /// Its linkage name.
    pub(crate) name: Option<Vec<u8>>,
    /// Source file of the call, as spelled in the list of files, and its line.
    pub(crate) call: Option<(String, u32)>,
}

/// The functions with inlined code in one file.
pub(crate) struct Inlines {
    /// Functions by the offset of their unit.
    functions: RefCell<FxHashMap<UnitSectionOffset, Rc<[Span]>>>,
    headers: OnceCell<Vec<(DebugInfoOffset, UnitHeader<Slice>)>>,
    units: RefCell<FxHashMap<DebugInfoOffset, Option<Rc<Unit<Slice>>>>>,
    /// Ranges that may still be kept.
    left: Cell<usize>,
    steps: Steps,
}

/// Entries and ranges that may still be examined.
struct Steps(Cell<usize>);

impl Steps {
    /// Use one step; false if none is left.
    fn take(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }
}

impl Default for Inlines {
    fn default() -> Self {
        Inlines {
            functions: RefCell::default(),
            headers: OnceCell::new(),
            units: RefCell::default(),
            left: Cell::new(MOST),
            steps: Steps(Cell::new(STEPS)),
        }
    }
}

/// Addresses of a function.
#[derive(Clone, Copy)]
struct Span {
    begin: u64,
    end: u64,
    function: UnitOffset,
}

/// The attributes read from an entry of the tree.
#[derive(Default)]
struct Entry {
    low: Option<u64>,
    high: Option<u64>,
    size: Option<u64>,
    ranges: Option<AttributeValue<Slice>>,
    linkage_name: Option<AttributeValue<Slice>>,
    name: Option<AttributeValue<Slice>>,
    /// The entry that holds the name.
    origin: Option<AttributeValue<Slice>>,
    call_file: Option<u64>,
    call_line: Option<u32>,
}

impl Entry {
    fn read(
        unit: UnitRef<'_, Slice>,
        entries: &mut EntriesRaw<'_, Slice>,
        abbrev: &gimli::Abbreviation,
    ) -> Result<Entry, Error> {
        let mut entry = Entry::default();
        for spec in abbrev.attributes() {
            let attribute = entries.read_attribute(*spec)?;
            let value = attribute.value();
            match attribute.name() {
                gimli::DW_AT_low_pc => entry.low = unit.attr_address(value)?,
                gimli::DW_AT_high_pc => match value.udata_value() {
                    Some(size) => entry.size = Some(size),
                    None => entry.high = unit.attr_address(value)?,
                },
                gimli::DW_AT_ranges => entry.ranges = Some(value),
                gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                    entry.linkage_name = Some(value);
                }
                gimli::DW_AT_name => entry.name = Some(value),
                gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                    entry.origin = Some(value);
                }
                gimli::DW_AT_call_file => {
                    if let AttributeValue::FileIndex(file) = value {
                        entry.call_file = Some(file);
                    }
                }
                gimli::DW_AT_call_line => {
                    entry.call_line = value.udata_value().and_then(|line| line.try_into().ok());
                }
                _ => {}
            }
        }
        Ok(entry)
    }

    /// Call `each` with the ranges of its code.
    fn ranges(
        self,
        unit: UnitRef<'_, Slice>,
        steps: &Steps,
        mut each: impl FnMut(u64, u64),
    ) -> Result<(), Error> {
        if let Some(value) = self.ranges {
            let Some(mut list) = unit.attr_ranges(value)? else { return Ok(()) };
            while let Some(range) = list.next()?.filter(|_| steps.take()) {
                each(range.begin, range.end);
            }
        } else if let Some(low) = self.low
            && let Some(high) = self.high.or_else(|| low.checked_add(self.size?))
        {
            each(low, high);
        }
        Ok(())
    }
}

impl Inlines {
    /// The functions inlined at an address of `unit`, outermost first.
    pub(crate) fn find(
        &self,
        unit: UnitRef<'_, Slice>,
        address: u64,
    ) -> Result<Vec<Inlined>, Error> {
        let place = unit.header.offset();
        let known = self.functions.borrow().get(&place).cloned();
        let functions = match known {
            Some(functions) => functions,
            None => {
                let functions: Rc<[Span]> = self.functions(unit)?.into();
                self.functions.borrow_mut().insert(place, functions.clone());
                functions
            }
        };
        let behind = functions.partition_point(|span| span.begin <= address);
        match behind.checked_sub(1).map(|i| functions[i]).filter(|span| address < span.end) {
            Some(span) => self.within(unit, span.function, address),
            None => Ok(Vec::new()),
        }
    }

    /// Address ranges of a unit's functions, ascending.
    fn functions(&self, unit: UnitRef<'_, Slice>) -> Result<Vec<Span>, Error> {
        let mut spans = Vec::new();
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() && self.steps.take() {
            let function = entries.next_offset();
            let Some(abbrev) = entries.read_abbreviation()? else { continue };
            match abbrev.tag() {
                gimli::DW_TAG_subprogram => {
                    let entry = Entry::read(unit, &mut entries, abbrev)?;
                    let keep = |begin, end| {
                        if let Some(left) = self.left.get().checked_sub(1) {
                            self.left.set(left);
                            spans.push(Span { begin, end, function });
                        }
                    };
                    entry.ranges(unit, &self.steps, keep)?;
                }
                _ => entries.skip_attributes(abbrev.attributes())?,
            }
        }
        spans.sort_by_key(|span| span.begin);
        Ok(spans)
    }

    /// The functions inlined into a function at `address`, outermost first.
    fn within(
        &self,
        unit: UnitRef<'_, Slice>,
        function: UnitOffset,
        address: u64,
    ) -> Result<Vec<Inlined>, Error> {
        let mut found = Vec::new();
        let mut entries = unit.entries_raw(Some(function))?;
        // Search below the function, and then below the last match: its siblings cannot have the
        // address.
        let mut below = entries.next_depth();
        if let Some(abbrev) = entries.read_abbreviation()? {
            entries.skip_attributes(abbrev.attributes())?;
        }
        let mut skipped = None;
        while !entries.is_empty() && entries.next_depth() > below && self.steps.take() {
            let depth = entries.next_depth();
            let Some(abbrev) = entries.read_abbreviation()? else { continue };
            if skipped.is_some_and(|at| depth > at) {
                entries.skip_attributes(abbrev.attributes())?;
                continue;
            }
            skipped = None;
            match abbrev.tag() {
                gimli::DW_TAG_inlined_subroutine => {
                    let mut entry = Entry::read(unit, &mut entries, abbrev)?;
                    let call = entry.call_file.zip(entry.call_line);
                    let name = self.name(unit, &mut entry)?;
                    let mut here = false;
                    let contains = |begin, end| here |= (begin..end).contains(&address);
                    entry.ranges(unit, &self.steps, contains)?;
                    if here {
                        let file = |(file, line)| Some((file_name(unit, file)?, line));
                        found.push(Inlined { name, call: call.and_then(file) });
                        below = depth;
                    } else {
                        skipped = Some(depth);
                    }
                }
                gimli::DW_TAG_subprogram => {
                    entries.skip_attributes(abbrev.attributes())?;
                    skipped = Some(depth);
                }
                _ => entries.skip_attributes(abbrev.attributes())?,
            }
        }
        Ok(found)
    }

    /// The linkage name of an entry, or its plain name.
    fn name(&self, unit: UnitRef<'_, Slice>, entry: &mut Entry) -> Result<Option<Vec<u8>>, Error> {
        let mut owner: Option<Rc<Unit<Slice>>> = None;
        let mut plain = None;
        let mut next = Entry {
            linkage_name: entry.linkage_name.take(),
            name: entry.name.take(),
            origin: entry.origin.take(),
            ..Entry::default()
        };
        for _ in 0..HOPS {
            let here = owner.as_deref().map_or(unit, |owner| UnitRef::new(unit.dwarf, owner));
            let bytes = |value: AttributeValue<Slice>| -> Option<Vec<u8>> {
                Some(here.attr_string(value).ok()?.to_slice().ok()?.into_owned())
            };
            if let Some(name) = next.linkage_name.take().and_then(bytes) {
                return Ok(Some(name));
            }
            plain = plain.or_else(|| next.name.take().and_then(bytes));
            let (place, elsewhere) = match next.origin.take() {
                Some(AttributeValue::UnitRef(place)) => (place, None),
                Some(AttributeValue::DebugInfoRef(place)) => {
                    let Some((owner, place)) = self.unit_of(unit, place) else { break };
                    (place, Some(owner))
                }
                _ => break,
            };
            owner = elsewhere.or(owner);
            let here = owner.as_deref().map_or(unit, |owner| UnitRef::new(unit.dwarf, owner));
            let mut entries = here.entries_raw(Some(place))?;
            let Some(abbrev) = entries.read_abbreviation()? else { break };
            next = Entry::read(here, &mut entries, abbrev)?;
        }
        Ok(plain)
    }

    /// The unit at an offset of `.debug_info`, and the offset in the unit.
    fn unit_of(
        &self,
        unit: UnitRef<'_, Slice>,
        place: DebugInfoOffset,
    ) -> Option<(Rc<Unit<Slice>>, UnitOffset)> {
        let headers = self.headers.get_or_init(|| {
            let mut headers = Vec::new();
            let mut units = unit.dwarf.units();
            while let Ok(Some(header)) = units.next() {
                headers.extend(header.debug_info_offset().map(|at| (at, header)));
            }
            headers
        });
        let at = headers.partition_point(|(at, _)| *at <= place).checked_sub(1)?;
        let (at, header) = &headers[at];
        let parse = || unit.dwarf.unit(header.clone()).ok().map(Rc::new);
        let found = self.units.borrow_mut().entry(*at).or_insert_with(parse).clone()?;
        let place = place.to_unit_offset(&found.header)?;
        Some((found, place))
    }
}

/// A file of the unit's list: with its folder, if the list has the folder.
fn file_name(unit: UnitRef<'_, Slice>, index: u64) -> Option<String> {
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(index)?;
    let text = |value: AttributeValue<Slice>| {
        unit.attr_string(value).ok()?.to_string_lossy().ok().map(|text| text.into_owned())
    };
    let name = text(file.path_name())?;
    let folder = file.directory(header).and_then(text).filter(|_| !name.starts_with('/'));
    Some(match folder.filter(|folder| !folder.is_empty()) {
        Some(folder) => format!("{folder}/{name}"),
        None => name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::{Dwarf, SectionId};

    /// A unit with a function at 0x1000..0x2000 and `body` in it, in DWARF 4.
    fn dwarf(body: &[u8], ranges: &[u8]) -> Dwarf<Slice> {
        #[rustfmt::skip]
        let abbreviations: &[u8] = &[
            // 1: a unit; 2: a function with its addresses; 3: an inlined one without; 4: one with
            // a list of ranges and a name.
            1, 0x11, 1, 0, 0,
            2, 0x2e, 1, 0x11, 0x01, 0x12, 0x01, 0, 0,
            3, 0x1d, 1, 0, 0,
            4, 0x1d, 1, 0x55, 0x17, 0x03, 0x08, 0, 0,
            0,
        ];
        let mut info = vec![4, 0, 0, 0, 0, 0, 8, 1, 2];
        info.extend(0x1000u64.to_le_bytes());
        info.extend(0x2000u64.to_le_bytes());
        info.extend(body);
        info.extend([0, 0]);
        let mut whole = (info.len() as u32).to_le_bytes().to_vec();
        whole.extend(info);
        let load = |id: SectionId| -> Result<Slice, Error> {
            let bytes: &[u8] = match id {
                SectionId::DebugInfo => &whole,
                SectionId::DebugAbbrev => abbreviations,
                SectionId::DebugRanges => ranges,
                _ => &[],
            };
            Ok(Slice::new(Rc::from(bytes), RunTimeEndian::Little))
        };
        Dwarf::load(load).unwrap()
    }

    fn names(dwarf: &Dwarf<Slice>, inlines: &Inlines, address: u64) -> Vec<String> {
        let header = dwarf.units().next().unwrap().unwrap();
        let unit = dwarf.unit(header).unwrap();
        let found = inlines.find(UnitRef::new(dwarf, &unit), address).unwrap();
        let name = |f: Inlined| String::from_utf8(f.name.unwrap_or_default()).unwrap();
        found.into_iter().map(name).collect()
    }

    fn list(of: &[(u64, u64)]) -> Vec<u8> {
        let ends = of.iter().chain(&[(0, 0)]);
        ends.flat_map(|(a, b)| [a.to_le_bytes(), b.to_le_bytes()]).flatten().collect()
    }

    #[test]
    fn functions_nest_by_their_addresses() {
        let mut ranges = list(&[(0x1100, 0x1200), (0x1800, 0x1900)]);
        let inner = ranges.len() as u8;
        ranges.extend(list(&[(0x1180, 0x1200)]));
        let beside = ranges.len() as u8;
        ranges.extend(list(&[(0x1a00, 0x1a10)]));
        let entry = |at: u8, name: u8| [4, at, 0, 0, 0, name, 0];
        let mut body = entry(0, b'a').to_vec();
        body.extend(entry(inner, b'b'));
        body.extend([0, 0]);
        body.extend(entry(beside, b'c'));
        body.push(0);
        let (dwarf, inlines) = (dwarf(&body, &ranges), Inlines::default());
        let at = |address| names(&dwarf, &inlines, address).concat();
        assert_eq!([at(0x1100), at(0x1180), at(0x1850)], ["a", "ab", "a"]);
        assert_eq!([at(0x1a00), at(0x1a10), at(0xfff), at(0x2000)], ["c", "", "", ""]);
    }

    #[test]
    fn a_million_levels_and_lists_without_end_are_survived() {
        let deep = dwarf(&vec![3; 1 << 20], &[]);
        assert!(names(&deep, &Inlines::default(), 0x1000).is_empty());
        // Each entry names the same long list, in which the address is not.
        let ranges = list(&vec![(0x1100, 0x1200); 1 << 14]);
        let body = [4, 0, 0, 0, 0, b'a', 0, 0].repeat(1 << 14);
        let (wide, inlines) = (dwarf(&body, &ranges), Inlines::default());
        inlines.steps.0.set(1 << 20);
        assert!(names(&wide, &inlines, 0x1000).is_empty());
        assert_eq!(inlines.steps.0.get(), 0);
    }
}

//! Functions by address, selected as in perf (`tools/perf/util/symbol.c`).

use crate::demangle::demangle;
use std::cmp::{Ordering, Reverse};

/// Most functions read from one file. The largest programs have a million.
pub(crate) const MOST: usize = 1 << 22;

/// The binding of a symbol. Among several at one address the most visible one gives the name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Binding {
    Weak,
    Local,
    Global,
}

/// A symbol as read from a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol<'a> {
    pub(crate) start: u64,
    /// 0 where the file does not say.
    pub(crate) size: u64,
    pub(crate) binding: Binding,
    pub(crate) name: &'a [u8],
    /// The module of the kernel that it is in; empty elsewhere. What lies between two modules
    /// belongs to neither: it may be code that the kernel made while it ran.
    pub(crate) module: &'a [u8],
    /// The index by which the owner of the table finds the name.
    pub(crate) place: u32,
}

/// Functions, ascending by address, with distinct addresses.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<Span>);

#[derive(Clone, Copy, Debug)]
struct Span {
    start: u64,
    end: u64,
    place: u32,
}

/// Size assumed for a symbol of unknown length if no other symbol of its module follows (as in
/// perf).
const PAGE: u64 = 4096;

impl Table {
    /// Build a table of these symbols, given in file order.
    pub(crate) fn new(mut symbols: Vec<Symbol<'_>>) -> Table {
        symbols.truncate(MOST);
        // Equal addresses keep the order of the file.
        symbols.sort_by_key(|s| s.start);
        let mut spans: Vec<(Span, Symbol<'_>)> = Vec::with_capacity(symbols.len());
        let next_of = |i: usize| {
            symbols.get(i + 1).filter(|next| next.module == symbols[i].module).map(|s| s.start)
        };
        for (i, &s) in symbols.iter().enumerate() {
            let end = match (s.size, next_of(i)) {
                (0, Some(next)) => next,
                (0, None) => {
                    s.start.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX).saturating_add(PAGE)
                }
                (size, _) => s.start.saturating_add(size),
            };
            let span = Span { start: s.start, end, place: s.place };
            match spans.last_mut() {
                Some(last) if last.0.start == s.start => {
                    if better(&span, &s, &last.0, &last.1) {
                        *last = (span, s);
                    }
                }
                _ => spans.push((span, s)),
            }
        }
        Table(spans.into_iter().map(|(span, _)| span).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a function begins at `address`.
    pub(crate) fn begins(&self, address: u64) -> bool {
        self.0.binary_search_by_key(&address, |s| s.start).is_ok()
    }

    /// The name's index for the function that contains `address`.
    pub(crate) fn find(&self, address: u64) -> Option<u32> {
        let i = self.0.partition_point(|s| s.start <= address).checked_sub(1)?;
        let span = self.0[i];
        (address < span.end || address == span.start).then_some(span.place)
    }
}

/// Whether `b` is a better name for an address than `a` (perf's `choose_best_symbol`). It prefers,
/// in this order: a length, not weak, global, fewer leading underscores, longer; the last two in
/// demangled form.
fn better(b_span: &Span, b: &Symbol<'_>, a_span: &Span, a: &Symbol<'_>) -> bool {
    let has_length = |s: &Span| s.end > s.start;
    let readable = |s: &Symbol<'_>| {
        let name = demangle(s.name);
        (Reverse(name.len() - name.trim_start_matches('_').len()), name.len())
    };
    (has_length(b_span).cmp(&has_length(a_span)))
        .then(b.binding.cmp(&a.binding))
        // Demangling is slow; most addresses have one name.
        .then_with(|| readable(b).cmp(&readable(a)))
        == Ordering::Greater
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(start: u64, size: u64, binding: Binding, name: &str, place: u32) -> Symbol<'_> {
        Symbol { start, size, binding, name: name.as_bytes(), module: b"", place }
    }

    #[test]
    fn of_several_names_at_one_address_perfs_wins() {
        use Binding::*;
        let cases = [
            // Without a length the first symbol ends where the second begins, so it is empty.
            (("none", 0, Global), ("short", 8, Weak), 1),
            (("weak", 8, Weak), ("strong", 8, Local), 1),
            (("local", 8, Local), ("global", 8, Global), 1),
            (("__write", 8, Global), ("write", 8, Global), 1),
            (("read", 8, Global), ("pread64", 8, Global), 1),
            (("LLVMIntTypeInContext", 8, Global), ("_ZN4llvm11IntegerType3getEv", 8, Global), 1),
            (("first", 8, Global), ("other", 8, Global), 0),
        ];
        for (a, b, wins) in cases {
            let symbols = vec![symbol(16, a.1, a.2, a.0, 0), symbol(16, b.1, b.2, b.0, 1)];
            let table = Table::new(symbols);
            assert_eq!(table.find(16), Some(wins), "{} or {}", a.0, b.0);
        }
    }

    #[test]
    fn a_function_ends_where_it_says_or_where_the_next_begins() {
        let of = |start, size, place| symbol(start, size, Binding::Global, "f", place);
        let table = Table::new(vec![of(300, 0, 2), of(100, 10, 0), of(200, 0, 1)]);
        let at = |address| table.find(address);
        assert_eq!([at(99), at(100), at(109), at(110)], [None, Some(0), Some(0), None]);
        assert_eq!([at(200), at(299), at(300)], [Some(1), Some(1), Some(2)]);
        assert_eq!([at(8191), at(8192)], [Some(2), None]);
        assert_eq!(Table::new(vec![of(u64::MAX, 7, 0)]).find(u64::MAX), Some(0));
        assert!(Table::new(Vec::new()).is_empty());
    }
}

//! Words that threads wait on get the names of variables, found through the code below them.

use crate::pair::{WAIT, contended, contended_from, two};
use holdup_attribution::{Attribution, WaitsBy, analyze};
use holdup_passes::{NamesVariables, Options, Selection, Source, Variable};
use holdup_testkit::{MemTrace, TraceBuilder};
use holdup_trace::{Pid, Tid, What};
use std::sync::Arc;

/// A file that is one variable of 0x2000 bytes behind its code.
struct OneVariable;

impl NamesVariables for OneVariable {
    fn name(&self, v: &Variable<'_>) -> Option<String> {
        (v.distance < 0x2000).then(|| format!("{}+{:#x}", v.file, v.distance))
    }
}

/// The name of the word at 0x1000, for which a thread of process 7 waits.
fn object(trace: &MemTrace) -> String {
    let variables: Option<Source<dyn NamesVariables>> = Some(Source(Arc::new(OneVariable)));
    let a = analyze(trace, &Options { variables, ..Options::default() }).unwrap();
    Attribution::from(&a).waits(WaitsBy::Object)[0].object.clone()
}

fn mapped(base: TraceBuilder, maps: &[(u32, u64, &str)]) -> TraceBuilder {
    let map = |base: TraceBuilder, (pid, start, file): &(u32, u64, &str)| {
        base.mapped(0, *pid, *start, 0x100, file)
    };
    maps.iter().fold(base, map)
}

fn ended(base: TraceBuilder) -> MemTrace {
    base.switch(100, 0, 7, 0, "S").switch(400, 1, 8, 0, "S").build()
}

#[test]
fn a_word_belongs_to_the_code_next_below_it() {
    let maps = [(7, 0x800, "/bin/a"), (7, 0x200, "/lib/b"), (7, 0x2000, "/lib/c")];
    assert_eq!(object(&ended(contended(mapped(two(), &maps)))), "/bin/a+0x800");
}

#[test]
fn without_code_below_or_behind_the_end_of_the_file_it_keeps_its_address() {
    for maps in [&[(7, 0x2000, "/bin/a")][..], &[(9, 0x800, "/bin/a")], &[]] {
        assert_eq!(object(&ended(contended(mapped(two(), maps)))), "0x1000", "{maps:?}");
    }
}

#[test]
fn without_somebody_who_knows_it_keeps_its_address() {
    let trace = ended(contended(mapped(two(), &[(7, 0x800, "/bin/a")])));
    let a = analyze(&trace, &Options::default()).unwrap();
    assert_eq!(Attribution::from(&a).waits(WaitsBy::Object)[0].object, "0x1000");
}

#[test]
fn a_window_knows_what_was_met_before_it() {
    let base = contended_from(200, contended(mapped(two(), &[(7, 0x800, "/bin/a")])), (WAIT, 2));
    let trace = base.switch(300, 0, 7, 0, "S").switch(400, 1, 8, 0, "S").build();
    let selection = Selection { from: Some(150), ..Selection::default() };
    let variables: Option<Source<dyn NamesVariables>> = Some(Source(Arc::new(OneVariable)));
    let a = analyze(&trace, &Options { variables, selection, ..Options::default() }).unwrap();
    let rows = Attribution::from(&a).waits(WaitsBy::Object);
    assert_eq!((rows[0].waits, rows[0].object.as_str()), (1, "/bin/a+0x800"));
}

/// The record of the new program comes first, then its mappings, and only then the event that a
/// program was loaded.
#[test]
fn what_was_mapped_before_a_program_was_loaded_is_gone() {
    let comm = |base: TraceBuilder| {
        let comm = holdup_trace::NameId::NONE;
        let what = What::Comm { tid: Tid(7), pid: Pid(7), comm, exec: true };
        base.event(1, 0, 7, ("", "dummy:HG"), what)
    };
    let old = || mapped(two(), &[(7, 0x900, "/bin/old")]);
    assert_eq!(object(&ended(contended(comm(old())))), "0x1000");
    let new = comm(old()).mapped(2, 7, 0x800, 0x100, "/bin/new");
    assert_eq!(object(&ended(contended(new))), "/bin/new+0x800");
}

//! Whole call chains, in the form that flame-graph tools read.

use crate::collect::Profile;
use crate::names::Functions;
use holdup_passes::Filter;
use holdup_symbols::Symbols;
use std::collections::BTreeMap;

/// One line per chain: the thread's name, the functions from the outermost on, and the number of
/// samples: `convoy;main;spin 417`. A function without a name is `[unknown]`, or its file in
/// brackets. The form is that of `stackcollapse-perf.pl`, which comes with FlameGraph.
pub fn folded(profile: &Profile, filter: &Filter, symbols: &mut Symbols<'_>) -> String {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    let mut functions = Functions::new(profile, symbols);
    let mut words: Vec<String> = Vec::new();
    for (who, sum, comm) in profile.wanted(filter) {
        let mut line = word(&comm.replace(' ', "_"));
        for frame in profile.code.frames(who.chain).iter().rev() {
            for site in functions.sites(who.pid, frame).iter().rev() {
                for new in &functions.all[words.len()..] {
                    words.push(word(&new.label()));
                }
                line.push(';');
                line += &words[site.function.0 as usize];
            }
        }
        *lines.entry(line).or_default() += sum.samples;
    }
    lines.iter().map(|(line, n)| format!("{line} {n}\n")).collect()
}

/// A name without the characters that would end it in this form.
pub(crate) fn word(name: &str) -> String {
    name.replace([';', '\n', '\r'], ":")
}

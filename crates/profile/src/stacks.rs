//! Whole call chains, as tools that draw flame graphs read them.

use crate::collect::Profile;
use crate::names::Functions;
use holdup_passes::Filter;
use holdup_symbols::Symbols;
use std::collections::BTreeMap;

/// One line for each chain: the thread's name, the functions from the outermost on, and how many
/// samples: `convoy;main;spin 417`. What has no name is `[unknown]`, or the file in brackets.
/// The form is that of `stackcollapse-perf.pl`, the script that comes with flame graphs.
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

/// A name without what ends it in this form.
pub(crate) fn word(name: &str) -> String {
    name.replace([';', '\n', '\r'], ":")
}

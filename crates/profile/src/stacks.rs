//! Whole call chains, as tools that draw flame graphs read them.

use crate::collect::Profile;
use holdup_passes::Filter;
use holdup_symbols::{Code, Symbols};
use std::collections::BTreeMap;

/// One line for each chain: the thread's name, the functions from the outermost on, and how many
/// samples: `convoy;main;spin 417`. What has no name is `[unknown]`, or the file in brackets.
/// The form is that of `stackcollapse-perf.pl`, the script that comes with flame graphs.
pub fn folded(profile: &Profile, filter: &Filter, symbols: &mut Symbols<'_>) -> String {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (who, sum, comm) in profile.wanted(filter) {
        let mut line = word(&comm.replace(' ', "_"));
        for code in profile.code(who).rev() {
            line.push(';');
            line += &word(&frame(&code, symbols));
        }
        *lines.entry(line).or_default() += sum.samples;
    }
    lines.iter().map(|(line, n)| format!("{line} {n}\n")).collect()
}

fn frame(code: &Code, symbols: &mut Symbols<'_>) -> String {
    let named = symbols.name(code);
    match (named.function, named.dso) {
        (Some(function), _) => function.to_string(),
        (None, Some(dso)) => format!("[{}]", dso.trim_matches(['[', ']'])),
        (None, None) => "[unknown]".to_owned(),
    }
}

/// A name without what ends it in this form.
fn word(name: &str) -> String {
    name.replace([';', '\n', '\r'], ":")
}

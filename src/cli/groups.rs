//! `holdup --help` lists the verbs by what they are for.

use super::Command;
use clap::Subcommand;

/// What a newcomer asks for first stands first.
const GROUPS: &[(&str, &[&str])] = &[
    ("Find the bottleneck", &["run", "diagnose", "report", "guide", "summary", "phases"]),
    ("See where time went", &["ledger", "procs", "cpus", "syscalls", "profile", "irqs"]),
    ("See who waits for what", &["waits", "locks", "switches", "latency", "path"]),
    ("Ask what a change would gain", &["whatif", "predict", "scale"]),
    ("Compare recordings, gate in CI", &["diff", "gate", "baseline", "history", "fleet"]),
    ("Get at the data", &["info", "events", "query", "export", "cut"]),
    ("Record", &["record", "doctor", "lab"]),
    ("Look up and set up", &["rules", "completions", "man"]),
];

/// Columns of a line; the list is the same on every terminal.
const WIDTH: usize = 80;
/// Where what a verb does begins.
const INDENT: usize = 15;

/// The help of `holdup` itself, as a template of clap.
pub(super) fn template() -> String {
    let all = Command::augment_subcommands(clap::Command::new("holdup"));
    let mut list = String::new();
    for (title, verbs) in GROUPS {
        list.push_str(&format!("\n{title}:\n"));
        for verb in *verbs {
            let found = all.find_subcommand(verb);
            let about = found.and_then(|verb| verb.get_about()).map(ToString::to_string);
            list.push_str(&line(verb, &about.unwrap_or_default()));
        }
    }
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\nOptions:\n\
         {{options}}{{after-help}}"
    )
}

/// A verb and what it does, on as many lines as that takes.
fn line(verb: &str, about: &str) -> String {
    let mut out = format!("  {verb:<width$}", width = INDENT - 2);
    let mut column = INDENT;
    for (i, word) in about.split(' ').enumerate() {
        if i > 0 && column + 1 + word.len() > WIDTH {
            out.push_str(&format!("\n{:INDENT$}", ""));
            column = INDENT;
        } else if i > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_verb_is_in_one_group() {
        let all = Command::augment_subcommands(clap::Command::new("holdup"));
        let verbs: BTreeSet<&str> = all.get_subcommands().map(clap::Command::get_name).collect();
        let listed: Vec<&str> = GROUPS.iter().flat_map(|group| group.1).copied().collect();
        assert_eq!(listed.len(), verbs.len());
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), verbs);
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let wide: Vec<_> =
            template().lines().filter(|l| l.len() > WIDTH).map(str::to_owned).collect();
        assert_eq!(wide, [] as [&str; 0]);
    }
}

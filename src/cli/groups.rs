//! `holdup --help` lists the verbs by purpose.

/// The groups that a newcomer needs first come first.
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

/// Width of a line in columns; the list is the same on every terminal.
const WIDTH: usize = 80;
/// Column at which the description of a verb begins.
const INDENT: usize = 15;

/// The help of `holdup` itself, whose verbs these are, as a template of clap.
pub(super) fn template(holdup: &clap::Command) -> String {
    let mut list = String::new();
    for (title, verbs) in GROUPS {
        list.push_str(&format!("\n{title}:\n"));
        for verb in *verbs {
            let found = holdup.find_subcommand(verb);
            let about = found.and_then(|verb| verb.get_about()).map(ToString::to_string);
            let line = format!("  {verb:<width$}{}", about.unwrap_or_default(), width = INDENT - 2);
            list.push_str(&holdup_render::wrap(&line, Some(WIDTH), INDENT));
            list.push('\n');
        }
    }
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\nOptions:\n\
         {{options}}{{after-help}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    #[test]
    fn each_verb_is_in_one_group() {
        let all = Cli::command();
        let verbs: BTreeSet<&str> = all.get_subcommands().map(clap::Command::get_name).collect();
        let listed: Vec<&str> = GROUPS.iter().flat_map(|group| group.1).copied().collect();
        assert_eq!(listed.len(), verbs.len());
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), verbs);
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let template = template(&Cli::command());
        let wide: Vec<_> = template.lines().filter(|l| l.len() > WIDTH).collect();
        assert_eq!(wide, [] as [&str; 0]);
    }
}

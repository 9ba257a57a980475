//! `holdup man` and `holdup completions`: generated from the description of the command line.

use crate::cli::Cli;
use crate::exit::{self, Failure, Result, unwritable};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io::{self, Write};
use std::path::Path;

/// Write the completion script of `shell` to standard output.
pub(crate) fn completions(shell: Shell) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "holdup", &mut script);
    io::stdout().lock().write_all(&script).map_err(Failure::Stdout)?;
    Ok(exit::OK)
}

/// Write the page of holdup itself to standard output, or all pages into `folder`.
pub(crate) fn run(folder: Option<&Path>) -> Result<u8> {
    let mut command = Cli::command();
    command.build();
    let Some(folder) = folder else {
        let page = page(&command, &command).and_then(|page| io::stdout().lock().write_all(&page));
        return page.map(|()| exit::OK).map_err(Failure::Stdout);
    };
    std::fs::create_dir_all(folder).map_err(|e| unwritable(folder, &e))?;
    for one in std::iter::once(&command).chain(command.get_subcommands()) {
        let path = folder.join(format!("{}.1", name(one)));
        let written = page(&command, one).and_then(|page| std::fs::write(&path, page));
        written.map_err(|e| unwritable(&path, &e))?;
    }
    Ok(exit::OK)
}

/// The name of a page: `holdup`, `holdup-diagnose`.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

/// The page of `one`, which is `all` or a verb of it.
fn page(all: &Command, one: &Command) -> io::Result<Vec<u8>> {
    let is_verb = name(one) != name(all);
    let man = Man::new(one.clone());
    let mut out = Vec::new();
    // Not render_title: it omits the empty date, which shifts the fields after it.
    let (title, version) = (name(one).to_uppercase(), env!("CARGO_PKG_VERSION"));
    writeln!(out, ".TH {title} 1 \"\" \"holdup {version}\" \"holdup manual\"")?;
    man.render_name_section(&mut out)?;

    let help = one.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (notes, examples) = split(&help);
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    let usage = one.clone().render_usage().to_string();
    roff.text([roman(usage.trim_start_matches("Usage: "))]);
    roff.control("SH", ["DESCRIPTION"]);
    let about = one.get_about().map(ToString::to_string).unwrap_or_default();
    roff.text([roman(format!("{about}."))]);
    for note in notes {
        roff.control("PP", []);
        roff.text([roman(note)]);
    }
    roff.to_writer(&mut out)?;

    man.render_options_section(&mut out)?;
    if !is_verb {
        man.render_subcommands_section(&mut out)?;
    }

    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]);
    roff.control("nf", []);
    for example in examples {
        roff.text([roman(example)]);
    }
    roff.control("fi", []);
    roff.control("SH", ["EXIT STATUS"]);
    for (code, _, meaning) in exit::ALL {
        item(&mut roff, &code.to_string(), &meaning.replace('`', ""));
    }
    for (title, list) in [("FILES", FILES), ("ENVIRONMENT", ENVIRONMENT)] {
        roff.control("SH", [title]);
        list.iter().for_each(|(head, text)| item(&mut roff, head, text));
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(see_also(all, one))]);
    roff.to_writer(&mut out)?;
    Ok(out)
}

const FILES: &[(&str, &str)] = &[
    (
        "perf.data, trace.dat",
        "the trace if none is named: the first of these files in the current directory",
    ),
    ("/proc/lock_stat", "holdup locks reads a copy of it in place of a trace"),
    (
        "/proc/kallsyms",
        "holdup locks and holdup profile read the names of kernel functions from a copy of it \
         (--kallsyms)",
    ),
    ("~/.debug, ~/.cache/debuginfod_client", "where holdup profile looks for files by build id"),
    ("/tmp/perf-PID.map", "names of code that was compiled at run time, for holdup profile"),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("HOME", "the folder of the caches in which holdup profile looks for files"),
    ("NO_COLOR", "if set, text has no colours, except with --color always"),
    (
        "TMPDIR",
        "the folder in which a large trace is unpacked, if it comes from a pipe or is compressed",
    ),
];

/// The notes of a verb's help, by paragraph, and its examples.
fn split(help: &str) -> (Vec<String>, Vec<String>) {
    let mut notes = Vec::new();
    let mut examples = Vec::new();
    for part in help.split("\n\n") {
        if let Some(list) = part.strip_prefix("Example") {
            let lines = list.trim_start_matches(['s', ':']).lines().map(str::trim);
            examples.extend(lines.filter(|l| !l.is_empty()).map(str::to_owned));
        } else if !part.starts_with("Exit codes") {
            // Exit codes have a section of their own.
            notes.push(part.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    (notes, examples)
}

/// A word with its explanation.
fn item(roff: &mut Roff, head: &str, text: &str) {
    roff.control("TP", []);
    roff.text([bold(head)]);
    roff.text([roman(text)]);
}

/// References to holdup's other pages and to the recorders' pages.
fn see_also(all: &Command, one: &Command) -> String {
    let pages = std::iter::once(all).chain(all.get_subcommands()).map(name);
    let others = pages.filter(|page| *page != name(one)).chain(["perf-record", "trace-cmd-record"]);
    others.map(|page| format!("{page}(1)")).collect::<Vec<_>>().join(", ")
}

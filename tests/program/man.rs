//! Manual pages and completion scripts: they are there for every verb, and their readers take them.

use crate::support::{root, stdout, verbs};
use holdup_testkit::needs;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The long options that the help of a verb lists.
fn long_options(verb: &str) -> Vec<String> {
    let help = stdout(&[verb, "--help"]);
    let heads = help.lines().filter(|l| l.trim_start().starts_with('-'));
    heads
        .filter_map(|l| l.split_whitespace().find(|w| w.starts_with("--")))
        // What may follow stands right behind it: --compression-level[=<LEVEL>].
        .map(|w| w.split([',', '[', '=']).next().unwrap_or(w).to_owned())
        .collect()
}

fn pages(folder: &Path) -> BTreeSet<String> {
    let files = std::fs::read_dir(folder).unwrap();
    files.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

/// The text of a page without the marks of roff.
fn plain(page: &str) -> String {
    page.replace("\\fB", "").replace("\\fI", "").replace("\\fR", "").replace("\\-", "-")
}

#[test]
fn every_verb_has_a_page_with_its_options_and_every_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let man1 = folder.path().join("share/man1");
    assert_eq!(stdout(&["man", man1.to_str().unwrap()]), "");
    let verbs = verbs();
    assert!(verbs.len() > 15, "{verbs:?}");
    let wanted: BTreeSet<String> = verbs.iter().map(|v| format!("holdup-{v}.1")).collect();
    let mut there = pages(&man1);
    assert!(there.remove("holdup.1"));
    assert_eq!(there, wanted);
    for verb in &verbs {
        let page = plain(&std::fs::read_to_string(man1.join(format!("holdup-{verb}.1"))).unwrap());
        for option in long_options(verb) {
            assert!(page.contains(&option), "holdup-{verb}(1) does not have {option}");
        }
        for section in ["SYNOPSIS", "EXAMPLES", "\"EXIT STATUS\"", "FILES", "\"SEE ALSO\""] {
            assert!(page.contains(&format!(".SH {section}")), "holdup-{verb}(1): {section}");
        }
        let (_, examples) = page.split_once(".nf\n").unwrap();
        assert!(examples.starts_with("holdup "), "holdup-{verb}(1) has no example");
        assert!(page.contains("holdup(1)") && !page.contains("Example:"));
    }
    let main = plain(&std::fs::read_to_string(man1.join("holdup.1")).unwrap());
    assert_eq!(main, plain(&stdout(&["man"])));
}

#[test]
fn the_readme_and_the_manual_agree_on_exit_codes() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let table = readme.split("## Exit codes").nth(1).unwrap().split("\n## ").next().unwrap();
    let page = plain(&stdout(&["man"]));
    let rows: Vec<&str> =
        table.lines().filter(|l| l.starts_with("| ") && !l.contains("meaning")).collect();
    assert_eq!(rows.len(), 6);
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let item = format!(".TP\n{}\n{}\n", cells[0], cells[1].replace('`', ""));
        assert!(page.contains(&item), "not in the manual: {row}");
    }
}

#[test]
fn a_page_that_cannot_be_written_is_an_error_of_usage() {
    let out = crate::support::run(&["man", "/dev/null/man1"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("/dev/null/man1: cannot be written"));
}

#[needs(groff)]
#[test]
fn pages_render_without_a_warning_in_80_columns() {
    let folder = tempfile::tempdir().unwrap();
    stdout(&["man", folder.path().to_str().unwrap()]);
    for page in pages(folder.path()) {
        let out = Command::new("groff")
            .args(["-ww", "-man", "-Tutf8", "-rLL=80n", "-P-c", "-P-b", "-P-u"])
            .arg(folder.path().join(&page))
            .output()
            .unwrap();
        let warnings = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && warnings.is_empty(), "{page}: {warnings}");
        let text = String::from_utf8(out.stdout).unwrap();
        assert!(text.contains("EXIT STATUS"), "{page}: {text}");
        // Lines of examples are not filled, and stand as they are typed.
        let (before, _) = text.split_once("\nEXAMPLES").unwrap();
        let wide = before.lines().find(|l| l.chars().count() > 80);
        assert!(wide.is_none(), "{page}: {wide:?}");
    }
}

#[test]
fn completion_scripts_name_every_verb_and_option() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&["completions", shell]);
        for verb in verbs() {
            assert!(script.contains(&verb), "{shell}: {verb}");
            for option in long_options(&verb) {
                // fish spells them -l name.
                let fish = format!("-l {}", option.trim_start_matches("--"));
                let there =
                    if shell == "fish" { script.contains(&fish) } else { script.contains(&option) };
                assert!(there, "{shell}: {verb} {option}");
            }
        }
    }
    assert_eq!(crate::support::run(&["completions", "cmd"]).status.code(), Some(2));
}

/// Whether the shell takes the script as one of its own.
fn parses(shell: &str, args: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, stdout(&["completions", shell])).unwrap();
    let out = Command::new(shell).args(args).arg(&script).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
}

#[needs(bash)]
#[test]
fn bash_takes_its_script_and_completes_with_it() {
    parses("bash", &["-n"]);
    let ask = "source <(\"$0\" completions bash); COMP_WORDS=(holdup info --fu); COMP_CWORD=2; \
               _holdup holdup --fu info; echo \"${COMPREPLY[@]}\"";
    let out =
        Command::new("bash").args(["-c", ask, env!("CARGO_BIN_EXE_holdup")]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "--full\n");
}

#[needs(zsh)]
#[test]
fn zsh_takes_its_script() {
    parses("zsh", &["-n"]);
}

#[needs(fish)]
#[test]
fn fish_takes_its_script() {
    parses("fish", &["--no-execute"]);
}

//! The documents keep up with the code: what they name exists, what exists is in their tables, and
//! their links lead somewhere.

use crate::support::{files_below, root, stdout as help, verbs};
use holdup_diagnose::Class;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The lines of a Markdown text outside of fenced code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// What stands in backticks.
fn in_backticks(text: &str) -> Vec<&str> {
    prose(text).flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
}

/// The rows of the tables below a heading, as cells.
fn table<'a>(text: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let below = text.lines().skip_while(|l| *l != heading).skip(1);
    let rows: Vec<Vec<&str>> = below
        .take_while(|l| !l.starts_with("## "))
        .filter(|l| l.starts_with('|') && !l.starts_with("|--") && !l.starts_with("| --"))
        .map(|l| l.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert!(rows.len() > 2, "no table below {heading}");
    rows[1..].to_vec()
}

// What the contributors' documents name.

/// Whether a word in backticks names a file or folder of the repository.
fn is_path(word: &str) -> bool {
    let source = [".rs", ".md", ".toml", ".sh", ".snap"].iter().any(|end| word.ends_with(end));
    let folder = word.split_once('/').is_some_and(|(first, _)| {
        matches!(
            first,
            ".ci" | "benches" | "crates" | "docs" | "fixtures" | "fuzz" | "src" | "tests"
        )
    });
    (source || folder) && !word.contains([' ', '(', ':'])
}

/// Whether the path exists; what stands in `<>` is a name to be filled in, and ends the search.
fn exists(path: &str) -> bool {
    let known: PathBuf = Path::new(path)
        .iter()
        .take_while(|part| !part.to_string_lossy().contains(['<', '*']))
        .collect();
    root().join(known).exists()
}

#[test]
fn paths_in_backticks_exist() {
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = read(document);
        let paths: Vec<&str> = in_backticks(&text).into_iter().filter(|w| is_path(w)).collect();
        assert!(paths.len() > 20, "{document}: only {paths:?}");
        let missing: Vec<&&str> = paths.iter().filter(|p| !exists(p)).collect();
        assert!(missing.is_empty(), "{document} names what is not there: {missing:?}");
    }
}

#[test]
fn the_search_for_paths_finds_what_it_is_for() {
    let text = "In `crates/open/src/no.rs`, `kinds.rs` and `src/<verb>.rs`:\n```\n`src/x.rs`\n```\n\
                not `idle/thread-sync`, `holdup/1`, `cargo test --test x`";
    let paths: Vec<&str> = in_backticks(text).into_iter().filter(|w| is_path(w)).collect();
    assert_eq!(paths, ["crates/open/src/no.rs", "kinds.rs", "src/<verb>.rs"]);
    assert_eq!(paths.iter().map(|p| exists(p)).collect::<Vec<_>>(), [false, false, true]);
}

/// The crates of the workspace, and the crates of the workspace that each is built on.
fn crates() -> BTreeMap<String, BTreeSet<String>> {
    let folders = std::fs::read_dir(root().join("crates")).unwrap();
    let names = folders.map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
    let mut crates: BTreeMap<String, BTreeSet<String>> = names
        .map(|name| {
            let manifest: toml::Table = read(format!("crates/{name}/Cargo.toml")).parse().unwrap();
            let uses = manifest.get("dependencies").and_then(|d| d.as_table());
            let uses = uses.into_iter().flat_map(|t| t.keys());
            (name, uses.filter_map(|k| Some(k.strip_prefix("holdup-")?.to_owned())).collect())
        })
        .collect();
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let uses = manifest["dependencies"].as_table().unwrap().keys();
    let uses = uses.filter_map(|k| Some(k.strip_prefix("holdup-")?.to_owned()));
    crates.insert("holdup".to_owned(), uses.collect());
    crates
}

#[test]
fn the_table_of_crates_is_what_cargo_builds() {
    let text = read("ARCHITECTURE.md");
    let mut listed = BTreeMap::new();
    for row in table(&text, "## The crates") {
        let words = |cell| in_backticks(cell).into_iter().map(str::to_owned).collect::<Vec<_>>();
        for name in words(row[0]).into_iter().filter(|n| !n.contains('/')) {
            assert!(listed.insert(name.clone(), words(row[2])).is_none(), "{name} stands twice");
        }
    }
    let crates = crates();
    let names = |of: Vec<&String>| of.into_iter().cloned().collect::<BTreeSet<String>>();
    let (listed_names, made) = (names(listed.keys().collect()), names(crates.keys().collect()));
    let missing: Vec<_> = made.difference(&listed_names).collect();
    assert!(missing.is_empty(), "the table of crates in ARCHITECTURE.md lacks {missing:?}");
    let gone: Vec<_> = listed_names.difference(&made).collect();
    assert!(gone.is_empty(), "ARCHITECTURE.md lists {gone:?}, which is no crate");
    for (name, uses) in crates.iter().filter(|(name, _)| *name != "holdup") {
        assert_eq!(
            listed[name].iter().cloned().collect::<BTreeSet<_>>(),
            *uses,
            "what ARCHITECTURE.md and crates/{name}/Cargo.toml say that {name} is built on"
        );
    }
}

// What the README and the glossary list.

/// The words in backticks in the first cells of a table.
fn first_cells(text: &str, heading: &str) -> Vec<String> {
    let rows = table(text, heading);
    rows.iter().flat_map(|row| in_backticks(row[0])).map(str::to_owned).collect()
}

#[test]
fn the_readme_lists_every_verb() {
    let (mut listed, mut verbs) = (first_cells(&read("README.md"), "## Verbs"), verbs());
    listed.sort();
    verbs.sort();
    assert_eq!(listed, verbs);
}

#[test]
fn the_readme_lists_every_class() {
    let listed = first_cells(&read("README.md"), "## What the verdict can be");
    let classes: Vec<&str> = Class::ALL.iter().map(|c| c.id()).collect();
    assert_eq!(listed, classes);
}

#[test]
fn the_table_of_fixtures_lists_every_fixture_with_its_class() {
    let text = read("fixtures/README.md");
    let rows = table(&text, "# Fixtures");
    let link = |cell: &str| cell.split_once("](").unwrap().1.trim_end_matches(')').to_owned();
    let listed: BTreeSet<(String, String)> =
        rows.iter().map(|row| (link(row[0]), row[1].trim_matches('`').to_owned())).collect();
    let folders = std::fs::read_dir(root().join("fixtures")).unwrap().map(|e| e.unwrap().path());
    let there: BTreeSet<(String, String)> = folders
        .filter(|folder| folder.join("truth.json").exists())
        .map(|folder| {
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            let truth: serde_json::Value =
                serde_json::from_str(&read(folder.join("truth.json"))).unwrap();
            (format!("{name}/README.md"), truth["true_class"].as_str().unwrap().to_owned())
        })
        .collect();
    assert_eq!(listed, there);
}

/// Words of `--help` that somebody who knows perf and the kernel need not know.
const WORDS_OF_HELP: &[&str] =
    &["class", "evidence", "ledger", "rule", "threshold", "utld", "verdict"];

/// The words that the glossary defines.
fn glossary() -> BTreeSet<String> {
    let text = read("docs/glossary.md");
    let cells = prose(&text).filter(|l| l.starts_with("| ") && !l.starts_with("| word"));
    let words = cells.flat_map(|l| l.split('|').nth(1).unwrap().split(','));
    let words: BTreeSet<String> = words.map(|w| w.trim().replace('`', "")).collect();
    assert!(words.len() > 30, "{words:?}");
    words
}

#[test]
fn words_of_the_help_are_in_the_glossary() {
    let mut text = help(&["--help"]);
    verbs().iter().for_each(|verb| text += &help(&[verb, "--help"]));
    let text = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let defined = glossary();
    for word in WORDS_OF_HELP {
        assert!(text.contains(word), "no help says '{word}' any more: take it off the list");
        assert!(defined.contains(*word), "docs/glossary.md does not explain '{word}'");
    }
}

// Links.

/// Every Markdown document, but for parts of others.
fn documents() -> Vec<PathBuf> {
    let mut found = files_below(root(), &[".md"]);
    let below = |path: &PathBuf| path.strip_prefix(root()).expect("it is below").to_owned();
    found.retain(|path| !below(path).iter().any(|part| part == "tests"));
    found
}

/// The text without what stands in backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// Targets of `[text](target)`.
fn links(text: &str) -> Vec<String> {
    prose(text)
        .flat_map(|line| {
            let line = without_code(line);
            let targets = line.split("](").skip(1).filter_map(|l| l.split(')').next());
            targets.map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

/// The anchors GitHub gives to the headings of a document.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter(|l| l.starts_with('#'));
    let slug = |heading: &str| -> String {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings
        .map(|heading| {
            let slug = slug(heading);
            let n = seen.entry(slug.clone()).or_default();
            *n += 1;
            if *n == 1 { slug } else { format!("{slug}-{}", *n - 1) }
        })
        .collect()
}

/// Why a link of `document` leads nowhere.
fn dead(document: &Path, link: &str) -> Option<String> {
    if link.starts_with("https://") || link.starts_with("http://") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = match file {
        "" => document.to_owned(),
        file => document.parent().unwrap().join(file),
    };
    if !path.exists() {
        return Some(format!("{}: {link}: no such file", document.display()));
    }
    if anchor.is_empty() || anchors(&std::fs::read_to_string(&path).unwrap()).contains(anchor) {
        return None;
    }
    Some(format!("{}: {link}: no such heading", document.display()))
}

#[test]
fn links_lead_somewhere() {
    let (mut checked, mut failures) = (0, Vec::new());
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        for link in links(&text) {
            checked += 1;
            failures.extend(dead(&document, &link));
        }
    }
    assert!(checked > 60, "only {checked} links");
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn the_search_for_dead_links_finds_what_it_is_for() {
    let text = "[a](docs/no.md), [b](docs/waits.md#blame), [c](docs/waits.md#shame) `x[0](y)`\n\
                # Try `it`: now\n## Try it now\n[d](#try-it-now-1)";
    assert_eq!(anchors(text), BTreeSet::from(["try-it-now".into(), "try-it-now-1".into()]));
    let readme = root().join("README.md");
    let found = links(text);
    let dead: Vec<bool> = found.iter().take(3).map(|l| dead(&readme, l).is_some()).collect();
    assert_eq!((found.len(), dead), (4, vec![true, false, true]));
}

/// The example at the top of the README is what the tool prints.
#[test]
fn the_readme_shows_the_tools_own_output() {
    const COMMAND: &str = "$ holdup diagnose fixtures/imb_server_c4/perf.data\n";
    let readme = read("README.md");
    let (before, rest) = readme.split_once(COMMAND).expect("the example");
    let (shown, after) = rest.split_once("```").expect("its end");
    let printed = help(&["diagnose", "fixtures/imb_server_c4/perf.data"]);
    if std::env::var_os("HOLDUP_BLESS").is_some() {
        let text = format!("{before}{COMMAND}{printed}```{after}");
        std::fs::write(root().join("README.md"), text).unwrap();
        return;
    }
    assert!(shown == printed, "README.md: HOLDUP_BLESS=1 cargo test --test program documents");
}

/// What the release of this version shows is what `packaging/notes.sh` finds.
#[test]
fn the_changelog_has_a_section_for_this_version() {
    let text = read("CHANGELOG.md");
    let heads: Vec<&str> = text.lines().filter(|l| l.starts_with("## ")).collect();
    assert_eq!(heads[0], "## Unreleased");
    let version = env!("CARGO_PKG_VERSION");
    assert!(heads[1].starts_with(&format!("## [{version}] - 20")), "{heads:?}");
    let notes = |version: &str| {
        let script = root().join("packaging/notes.sh");
        std::process::Command::new(script).arg(version).output().expect("bash")
    };
    let out = notes(version);
    let printed = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success() && printed.contains("### Input") && !printed.contains("\n## "));
    assert!(!notes("9.9.9").status.success());
}

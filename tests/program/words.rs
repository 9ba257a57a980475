//! Words that only holdup used, and the field's words that took their place: the private ones do
//! not come back.

use crate::support::{files_below, root};

/// Not this, but that.
const PRIVATE: &[(&str, &str)] = &[
    ("knot", "wait cycle"),
    ("knots", "wait cycles"),
    ("hold-up", "bottleneck"),
    ("make-up", "composition"),
    ("in company", "concurrently"),
    ("late thread", "straggler"),
    ("dark call", "untraced call"),
    ("dark calls", "untraced calls"),
    ("taking turns at", "contending for"),
    ("takes turns at", "contends for"),
    ("take turns at", "contend for"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("fixed twin", "fixed variant"),
    ("told apart", "distinguished"),
    ("in sum", "in total"),
    ("passed over", "skipped"),
    ("laid to", "charged to"),
    ("mending", "fixing"),
    ("rule holds", "rule fires"),
    ("rules hold", "rules fire"),
    ("gave back", "released"),
];

/// Whether a text has the word, not as part of another.
fn has(text: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric());
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !is_part(before.chars().next_back()) && !is_part(after.chars().next())
    })
}

#[test]
fn private_words_do_not_come_back() {
    let folders = ["src", "crates", "docs"].map(|folder| root().join(folder));
    let below = folders.iter().map(|folder| files_below(folder, &[".rs", ".md", ".js"]));
    let mut all: Vec<_> = below.flatten().collect();
    all.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|f| root().join(f)));
    assert!(all.len() > 500, "{} files", all.len());
    let mut found = Vec::new();
    for file in all {
        let text = std::fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate() {
            let line = line.to_lowercase();
            let private = PRIVATE.iter().filter(|(word, _)| has(&line, word));
            found.extend(private.map(|(word, say)| {
                format!("{}:{}: {word}: say {say}", file.display(), number + 1)
            }));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_word_is_found_alone_and_not_in_another() {
    assert!(has("to mend it", "mend") && has("mend", "mend") && has("(mend)", "mend"));
    assert!(!has("recommend", "mend") && !has("amends", "mend"));
}

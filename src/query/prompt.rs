//! The prompt: one query per line, with completion of names and a history.

use crate::exit::{Failure, Result};
use holdup_tables::Frames;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::io;
use std::path::PathBuf;

/// Text printed when the prompt starts, and for `help`.
pub(crate) const HELP: &str = "A query may take several lines; a semicolon ends it. Tab completes \
names of tables and columns.
tables: all tables; columns TABLE: the columns of a table; examples; \
help; quit (or Ctrl-D)";

/// Words that begin parts of a query.
const KEYWORDS: &[&str] = &[
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "DESC",
    "DISTINCT",
    "ELSE",
    "END",
    "FROM",
    "GROUP",
    "HAVING",
    "IN",
    "IS",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "ON",
    "OR",
    "ORDER",
    "OVER",
    "PARTITION",
    "SELECT",
    "THEN",
    "UNION",
    "USING",
    "WHEN",
    "WHERE",
    "WITH",
];

/// Commands of the prompt itself, which end with the line.
const COMMANDS: &[&str] = &["tables", "columns", "examples", "help", "quit", "exit"];

/// Prompt until the input ends; `answer` gets each line.
pub(crate) fn ask(frames: &Frames, answer: impl FnMut(&str) -> io::Result<()>) -> Result<()> {
    asked(frames, answer).map_err(|error| match error {
        ReadlineError::Io(error) => Failure::Stdout(error),
        error => Failure::Stdout(io::Error::other(error)),
    })
}

fn asked(frames: &Frames, mut answer: impl FnMut(&str) -> io::Result<()>) -> rustyline::Result<()> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .history_ignore_space(true)
        .max_history_size(1000)?
        .build();
    let mut editor: Editor<Names, DefaultHistory> = Editor::with_config(config)?;
    editor.set_helper(Some(Names::of(frames)));
    let history = history();
    if let Some(file) = &history {
        // Ignore errors: the first time there is no history.
        let _ = editor.load_history(file);
    }
    loop {
        match editor.readline("holdup> ") {
            Ok(line) => {
                let line = line.trim().trim_end_matches(';').trim_end();
                if line.is_empty() {
                    continue;
                }
                editor.add_history_entry(line)?;
                if matches!(line, "quit" | "exit" | "\\q") {
                    break;
                }
                answer(line)?;
            }
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(e) => return Err(e),
        }
    }
    if let Some(file) = &history {
        // Failing to save the history must not turn an answered query into a failure.
        let folder = file.parent().map(std::fs::create_dir_all);
        if matches!(folder, Some(Ok(()))) {
            let _ = editor.save_history(file);
        }
    }
    Ok(())
}

/// `$XDG_STATE_HOME/holdup/query_history`, by default below `~/.local/state`.
fn history() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").filter(|s| !s.is_empty()).map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    Some(state.or_else(home)?.join("holdup/query_history"))
}

/// Completes names of tables and columns.
struct Names {
    words: Vec<String>,
}

impl Names {
    fn of(frames: &Frames) -> Names {
        let mut words: Vec<String> =
            KEYWORDS.iter().chain(COMMANDS).map(|word| (*word).to_owned()).collect();
        for table in frames.names() {
            words.push(table.to_owned());
            let columns = frames.schema(table).into_iter().flat_map(|schema| schema.iter_names());
            words.extend(columns.map(|name| name.to_string()));
        }
        words.sort();
        words.dedup();
        Names { words }
    }
}

/// The start of the word that ends at `at`.
fn word_before(line: &str, at: usize) -> usize {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line[..at]
        .rfind(|c| !part(c))
        .map_or(0, |i| i + line[i..].chars().next().map_or(1, char::len_utf8))
}

impl Completer for Names {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let from = word_before(line, at);
        let begun = line[from..at].to_lowercase();
        if begun.is_empty() {
            return Ok((at, Vec::new()));
        }
        let fits = |word: &&String| word.to_lowercase().starts_with(&begun);
        Ok((from, self.words.iter().filter(fits).cloned().collect()))
    }
}

impl Validator for Names {
    /// A command ends with its line, a query with a semicolon.
    fn validate(&self, context: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        let line = context.input().trim();
        let command = line.split_whitespace().next().is_none_or(|w| COMMANDS.contains(&w));
        Ok(match command || line.ends_with(';') || line == "\\q" {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Highlighter for Names {}
impl Hinter for Names {
    type Hint = String;
}
impl Helper for Names {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_at_the_cursor_is_completed() {
        assert_eq!(word_before("SELECT s.dur", 12), 9);
        assert_eq!(word_before("sel", 3), 0);
        assert_eq!(word_before("SELECT ü, n", 12), 11);
        assert_eq!(word_before("a(", 2), 2);
    }
}

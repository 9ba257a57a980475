//! Splits the arguments into traces and the query.

use crate::exit::{Result, usage};
use std::path::{Path, PathBuf};

/// Traces, folders of exports, and a query.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) inputs: Vec<PathBuf>,
    pub(super) sql: Option<String>,
}

impl Words {
    /// The last argument is the query unless a file has this name: no file is called `SELECT …`.
    pub(super) fn of(words: &[String]) -> Result<Words> {
        let exists = |word: &String| Path::new(word).exists();
        let (inputs, sql) = match words.split_last() {
            Some((last, rest)) if !exists(last) => {
                if !last.contains(char::is_whitespace) {
                    return Err(usage(format!(
                        "{last}: no such file; a query is one argument in quotes: holdup query \
                         TRACE 'SELECT ...'"
                    )));
                }
                (rest, Some(last.clone()))
            }
            _ => (words, None),
        };
        if let Some(missing) = inputs.iter().find(|word| !exists(word)) {
            let why = match missing.contains(char::is_whitespace) {
                true => "write a single query, after the traces",
                false => "no such file",
            };
            return Err(usage(format!("{missing}: {why}")));
        }
        Ok(Words { inputs: inputs.iter().map(PathBuf::from).collect(), sql })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[&str]) -> Result<Words> {
        Words::of(&list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_last_word_is_the_query_unless_it_is_a_file() {
        let both = words(&["Cargo.toml", "src", "SELECT 1 FROM runs"]).unwrap();
        assert_eq!(both.inputs, [PathBuf::from("Cargo.toml"), PathBuf::from("src")]);
        assert_eq!(both.sql.as_deref(), Some("SELECT 1 FROM runs"));
        assert_eq!(words(&["Cargo.toml"]).unwrap().sql, None);
        assert_eq!(words(&["SELECT 1 FROM runs"]).unwrap().inputs, [] as [PathBuf; 0]);
        assert_eq!(words(&[]).unwrap(), Words { inputs: vec![], sql: None });
    }

    #[test]
    fn what_is_neither_is_an_error() {
        for wrong in [&["no.data"][..], &["no.data", "SELECT 1 FROM r"], &["SELECT 1", "SELECT 2"]]
        {
            assert!(words(wrong).is_err(), "{wrong:?}");
        }
    }
}

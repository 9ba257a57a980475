//! A user's default options, from a file: `[VERB]` has options of one verb, `[all]` has options of
//! every verb that knows them. Typed options override the file.
//!
//! ```toml
//! [all]
//! color = "never"
//!
//! [record]
//! max-size = "2G"
//! event = ["block:*"]
//! ```

use crate::cli::Cli;
use crate::exit::{Result, usage};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The section with options of every verb.
const ALL: &str = "all";

/// The command line, with options of the file that it does not contain.
pub(crate) fn added(words: Vec<OsString>) -> Result<Vec<OsString>> {
    // Errors are reported later, by the final parse.
    let Ok(typed) = Cli::command().try_get_matches_from(&words) else { return Ok(words) };
    let (Some((verb, of_verb)), Some((path, file))) = (typed.subcommand(), file(&typed)?) else {
        return Ok(words);
    };
    let fail = |why: String| usage(format!("{}: {why}", path.display()));
    let options = options(&file, verb, of_verb).map_err(fail)?;
    let Some(at) = words.iter().position(|word| word == verb).filter(|_| !options.is_empty())
    else {
        return Ok(words);
    };
    let mut all = words;
    all.splice(at + 1..at + 1, options.iter().map(OsString::from));
    match Cli::command().try_get_matches_from(&all) {
        Ok(_) => Ok(all),
        Err(e) => Err(fail(format!("{}: {}", options.join(" "), first_line(&e.to_string())))),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_start_matches("error: ")
}

/// The file that was named, or the user's own if there is one.
fn file(typed: &ArgMatches) -> Result<Option<(PathBuf, Table)>> {
    let named = typed.get_one::<PathBuf>("config").cloned();
    let Some(path) = named.clone().or_else(own) else { return Ok(None) };
    if named.is_none() && !path.exists() {
        return Ok(None);
    }
    let text = crate::thresholds::read(&path)?;
    let table = text.parse().map_err(|e| usage(format!("{}: {e}", path.display())))?;
    Ok(Some((path, table)))
}

fn own() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join(Path::new("holdup/config.toml")))
}

/// The file's options for a verb as arguments, except those that were typed.
fn options(file: &Table, verb: &str, typed: &ArgMatches) -> Result<Vec<String>, String> {
    let holdup = Cli::command();
    let mut words = Vec::new();
    for (section, values) in file {
        let command = match section.as_str() {
            ALL => holdup.find_subcommand(verb),
            name => Some(
                holdup.find_subcommand(name).ok_or_else(|| format!("[{name}]: no such verb"))?,
            ),
        };
        let values =
            values.as_table().ok_or_else(|| format!("{section}: is not a section [VERB]"))?;
        for (key, value) in values {
            let known = command.and_then(|command| option(command, key));
            let known = known.or_else(|| option(&holdup, key));
            match known {
                Some(_) if section != ALL && section != verb => {}
                Some(id) if typed.value_source(&id) == Some(ValueSource::CommandLine) => {}
                Some(_) => words.extend(spelled(section, key, value)?),
                None if section == ALL
                    && holdup.get_subcommands().any(|c| option(c, key).is_some()) => {}
                None => return Err(format!("[{section}] {key}: no such option")),
            }
        }
    }
    Ok(words)
}

/// clap's id of the option `--KEY`.
fn option(command: &Command, key: &str) -> Option<String> {
    let found = command.get_arguments().find(|arg| arg.get_long() == Some(key))?;
    Some(found.get_id().to_string())
}

/// An option as command-line arguments.
fn spelled(section: &str, key: &str, value: &Value) -> Result<Vec<String>, String> {
    Ok(match value {
        Value::Boolean(true) => vec![format!("--{key}")],
        Value::Boolean(false) => Vec::new(),
        Value::String(text) => vec![format!("--{key}={text}")],
        Value::Integer(n) => vec![format!("--{key}={n}")],
        Value::Float(x) => vec![format!("--{key}={x}")],
        Value::Array(list) => {
            let each: Result<Vec<_>, _> = list.iter().map(|v| spelled(section, key, v)).collect();
            each?.concat()
        }
        Value::Table(_) | Value::Datetime(_) => {
            return Err(format!("[{section}] {key}: is not a value that an option can have"));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(file: &str, words: &[&str]) -> Result<Vec<String>, String> {
        let typed = Cli::command().try_get_matches_from(words).unwrap();
        let (verb, of_verb) = typed.subcommand().unwrap();
        options(&file.parse().unwrap(), verb, of_verb)
    }

    #[test]
    fn options_of_the_verb_and_of_all_are_added_unless_typed() {
        let file = "[all]\ncolor = 'never'\n[record]\nmax-size = '2G'\nevent = ['a:b', 'c:d']\n\
                    freq = 9\nstacks = true\nquiet = false\n";
        let record = of(file, &["holdup", "record", "-F", "7", "true"]).unwrap();
        assert_eq!(record, ["--event=a:b", "--event=c:d", "--max-size=2G", "--stacks"]);
        let diagnose = of(file, &["holdup", "diagnose", "x"]).unwrap();
        assert_eq!(diagnose, ["--color=never"]);
        assert_eq!(of(file, &["holdup", "diagnose", "--color=auto", "x"]).unwrap(), [""; 0]);
    }

    #[test]
    fn what_is_unknown_is_named() {
        let record = ["holdup", "record", "true"];
        for (file, named) in [
            ("[recrod]\na = 1", "recrod"),
            ("[record]\nmaxsize = 1", "maxsize"),
            ("[all]\ncolour = 1", "colour"),
            ("color = 'never'", "color"),
            ("[record.event]\na = 1", "event"),
        ] {
            let error = of(file, &record).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}

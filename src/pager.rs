//! Answers longer than the terminal go through a pager, as in git.

use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

static OFF: AtomicBool = AtomicBool::new(false);

/// Default options for less: quit if everything fits, keep colours, leave the text on the screen.
const LESS: &str = "FRX";

/// Use no pager from now on.
pub(crate) fn off() {
    OFF.store(true, Ordering::Relaxed);
}

/// The pager's command, if standard output is a terminal and the pager is not disabled.
fn command() -> Option<String> {
    if OFF.load(Ordering::Relaxed) || !io::stdout().is_terminal() {
        return None;
    }
    chosen(|name| std::env::var(name).ok())
}

/// holdup's own variable precedes PAGER; an empty value or `cat` means no pager.
fn chosen(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    if variable("TERM").is_some_and(|term| term == "dumb") {
        return None;
    }
    let set = ["HOLDUP_PAGER", "PAGER"].into_iter().find_map(variable);
    let pager = set.unwrap_or_else(|| "less".to_owned());
    let pager = pager.trim();
    (!pager.is_empty() && pager != "cat").then(|| pager.to_owned())
}

/// A running pager.
pub(crate) struct Pager(Child);

impl Pager {
    /// Start the pager, if one is wanted and available.
    pub(crate) fn start() -> Option<Pager> {
        // Run a shell, because the variable may contain options.
        let mut pager = Command::new("sh");
        pager.arg("-c").arg(command()?).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            pager.env("LESS", LESS);
        }
        pager.spawn().ok().map(Pager)
    }

    /// Pass the pager's input to `write`, and wait until the user quits: to quit before the end is
    /// no failure.
    pub(crate) fn show<T>(mut self, write: impl FnOnce(&mut dyn Write) -> T) -> T {
        let done = match self.0.stdin.take() {
            Some(mut stdin) => write(&mut stdin),
            None => write(&mut io::stdout().lock()),
        };
        let _ = self.0.wait();
        done
    }
}

/// Whether `text` has more lines than the terminal.
fn is_long(text: &[u8], height: Option<usize>) -> bool {
    height.is_some_and(|height| text.iter().filter(|&&b| b == b'\n').count() >= height)
}

/// Print `text`, through a pager if it is long.
pub(crate) fn print(text: &[u8]) -> io::Result<()> {
    let height = terminal_size::terminal_size().map(|(_, height)| height.0.into());
    let pager = if is_long(text, height) { Pager::start() } else { None };
    match pager {
        Some(pager) => match pager.show(|out| out.write_all(text)) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            done => done,
        },
        None => {
            let mut out = io::stdout().lock();
            out.write_all(text)?;
            out.flush()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_choose_the_pager() {
        let of = |set: &[(&str, &str)]| {
            let set: Vec<(String, String)> =
                set.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            chosen(|name| set.iter().find(|s| s.0 == name).map(|s| s.1.clone()))
        };
        assert_eq!(of(&[]).as_deref(), Some("less"));
        assert_eq!(of(&[("PAGER", "more")]).as_deref(), Some("more"));
        assert_eq!(of(&[("HOLDUP_PAGER", "less -S"), ("PAGER", "")]).as_deref(), Some("less -S"));
        assert_eq!(of(&[("HOLDUP_PAGER", ""), ("PAGER", "more")]), None);
        assert_eq!(of(&[("PAGER", "cat")]), None);
        assert_eq!(of(&[("TERM", "dumb")]), None);
    }

    #[test]
    fn what_fits_needs_no_pager() {
        assert!(!is_long(b"a\nb\n", Some(3)));
        assert!(is_long(b"a\nb\nc\n", Some(3)));
        assert!(!is_long(b"a\nb\nc\n", None));
    }
}

//! Exit codes: part of the public interface.

use holdup_export::ExportError;
use holdup_fleet::FleetError;
use holdup_host::Obstacle;
use holdup_render::UnknownKey;
use holdup_trace::ReadError;
use std::io;
use std::path::{Path, PathBuf};

macro_rules! codes {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident = $code:literal: $short:literal, $meaning:literal;
    )+) => {
        $($(#[doc = $doc])+ pub(crate) const $name: u8 = $code;)+

        /// Every exit code: its short name, and its meaning in a sentence.
        pub(crate) const ALL: &[(u8, &str, &str)] = &[$(($code, $short, $meaning)),+];
    };
}

codes! {
    /// Success. A closed pipe is no failure, as in `holdup ... | head`.
    OK = 0: "ok", "holdup gave an answer, whatever it says";
    /// `--fail-on` matched, or the gate failed.
    FAILED = 1: "--fail-on matched, or the gate failed",
        "the verdict is one of those named with `diagnose --fail-on CLASS`, or `gate` found a \
         regression (`history --fail`: a regression that was not reverted; `gate --self-test`: the \
         gate cannot fail)";
    /// Wrong usage, or the output cannot be written.
    USAGE = 2: "usage", "the command line is wrong, or the output cannot be written";
    /// The input cannot be read, or the host does not allow the recording.
    INPUT = 3: "the input cannot be read, or the host does not allow the recording",
        "the input cannot be read, or the host does not allow the recording; the message says what \
         is wrong and where, or what to do";
    /// The trace cannot show what was requested.
    INCONCLUSIVE = 4: "not enough evidence to decide", "not enough evidence to decide";
    /// An unexpected error, which has no code of its own.
    DEFECT = 5: "a defect of holdup", "a defect of holdup; please report it with the message, \
                                       which says what went wrong";
}

/// All in one sentence, for the help.
pub(crate) fn list() -> String {
    let codes: Vec<String> = ALL.iter().map(|(code, short, _)| format!("{code} {short}")).collect();
    format!(
        "Exit codes: {}.\nIf the command of record or run fails, the exit code is the command's.",
        codes.join(", ")
    )
}

/// The result of a verb.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why there is no answer. Every error of the libraries is converted to one of these where it
/// occurs, so that each has a code: an unhandled kind does not compile.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line is wrong, or the output cannot be written.
    #[error("{0}")]
    Usage(String),
    /// A file that is read by holdup itself is wrong, such as a baseline.
    #[error("{0}")]
    Input(String),
    /// The host does not allow what was requested.
    #[error("{0}")]
    Denied(Obstacle),
    /// The trace lacks the data for the answer.
    #[error("{0}")]
    Unanswerable(String),
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] ReadError),
    /// A column that no table of the answer has.
    #[error(transparent)]
    Key(#[from] UnknownKey),
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// Writing to standard output failed, or reading a terminal's answers did.
    #[error("standard input or output: {0}")]
    Stdout(#[source] io::Error),
    /// Writing to a file that was opened for the answer failed.
    #[error("{}: cannot be written: {error}", path.display())]
    Unfinished {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    /// A value of holdup that cannot be serialised as JSON.
    #[error("an answer cannot be written as JSON: {0}")]
    Json(#[source] serde_json::Error),
}

impl Failure {
    /// The exit code of this failure.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) | Failure::Key(_) => USAGE,
            Failure::Input(_) | Failure::Denied(_) | Failure::Trace(_) => INPUT,
            Failure::Unanswerable(_) => INCONCLUSIVE,
            Failure::Export(ExportError::Trace(_)) => INPUT,
            Failure::Export(ExportError::Write { error, .. }) => written(error),
            Failure::Fleet(FleetError::Output { error, .. }) => written(error),
            Failure::Fleet(FleetError::Busy(_)) => USAGE,
            Failure::Stdout(error) | Failure::Unfinished { error, .. } => written(error),
            Failure::Json(_) => DEFECT,
        }
    }
}

/// A reader that closes the pipe early is no failure.
fn written(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::BrokenPipe { OK } else { USAGE }
}

/// The error for an answer that could not be written completely, to a file or standard output.
pub(crate) fn unfinished(file: Option<PathBuf>) -> impl FnOnce(io::Error) -> Failure {
    move |error| match file {
        Some(path) => Failure::Unfinished { path, error },
        None => Failure::Stdout(error),
    }
}

/// A usage error with this message.
pub(crate) fn usage(message: impl Into<String>) -> Failure {
    Failure::Usage(message.into())
}

/// An error about an input file.
pub(crate) fn bad_input(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::Input(format!("{}: {why}", path.display()))
}

/// A file that cannot be written.
pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Failure {
    usage(format!("{}: cannot be written: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(failure: impl Into<Failure>) -> u8 {
        failure.into().code()
    }

    #[test]
    fn each_failure_has_the_code_of_who_can_fix_it() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let trace = || holdup_trace::ErrorKind::Io(full()).in_file(Path::new("t"));
        let path = || PathBuf::from("t");
        assert_eq!(code(usage("x")), USAGE);
        assert_eq!(code(bad_input(Path::new("t"), "x")), INPUT);
        assert_eq!(code(trace()), INPUT);
        assert_eq!(code(ExportError::Trace(trace())), INPUT);
        assert_eq!(code(ExportError::Write { path: path(), error: full() }), USAGE);
        assert_eq!(code(FleetError::Output { path: path(), error: full() }), USAGE);
        assert_eq!(code(FleetError::Busy(path())), USAGE);
        assert_eq!(code(Failure::Unanswerable("x".to_owned())), INCONCLUSIVE);
        assert_eq!(code(unfinished(Some(path()))(full())), USAGE);
        let error = serde_json::from_str::<u8>("x").unwrap_err();
        assert_eq!(code(Failure::Json(error)), DEFECT);
    }

    #[test]
    fn who_stops_reading_makes_no_failure() {
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(code(unfinished(None)(closed())), OK);
        assert_eq!(code(unfinished(Some("pipe".into()))(closed())), OK);
        assert_eq!(code(unfinished(None)(io::ErrorKind::StorageFull.into())), USAGE);
    }
}

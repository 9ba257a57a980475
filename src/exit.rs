//! Exit codes: part of the outward contract.

use holdup_export::ExportError;
use holdup_fleet::FleetError;
use holdup_host::Obstacle;
use holdup_render::UnknownKey;
use holdup_trace::ReadError;
use std::path::Path;

macro_rules! codes {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident = $code:literal: $short:literal, $meaning:literal;
    )+) => {
        $($(#[doc = $doc])+ pub(crate) const $name: u8 = $code;)+

        /// Every exit code: what it is called in a list of all, and what it means in a sentence.
        pub(crate) const ALL: &[(u8, &str, &str)] = &[$(($code, $short, $meaning)),+];
    };
}

codes! {
    /// All went well. A closed pipe is no failure: `holdup ... | head` had what it wanted.
    OK = 0: "ok", "the answer was given, whatever it is";
    /// `--fail-on` matched, or the gate failed.
    FAILED = 1: "--fail-on matched, or the gate failed",
        "the verdict is one of those named with `diagnose --fail-on CLASS`, or `gate` found a \
         regression (`history --fail`: one that was not taken back; `gate --self-test`: a gate \
         that cannot fail)";
    /// Wrong usage, or the output cannot be written.
    USAGE = 2: "usage", "the command line is wrong, or the output cannot be written";
    /// The input cannot be read, or the host does not let itself be recorded.
    INPUT = 3: "the input cannot be read, or the host does not allow the recording",
        "the input cannot be read, or the host does not allow the recording; the message says \
         what is wrong, and where or what to do";
    /// The trace cannot show what was asked.
    INCONCLUSIVE = 4: "not enough evidence to decide", "not enough evidence to decide";
    /// An error that no code stands for: nobody thought of it.
    DEFECT = 5: "a defect of holdup", "a defect of holdup, worth a report; the message says what \
         went wrong";
}

/// All in one sentence, for the help.
pub(crate) fn list() -> String {
    let codes: Vec<String> = ALL.iter().map(|(code, short, _)| format!("{code} {short}")).collect();
    format!(
        "Exit codes: {}.\nThat of record and run is the command's, if the command failed.",
        codes.join(", ")
    )
}

/// Why there is no answer, where holdup itself found it out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line is wrong, or the output cannot be written.
    #[error("{0}")]
    Usage(String),
    /// A file that is read by holdup itself is wrong, such as a baseline.
    #[error("{0}")]
    Input(String),
    /// The host does not allow what was asked for.
    #[error("{0}")]
    Denied(Obstacle),
    /// The trace does not hold what it takes to answer.
    #[error("{0}")]
    Unanswerable(String),
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => USAGE,
            Failure::Input(_) | Failure::Denied(_) => INPUT,
            Failure::Unanswerable(_) => INCONCLUSIVE,
        }
    }
}

/// A usage error with this message.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    Failure::Usage(message.into()).into()
}

/// An error about an input file.
pub(crate) fn bad_input(path: &Path, why: impl std::fmt::Display) -> anyhow::Error {
    Failure::Input(format!("{}: {why}", path.display())).into()
}

/// A file that cannot be written.
pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> anyhow::Error {
    usage(format!("{}: cannot be written: {error}", path.display()))
}

/// The exit code an error stands for.
pub(crate) fn code(error: &anyhow::Error) -> u8 {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return failure.code();
    }
    if let Some(error) = error.downcast_ref::<ExportError>() {
        return match error {
            ExportError::Trace(_) => INPUT,
            ExportError::Write { .. } => USAGE,
        };
    }
    if let Some(error) = error.downcast_ref::<FleetError>() {
        return match error {
            FleetError::Output { .. } | FleetError::Busy(_) => USAGE,
        };
    }
    match error.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
        Some(std::io::ErrorKind::BrokenPipe) => OK,
        Some(_) => USAGE,
        None if error.is::<ReadError>() => INPUT,
        None if error.is::<UnknownKey>() => USAGE,
        None => DEFECT,
    }
}

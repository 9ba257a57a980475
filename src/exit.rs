//! Exit codes: part of the outward contract.

use holdup_host::Obstacle;
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
}

/// All in one sentence, for the help.
pub(crate) fn list() -> String {
    let codes: Vec<String> = ALL.iter().map(|(code, short, _)| format!("{code} {short}")).collect();
    format!(
        "Exit codes: {}.\nThat of record and run is the command's, if the command failed.",
        codes.join(", ")
    )
}

/// An error of the user's, not of the trace's.
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// A usage error with this message.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}

/// An input that is read by holdup itself and is wrong, such as a baseline file.
#[derive(Debug)]
pub(crate) struct InputError(pub(crate) String);

impl std::fmt::Display for InputError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InputError {}

/// The host does not allow what was asked for.
#[derive(Debug)]
pub(crate) struct Denied(pub(crate) Obstacle);

impl std::fmt::Display for Denied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Denied {}

/// The trace does not hold what it takes to answer.
#[derive(Debug)]
pub(crate) struct Unanswerable(pub(crate) String);

impl std::fmt::Display for Unanswerable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unanswerable {}

/// An error about an input file.
pub(crate) fn bad_input(path: &Path, why: impl std::fmt::Display) -> anyhow::Error {
    InputError(format!("{}: {why}", path.display())).into()
}

/// A file that cannot be written.
pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> anyhow::Error {
    usage(format!("{}: cannot be written: {error}", path.display()))
}

/// The exit code an error stands for.
pub(crate) fn code(error: &anyhow::Error) -> u8 {
    let broken_pipe = |e: &std::io::Error| e.kind() == std::io::ErrorKind::BrokenPipe;
    if let Some(holdup_export::ExportError::Trace(_)) = error.downcast_ref() {
        return INPUT;
    }
    if error.downcast_ref::<std::io::Error>().is_some_and(broken_pipe) {
        OK
    } else if error.is::<holdup_trace::ReadError>()
        || error.is::<InputError>()
        || error.is::<Denied>()
    {
        INPUT
    } else if error.is::<Unanswerable>() {
        INCONCLUSIVE
    } else {
        USAGE
    }
}

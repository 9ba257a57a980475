//! Exit codes: part of the outward contract.

/// All went well. A closed pipe is no failure: `holdup ... | head` had what it wanted.
pub(crate) const OK: u8 = 0;
/// `--fail-on` matched.
pub(crate) const FAILED: u8 = 1;
/// Wrong usage, or the output cannot be written.
pub(crate) const USAGE: u8 = 2;
/// The input cannot be read.
pub(crate) const INPUT: u8 = 3;

/// The trace cannot show what was asked.
pub(crate) const INCONCLUSIVE: u8 = 4;

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

/// The exit code an error stands for.
pub(crate) fn code(error: &anyhow::Error) -> u8 {
    let broken_pipe = |e: &std::io::Error| e.kind() == std::io::ErrorKind::BrokenPipe;
    if error.downcast_ref::<std::io::Error>().is_some_and(broken_pipe) {
        OK
    } else if error.is::<holdup_trace::ReadError>() {
        INPUT
    } else {
        USAGE
    }
}

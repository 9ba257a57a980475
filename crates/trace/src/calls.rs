//! Which system calls a file can speak of.

/// The system calls that were recorded. The others are untraced: the file holds nothing of them, so
/// a thread outside of the recorded ones is in application code or in an untraced call.
///
/// Decided by [`crate::Capabilities::of`], once for the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Calls {
    /// None.
    #[default]
    None,
    /// These, by tracepoints of their own, `syscalls:sys_enter_NAME`: sorted names, spelled after
    /// the kernel's entry points (`newfstat`, `futex_time32`).
    Chosen(Box<[Box<str>]>),
    /// All.
    All,
}

impl Calls {
    /// Every call is recorded: what a thread does outside of calls is application code, and a
    /// count of calls is a count of all.
    #[inline]
    pub fn are_all(&self) -> bool {
        matches!(self, Calls::All)
    }

    /// At least one is.
    #[inline]
    pub fn are_any(&self) -> bool {
        !matches!(self, Calls::None)
    }

    /// The names of a choice; `None` if the file has all calls or none.
    pub fn chosen(&self) -> Option<&[Box<str>]> {
        match self {
            Calls::Chosen(names) => Some(names),
            Calls::None | Calls::All => None,
        }
    }

    /// Whether the call is recorded that the kernel enters at `entry`.
    pub fn have(&self, entry: &str) -> bool {
        match self {
            Calls::None => false,
            Calls::Chosen(names) => names.binary_search_by(|name| (**name).cmp(entry)).is_ok(),
            Calls::All => true,
        }
    }

    /// A choice in a few words: how many, and the first of their names. `None` if it is none.
    ///
    /// ```
    /// let calls = holdup_trace::Calls::Chosen(["brk".into(), "futex".into()].into());
    /// assert_eq!(calls.in_words(5).as_deref(), Some("2 chosen (brk, futex)"));
    /// assert_eq!(calls.in_words(1).as_deref(), Some("2 chosen (brk, ...)"));
    /// ```
    pub fn in_words(&self, most: usize) -> Option<String> {
        let names = self.chosen()?;
        let mut listed: Vec<&str> = names.iter().take(most).map(|name| &**name).collect();
        if names.len() > most {
            listed.push("...");
        }
        Some(format!("{} chosen ({})", names.len(), listed.join(", ")))
    }
}

/// What a capability of a file is kept as.
pub(crate) trait Proof {
    /// From whether events that prove it were recorded.
    fn proven(there: bool) -> Self;
    /// Whether the file can prove something of it.
    fn is_there(&self) -> bool;
}

impl Proof for bool {
    fn proven(there: bool) -> bool {
        there
    }

    fn is_there(&self) -> bool {
        *self
    }
}

impl Proof for Calls {
    fn proven(there: bool) -> Calls {
        if there { Calls::All } else { Calls::None }
    }

    fn is_there(&self) -> bool {
        self.are_any()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_has_the_calls_it_names() {
        let chosen = Calls::Chosen(["futex".into(), "write".into()].into());
        assert!(chosen.have("futex") && chosen.have("write") && !chosen.have("read"));
        assert!(Calls::All.have("read") && !Calls::None.have("futex"));
        assert!(chosen.are_any() && !chosen.are_all() && Calls::All.are_any());
        assert_eq!((Calls::All.in_words(3), Calls::None.in_words(3)), (None, None));
    }
}

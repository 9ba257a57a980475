//! Which system calls a file contains.

/// The system calls that were recorded. The file has no events of the others, the untraced calls,
/// so a thread outside the recorded calls is in application code or in an untraced call.
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
    /// Whether every call is recorded: then a thread outside calls is in application code, and
    /// counts of calls are complete.
    #[inline]
    pub fn are_all(&self) -> bool {
        matches!(self, Calls::All)
    }

    /// Whether at least one call is recorded.
    #[inline]
    pub fn are_any(&self) -> bool {
        !matches!(self, Calls::None)
    }

    /// The names of the chosen calls; `None` if the file has all calls or none.
    pub fn chosen(&self) -> Option<&[Box<str>]> {
        match self {
            Calls::Chosen(names) => Some(names),
            Calls::None | Calls::All => None,
        }
    }

    /// Whether the call with the kernel entry point `entry` is recorded.
    pub fn have(&self, entry: &str) -> bool {
        match self {
            Calls::None => false,
            Calls::Chosen(names) => names.binary_search_by(|name| (**name).cmp(entry)).is_ok(),
            Calls::All => true,
        }
    }

    /// The choice in a few words: the number of calls, and the first names. `None` if it is no
    /// choice.
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

/// The type of a capability's value.
pub(crate) trait Proof {
    /// The value, by whether events that prove the capability were recorded.
    fn proven(there: bool) -> Self;
    /// Whether the file can prove anything with this capability.
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

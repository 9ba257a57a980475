//! The layout of a fleet's tables: by when and where a trace was recorded.

use crate::record::{Head, Verdict};

/// Which columns are folders, so that readers can skip rows without reading them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partition {
    /// `date=…/host=…`.
    #[default]
    DateHost,
    /// `date=…`: for fleets in which a host has few traces a day. The host is a column.
    Date,
    /// No folders: date and host are columns.
    Nothing,
}

/// How the tables are written.
#[derive(Clone, Copy, Debug)]
pub struct Dataset {
    /// Which columns are folders.
    pub partition: Partition,
    /// Traces in a file, at most.
    pub per_file: usize,
}

/// The longest host name that Linux allows: `HOST_NAME_MAX`.
const HOST_NAME: usize = 64;

pub(crate) fn host_of(name: Option<&str>) -> String {
    match name {
        // Linux's default name.
        None | Some("" | "(none)") => "unknown".to_owned(),
        Some(name) => {
            let mut end = name.len().min(HOST_NAME);
            while !name.is_char_boundary(end) {
                end -= 1;
            }
            name[..end].to_owned()
        }
    }
}

/// When a trace was recorded, the source of that date, and the host.
pub(crate) struct When {
    pub(crate) ns: i64,
    pub(crate) from: &'static str,
    pub(crate) host: String,
}

impl When {
    pub(crate) fn of(head: &Head) -> Option<When> {
        let Verdict::Judged { recorded_ns, host, .. } = &head.result else { return None };
        let recorded = recorded_ns.and_then(|ns| i64::try_from(ns).ok());
        let (ns, from) = recorded.map_or((head.mtime_ns, "mtime"), |ns| (ns, "trace"));
        Some(When { ns, from, host: host_of(host.as_deref()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_name_is_unknown_and_long_names_are_cut() {
        for name in [None, Some(""), Some("(none)")] {
            assert_eq!(host_of(name), "unknown");
        }
        assert_eq!(host_of(Some(&"ä".repeat(100))).len(), 64);
    }
}

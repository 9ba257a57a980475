//! The head of a report: facts about the trace, as in JSON.

use holdup_passes::Analysis;
use holdup_trace::{Glance, Nanos, TraceInfo};
use serde::Serialize;
use std::path::Path;

/// The format in a head for figures instead of a trace.
pub const FIGURES: &str = "figures";

/// The trace, as every JSON answer shows it.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct TraceHead {
    /// Path of the file, or `-` for standard input.
    pub path: String,
    /// Format of the trace file.
    pub format: String,
    /// Number of CPUs in the ledger.
    pub cpus: u32,
    /// Start of the analysed part, by the trace's clock.
    pub start_ns: u64,
    /// End of the analysed part, by the trace's clock.
    pub end_ns: u64,
    /// Length of the analysed part: `end_ns` - `start_ns`.
    pub wall_ns: u64,
    /// Number of events that the recorder's own tool would print.
    pub events: u64,
    /// Number of events that the recorder lost.
    pub lost_events: u64,
    /// Name of the clock, if the file contains it.
    pub clock: Option<String>,
    /// Of a part that was judged alone: wall time of the trace.
    #[serde(skip)]
    pub part_of: Option<u64>,
    /// What the figures above rest on.
    #[serde(skip)]
    pub known: Known,
}

/// The basis of the figures in a [`TraceHead`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Known {
    /// The whole trace was read.
    #[default]
    Counted,
    /// The file has no times, CPUs and events: it is a dump of counters.
    Nothing,
    /// Only tables and samples of the trace were read: nothing was counted.
    Glanced {
        /// Bytes of the file.
        size: u64,
        /// First and last time, if known.
        span: Option<(Nanos, Nanos)>,
    },
}

impl TraceHead {
    /// The head from the reader and the passes.
    pub fn new(info: &TraceInfo, analysis: &Analysis) -> TraceHead {
        TraceHead {
            path: info.path.to_string_lossy().into_owned(),
            format: info.format.clone(),
            cpus: analysis.cpus,
            start_ns: analysis.start,
            end_ns: analysis.end,
            wall_ns: analysis.end.saturating_sub(analysis.start),
            events: analysis.events,
            lost_events: analysis.lost_events,
            clock: (!info.clock.name.is_empty()).then(|| info.clock.name.clone()),
            part_of: None,
            known: Known::Counted,
        }
    }

    /// The head for a part that was judged alone of a trace of this length, if it is a part.
    #[must_use]
    pub fn of_part(self, wall_ns: Option<u64>) -> TraceHead {
        TraceHead { part_of: wall_ns, ..self }
    }

    /// The head from a quick look at tables and samples.
    pub fn glanced(glance: &Glance) -> TraceHead {
        let info = &glance.info;
        TraceHead {
            clock: (!info.clock.name.is_empty()).then(|| info.clock.name.clone()),
            known: Known::Glanced { size: glance.size, span: info.span },
            ..TraceHead::dump(&info.path, info.format.clone())
        }
    }

    /// The head of a dump of counters, which has no times, CPUs and events.
    pub fn dump(path: &Path, format: String) -> TraceHead {
        let path = path.to_string_lossy().into_owned();
        TraceHead {
            path,
            format,
            cpus: 0,
            start_ns: 0,
            end_ns: 0,
            wall_ns: 0,
            events: 0,
            lost_events: 0,
            clock: None,
            part_of: None,
            known: Known::Nothing,
        }
    }

    /// The head of a file of figures, of a system with `cpus` CPUs measured for `wall_ns`.
    pub fn of_figures(path: String, cpus: u32, wall_ns: u64) -> TraceHead {
        TraceHead {
            path,
            format: FIGURES.to_owned(),
            cpus,
            start_ns: 0,
            end_ns: wall_ns,
            wall_ns,
            events: 0,
            lost_events: 0,
            clock: None,
            part_of: None,
            known: Known::Counted,
        }
    }

    /// CPUs x wall time.
    pub fn capacity_ns(&self) -> u64 {
        self.wall_ns.saturating_mul(self.cpus.into())
    }
}

/// The input: a trace (read completely or in samples), or a dump of counters, which has no times,
/// CPUs or events.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub(crate) enum Head<'a> {
    Trace(&'a TraceHead),
    /// A trace of which only tables and samples were read (`info` of a large file, without
    /// `--full`): figures that need counting are null.
    Glance {
        /// Path of the file.
        path: &'a str,
        /// Format of the file.
        format: &'a str,
        /// Always null: CPUs are not counted.
        cpus: Option<u32>,
        /// Earliest time stamp; null if the file does not state it.
        start_ns: Option<u64>,
        /// Latest time stamp; null if the file does not state it.
        end_ns: Option<u64>,
        /// Time from the earliest to the latest time stamp.
        wall_ns: Option<u64>,
        /// Always null: events are not counted.
        events: Option<u64>,
        /// Always null: lost events are not counted.
        lost_events: Option<u64>,
        /// Name of the clock, if the file contains it.
        clock: &'a Option<String>,
    },
    Dump {
        /// Path of the file, or `-` for standard input.
        path: &'a str,
        /// Format of the file.
        format: &'a str,
    },
}

impl<'a> Head<'a> {
    /// The known facts about `trace`.
    pub(crate) fn of(trace: &'a TraceHead) -> Head<'a> {
        let (path, format) = (trace.path.as_str(), trace.format.as_str());
        match trace.known {
            Known::Counted => Head::Trace(trace),
            Known::Nothing => Head::Dump { path, format },
            Known::Glanced { span, .. } => Head::Glance {
                path,
                format,
                cpus: None,
                start_ns: span.map(|s| s.0),
                end_ns: span.map(|s| s.1),
                wall_ns: span.map(|s| s.1.saturating_sub(s.0)),
                events: None,
                lost_events: None,
                clock: &trace.clock,
            },
        }
    }
}

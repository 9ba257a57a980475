//! One report: what every renderer gets.

use crate::{Info, Table, WhatifBody};
use holdup_attribution::{Graph, Ledger};
use holdup_diagnose::guide::Walk;
use holdup_diagnose::predict::Curve;
use holdup_diagnose::{Diagnosis, PhaseRow};
use holdup_passes::{Analysis, Bin};
use holdup_trace::{Glance, Nanos, QualityEntry, TraceInfo};
use serde::Serialize;
use std::path::Path;

/// Id of the JSON output's schema.
pub const SCHEMA: &str = "holdup/1";

/// The format of a head that stands for figures instead of a trace.
pub const FIGURES: &str = "figures";

/// The trace as the envelope shows it.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct TraceHead {
    /// The file, `-` for standard input.
    pub path: String,
    /// Its format.
    pub format: String,
    /// CPUs in the ledger.
    pub cpus: u32,
    /// First time analysed.
    pub start_ns: u64,
    /// Last time analysed.
    pub end_ns: u64,
    /// The time between.
    pub wall_ns: u64,
    /// Events as the recorder's own tool would print them.
    pub events: u64,
    /// Events the recorder lost.
    pub lost_events: u64,
    /// Name of the clock, if the file says.
    pub clock: Option<String>,
    /// Of a part that was judged alone: wall time of the trace.
    #[serde(skip)]
    pub part_of: Option<u64>,
    /// What the figures above rest on.
    #[serde(skip)]
    pub known: Known,
}

/// What the figures of a [`TraceHead`] rest on.
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
        /// First and last time, if that is known all the same.
        span: Option<(Nanos, Nanos)>,
    },
}

impl TraceHead {
    /// What the reader and the passes know.
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

    /// The same of a part of a longer time that was judged alone.
    #[must_use]
    pub fn of_part(self, wall_ns: u64) -> TraceHead {
        TraceHead { part_of: Some(wall_ns), ..self }
    }

    /// What a look at tables and samples tells.
    pub fn glanced(glance: &Glance) -> TraceHead {
        let info = &glance.info;
        TraceHead {
            clock: (!info.clock.name.is_empty()).then(|| info.clock.name.clone()),
            known: Known::Glanced { size: glance.size, span: info.span },
            ..TraceHead::dump(&info.path, info.format.clone())
        }
    }

    /// No trace but a dump of counters: it has no times, CPUs and events.
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

    /// In place of a trace: a file of figures, of a system with `cpus` CPUs measured for `wall_ns`.
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

/// What a command found out.
#[derive(Clone, Debug)]
pub enum Body {
    /// One table.
    Table(Table),
    /// One table whose notes say what its rows rest on: every form but CSV has them.
    Noted(Table),
    /// The capacity ledger.
    Ledger(Box<Ledger>),
    /// The verdict.
    Diagnosis(Box<Diagnosis>),
    /// The verdict, reached step by step.
    Guide(Box<Walk>),
    /// The critical path of a thread.
    Path(Box<PathBody>),
    /// What locks cost on other numbers of CPUs.
    Predict(Box<PredictBody>),
    /// What changes would make of the work.
    Whatif(Box<WhatifBody>),
    /// Who waits for whom.
    Graph(Box<GraphBody>),
    /// What the file is.
    Info(Box<Info>),
    /// Every table, in the order to show them.
    Summary(Vec<Section>),
}

/// Whose path, and its parts.
#[derive(Clone, Debug)]
pub struct PathBody {
    /// The thread.
    pub head: PathHead,
    /// The parts.
    pub table: Table,
}

/// Whose path it is.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct PathHead {
    /// Thread.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// Length: its life within the trace.
    pub total_ns: u64,
}

/// A prediction: its rows, its picture, and in the notes of the table what to know beside.
#[derive(Clone, Debug)]
pub struct PredictBody {
    /// The rows.
    pub table: Table,
    /// The picture.
    pub curve: Option<Curve>,
}

/// The blocking graph and how to write it as text.
#[derive(Clone, Debug)]
pub struct GraphBody {
    /// The graph.
    pub graph: Graph,
    /// In the language of Graphviz instead of words.
    pub dot: bool,
    /// Edges shown in words.
    pub entries: Option<usize>,
}

/// One part of a summary.
#[derive(Clone, Debug)]
pub enum Section {
    /// A table.
    Table(Table),
    /// The capacity ledger.
    Ledger(Box<Ledger>),
    /// The phases, of which there are several.
    Phases(Vec<PhaseRow>),
    /// How many CPUs were busy over time: a picture, which only people get. Its figures are those
    /// of `phases`, and of the table `runs` that `holdup export` writes.
    Busy(BusyCourse),
}

/// How many CPUs were busy, in equal parts of the time.
#[derive(Clone, Debug)]
pub struct BusyCourse {
    /// CPUs of the machine.
    pub cpus: usize,
    /// Mean number of busy CPUs in each part; `None` where events are missing for all of it.
    pub busy: Vec<Option<f64>>,
    /// Length of a part, ns. The last one may be shorter.
    pub part_ns: u64,
}

impl BusyCourse {
    /// From the first event to the last.
    pub fn of(analysis: &Analysis) -> BusyCourse {
        let bins = analysis.bins();
        // What fits into a line beside the words.
        let several = bins.len().div_ceil(BusyCourse::PARTS).max(1);
        let part = |bins: &[Bin]| {
            let sum = |of: fn(&Bin) -> u64| bins.iter().map(of).sum::<u64>() as f64;
            let busy = sum(|b| b.user_ns + b.kernel_ns + b.kthread_ns + b.irq_ns + b.softirq_ns);
            let known = busy + sum(|b| b.idle_ns);
            (known > 0.0).then(|| busy / sum(|b| b.end - b.start))
        };
        let part_ns = bins
            .chunks(several)
            .next()
            .map_or(0, |first| first.iter().map(|b| b.end - b.start).sum());
        BusyCourse {
            cpus: analysis.cpus as usize,
            busy: bins.chunks(several).map(part).collect(),
            part_ns,
        }
    }

    /// Parts at most.
    const PARTS: usize = 64;
}

/// A command's answer about one trace.
#[derive(Clone, Debug)]
pub struct Report {
    /// The verb.
    pub command: &'static str,
    /// The trace.
    pub trace: TraceHead,
    /// What went wrong, worst first.
    pub quality: Vec<QualityEntry>,
    /// The answer.
    pub body: Body,
}

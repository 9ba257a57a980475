//! One report: what every renderer gets.

use crate::trace_head::TraceHead;
use crate::{Info, Table, WhatifBody};
use holdup_attribution::{Graph, Ledger};
use holdup_diagnose::guide::Walk;
use holdup_diagnose::predict::Curve;
use holdup_diagnose::{Diagnosis, PhaseRow};
use holdup_passes::{Analysis, Bin};
use holdup_trace::QualityEntry;
use serde::Serialize;

/// Id of the JSON output's schema.
pub const SCHEMA: &str = "holdup/1";

/// The result of a command.
#[derive(Clone, Debug)]
pub enum Body {
    /// One table.
    Table(Table),
    /// One table with notes on the basis of its rows: every form except CSV shows them.
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
    /// The predicted effect of changes.
    Whatif(Box<WhatifBody>),
    /// The blocking graph.
    Graph(Box<GraphBody>),
    /// What the file is.
    Info(Box<Info>),
    /// Every table, in the order to show them.
    Summary(Vec<Section>),
}

/// A thread's critical path.
#[derive(Clone, Debug)]
pub struct PathBody {
    /// The thread.
    pub head: PathHead,
    /// The parts.
    pub table: Table,
}

/// The thread to which a path belongs.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct PathHead {
    /// Id of the thread.
    pub tid: u32,
    /// Name of the thread.
    pub comm: String,
    /// Length of the path: the lifetime of the thread within the trace.
    pub total_ns: u64,
}

/// A prediction: its rows and its picture.
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
    /// Write Graphviz instead of text.
    pub dot: bool,
    /// Edges shown in text.
    pub entries: Option<usize>,
}

/// One part of a summary.
#[derive(Clone, Debug)]
pub enum Section {
    /// A table.
    Table(Table),
    /// The capacity ledger.
    Ledger(Box<Ledger>),
    /// The phases, if there are several.
    Phases(Vec<PhaseRow>),
    /// How many CPUs were busy over time: a picture that only text shows. Its figures are those of
    /// `phases`, and of the table `runs` that `holdup export` writes.
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
    /// The course from the first event to the last.
    pub fn of(analysis: &Analysis) -> BusyCourse {
        let bins = analysis.bins();
        // As many parts as fit into a line next to the text.
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

    /// Most parts.
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

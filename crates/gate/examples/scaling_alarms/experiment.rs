//! The comparisons, judged by gates on scaling and on the wall clock.

use super::draw::{Design, Drawn};
use holdup_gate::judge::Sides;
use holdup_gate::metric::{Metric, Table};
use holdup_gate::policy::Policy;
use holdup_gate::rounds::{self, rounds};
use holdup_gate::stats::generator::Generator;
use holdup_gate::stats::spread::median;
use holdup_gate::verdict::{Outcome, decide};
use holdup_gate::{Baseline, Figure, Run, Work};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What `fixtures/gate/record_scaling.sh` records.
pub(crate) const WORKLOADS: [&str; 2] = ["scaling", "beside"];

/// How the second side differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Not at all.
    Unchanged,
    /// The machine takes a tenth longer for everything.
    SlowerMachine,
    /// A sixth faster on one CPU, unchanged on two.
    FasterAlone,
    /// It scales worse by this many per cent, and is as fast on one CPU.
    Worse(u32),
}

/// A question to a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) after: After,
    pub(crate) design: Design,
}

const fn ask(after: After, design: Design) -> Question {
    Question { after, design }
}

/// Every question asked of every workload.
pub(crate) const QUESTIONS: &[Question] = &[
    ask(After::Unchanged, Design::Any(5)),
    ask(After::Unchanged, Design::Pairs(10)),
    ask(After::SlowerMachine, Design::Any(5)),
    ask(After::FasterAlone, Design::Pairs(10)),
    ask(After::Worse(25), Design::Any(5)),
    ask(After::Worse(25), Design::Pairs(10)),
    ask(After::Worse(10), Design::Any(5)),
    ask(After::Worse(10), Design::Pairs(10)),
];

impl Question {
    /// Whether nothing that a gate on scaling watches became worse.
    pub(crate) fn every_alarm_is_false(self) -> bool {
        !matches!(self.after, After::Worse(_))
    }

    fn words(self) -> String {
        let after = match self.after {
            After::Unchanged => "unchanged".to_owned(),
            After::SlowerMachine => "unchanged, on a machine 10 % slower".to_owned(),
            After::FasterAlone => "faster on one CPU alone".to_owned(),
            After::Worse(by) => format!("{by} % worse on two CPUs"),
        };
        let n = self.design.runs();
        let rounds = if self.design.paired() { "interleaved pairs of" } else { "a side, of" };
        format!("{after}: {n} {rounds} rounds")
    }
}

/// How often a gate gave each answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) regressed: usize,
    pub(crate) pass: usize,
    pub(crate) inconclusive: usize,
}

/// The answers to a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) scaling: Tally,
    pub(crate) clock: Tally,
    pub(crate) above_10: usize,
    pub(crate) above_5: usize,
}

/// The rounds of a workload by how the second side differs, in per cent of the time on two CPUs.
pub(crate) struct Workload {
    sets: Vec<(u32, Vec<Run>)>,
    scaling: Policy,
    clock: Policy,
}

const WORK: &str = "syscall:write";

impl Workload {
    pub(crate) fn load(name: &str) -> Result<Workload, String> {
        let mut sets = Vec::new();
        let work = Work::parse(WORK)?;
        let mut numbers = Vec::new();
        for slower in [100, 110, 125] {
            let path = folder().join(format!("runs/{name}-{slower}.json"));
            let text = std::fs::read_to_string(&path);
            let text = text.map_err(|e| format!("{}: {e}", path.display()))?;
            let baseline = Baseline::parse(&text).map_err(|e| e.to_string())?;
            let numbered: Vec<(u32, Run)> =
                baseline.runs.into_iter().map(|run| (run.setting.cpus, run)).collect();
            numbers = rounds::numbers(&numbered, &numbered)?;
            sets.push((slower, rounds(numbered, &work)?));
        }
        let clock = Metric::parse("scaling.2.time").map_err(|e| e.to_string())?;
        // Metrics that only inform decide nothing, and take time.
        let alone = |policy: Policy| Policy { inform: Vec::new(), ..policy };
        let scaling = alone(rounds::policy(&numbers));
        Ok(Workload { sets, scaling, clock: alone(Policy::of(clock)) })
    }

    fn rounds(&self, slower: u32) -> &[Run] {
        self.sets.iter().find(|(s, _)| *s == slower).map_or(&[], |(_, runs)| runs)
    }

    /// Ask this many times.
    pub(crate) fn ask(&self, question: Question, times: usize) -> Result<Answer, String> {
        let mut g = Generator::new(7);
        let slower = if let After::Worse(by) = question.after { 100 + by } else { 100 };
        let (a, b) = (self.rounds(100), self.rounds(slower));
        let of = a.len().min(b.len());
        let drawn = match slower {
            100 => question.design.same(of, times, &mut g),
            _ => question.design.other(of, times, &mut g),
        };
        let mut answer = Answer::default();
        for Drawn { a: x, b: y } in drawn {
            let before: Vec<Run> = x.iter().map(|&i| a[i].clone()).collect();
            let after = y.iter().map(|&i| changed(&b[i], question.after)).collect::<Vec<_>>();
            let paired = question.design.paired();
            let says = |policy: &Policy, tally: &mut Tally| -> Result<(), String> {
                let sides = Sides { a: &before, b: &after, paired };
                let work = Work::parse(WORK)?;
                let verdict = decide(sides, policy, &work, &[], 0).map_err(|e| e.to_string())?;
                match verdict.outcome {
                    Outcome::Regressed => tally.regressed += 1,
                    Outcome::Pass => tally.pass += 1,
                    Outcome::Inconclusive => tally.inconclusive += 1,
                }
                Ok(())
            };
            says(&self.scaling, &mut answer.scaling)?;
            says(&self.clock, &mut answer.clock)?;
            let typical = |runs: &[Run]| {
                let times: Vec<f64> = runs.iter().filter_map(|r| figure(r, 2, 1)).collect();
                median(&times).unwrap_or(0.0)
            };
            let grew = typical(&after) / typical(&before);
            answer.above_10 += usize::from(grew > 1.10);
            answer.above_5 += usize::from(grew > 1.05);
        }
        Ok(answer)
    }
}

fn name(cpus: u32, measure: usize) -> Figure {
    let measure = Table::Scaling.measures()[measure];
    Figure { table: Table::Scaling, key: cpus.to_string(), measure }
}

fn figure(run: &Run, cpus: u32, measure: usize) -> Option<f64> {
    run.figures.get(&name(cpus, measure)).flatten().map(|n| n as f64)
}

/// A round with the change applied.
fn changed(round: &Run, after: After) -> Run {
    let mut round = round.clone();
    let mut times = |cpus: u32, measure: usize, factor: f64| {
        if let Some(value) = figure(&round, cpus, measure) {
            round.figures.set(name(cpus, measure), Some((value * factor).round() as u64));
        }
    };
    match after {
        After::Unchanged | After::Worse(_) => {}
        After::SlowerMachine => [1, 2].iter().for_each(|&cpus| times(cpus, 1, 1.1)),
        After::FasterAlone => {
            times(1, 1, 1.0 / 1.2);
            times(2, 0, 1.0 / 1.2);
        }
    }
    round
}

/// The first two lines of the table.
pub(crate) fn heading() -> String {
    "| workload | comparison | compared | `--scaling` regressed | pass | inconclusive | wall clock \
     regressed | pass | inconclusive | median +10 % | median +5 % |\n\
     |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned()
}

/// A line of the table.
pub(crate) fn row(workload: &str, question: &Question, answer: &Answer) -> String {
    let Tally { regressed, pass, inconclusive } = answer.scaling;
    let all = regressed + pass + inconclusive;
    let clock = answer.clock;
    let cells = [
        regressed,
        pass,
        inconclusive,
        clock.regressed,
        clock.pass,
        clock.inconclusive,
        answer.above_10,
        answer.above_5,
    ];
    let mut row = format!("| {workload} | {} | {all} |", question.words());
    for n in cells {
        let _ = write!(row, " {:.1} % |", n as f64 * 100.0 / all.max(1) as f64);
    }
    row + "\n"
}

/// Where the runs are.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/gate")
}

/// The place of the table.
pub(crate) const DOCUMENT: Document = Document {
    begin: "<!-- begin: cargo run -p holdup-gate --example scaling_alarms -->\n",
    end: "<!-- end of scaling -->\n",
};

/// A table in `docs/ci.md`.
pub(crate) struct Document {
    begin: &'static str,
    end: &'static str,
}

impl Document {
    fn path() -> PathBuf {
        folder().join("../../docs/ci.md")
    }

    /// The text before the table, the table, and the text after it.
    pub(crate) fn parts(&self) -> Result<[String; 3], String> {
        let path = Document::path();
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|e| format!("{}: {e}", path.display()))?;
        let missing = |line: &str| format!("no line {line}");
        let (before, rest) = text.split_once(self.begin).ok_or_else(|| missing(self.begin))?;
        let (table, after) = rest.split_once(self.end).ok_or_else(|| missing(self.end))?;
        Ok([before, table, after].map(str::to_owned))
    }

    /// Put the table there.
    pub(crate) fn bless(&self, table: &str) -> Result<(), String> {
        let [before, _, after] = self.parts()?;
        let text = format!("{before}{}{table}{}{after}", self.begin, self.end);
        std::fs::write(Document::path(), text).map_err(|e| e.to_string())
    }
}

//! The comparisons of the experiment, judged by the gate and by thresholds.

use super::draw::{Design, Drawn};
use holdup_gate::judge::{Compared, Sides};
use holdup_gate::metric::Metric;
use holdup_gate::policy::Policy;
use holdup_gate::sample;
use holdup_gate::stats::generator::Generator;
use holdup_gate::stats::spread::median;
use holdup_gate::verdict::{Outcome, Verdict, decide};
use holdup_gate::{Baseline, Run, Work};
use std::path::{Path, PathBuf};

/// The workloads that `fixtures/gate/record.sh` records.
pub(crate) const WORKLOADS: &[&str] = &["mutex", "mmap", "busy", "crowd"];

/// Comparisons per question, if not all possible ones are used.
pub(crate) const TIMES: usize = 1000;

/// The number of comparisons that the test repeats, because it has less time.
pub(crate) const FIRST: usize = 12;

/// A question to a gate, and what it should answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// Length of the critical section on the second side, in per cent of the first side's.
    pub(crate) length: u32,
    /// Which runs are compared.
    pub(crate) design: Design,
}

/// Every question asked of every workload.
pub(crate) const QUESTIONS: &[Question] = &[
    Question { length: 100, design: Design::Any(5) },
    Question { length: 100, design: Design::Blocks(5) },
    Question { length: 100, design: Design::Pairs(10) },
    Question { length: 125, design: Design::Any(5) },
    Question { length: 125, design: Design::Pairs(10) },
    Question { length: 110, design: Design::Any(5) },
    Question { length: 110, design: Design::Pairs(10) },
];

impl Question {
    /// The number of comparisons if others have `times`: false alarms are rare, and take more
    /// comparisons to count.
    pub(crate) fn often(self, times: usize) -> usize {
        if self.length == 100 { 10 * times } else { times }
    }

    /// The question in words.
    pub(crate) fn words(self) -> String {
        let sides = match self.design {
            Design::Any(n) => format!("{n} runs a side, at any time"),
            Design::Blocks(n) => format!("{n} runs in a row, {n} others in a row"),
            Design::Pairs(n) => format!("{n} interleaved pairs"),
        };
        match self.length {
            100 => format!("unchanged: {sides}"),
            length => format!("{} % longer: {sides}", length - 100),
        }
    }

    /// The key of its rows in files.
    pub(crate) fn key(self) -> String {
        let design = match self.design {
            Design::Any(_) => "any",
            Design::Blocks(_) => "blocks",
            Design::Pairs(_) => "pairs",
        };
        format!("{}-{design}-{}", self.length, self.design.runs())
    }
}

/// The runs of one workload and the policy that decides.
pub(crate) struct Workload {
    name: &'static str,
    policy: Policy,
    work: Work,
    /// Runs by the length of the critical section.
    sets: Vec<(u32, Vec<Run>)>,
}

/// Where the runs and policies are.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/gate")
}

/// The file at this path, or why it cannot be read.
fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

impl Workload {
    /// Read the runs `runs/NAME-LENGTH.json` and the policy `NAME.toml` of a folder.
    pub(crate) fn load(folder: &Path, name: &'static str) -> Result<Workload, String> {
        let mut sets = Vec::new();
        for length in [100, 110, 125] {
            let path = folder.join(format!("runs/{name}-{length}.json"));
            let baseline = Baseline::parse(&read(&path)?);
            let baseline = baseline.map_err(|e| format!("{}: {e}", path.display()))?;
            sets.push((length, baseline.runs));
        }
        let path = folder.join(format!("{name}.toml"));
        let policy = Policy::parse(&read(&path)?);
        let policy = policy.map_err(|e| format!("{}: {e}", path.display()))?;
        let work = policy.work.clone().unwrap_or_default();
        Ok(Workload { name, policy, work, sets })
    }

    fn runs(&self, length: u32) -> &[Run] {
        self.sets.iter().find(|(l, _)| *l == length).map_or(&[], |(_, runs)| runs)
    }

    /// The comparisons of a question, as the two sides for a gate.
    pub(crate) fn comparisons(
        &self,
        question: Question,
        times: usize,
    ) -> Vec<(Vec<Run>, Vec<Run>)> {
        // The same draws for every workload; a smaller number is a prefix of a larger one.
        let mut g = Generator::new(u64::from(question.length));
        let (a, b) = (self.runs(100), self.runs(question.length));
        let of = a.len().min(b.len());
        let drawn = match question.length {
            100 => question.design.same(of, times, &mut g),
            _ => question.design.other(of, times, &mut g),
        };
        let pick = |runs: &[Run], which: &[usize]| which.iter().map(|&i| runs[i].clone()).collect();
        drawn.iter().map(|Drawn { a: x, b: y }| (pick(a, x), pick(b, y))).collect()
    }

    /// The verdict of the gate itself.
    pub(crate) fn verdict(&self, a: &[Run], b: &[Run], paired: bool) -> Result<Verdict, String> {
        decide(Sides { a, b, paired }, &self.policy, &self.work, &[], 0).map_err(|e| e.to_string())
    }

    /// The values that decide.
    pub(crate) fn values(&self, a: &[Run], b: &[Run]) -> Result<(Vec<f64>, Vec<f64>), String> {
        let Metric::Number { figure, per } = &self.policy.primary.metric else {
            return Err(format!("{}: a number must decide", self.name));
        };
        let of = |runs: &[Run]| {
            sample::values(runs, figure, *per, &self.work).map_err(|(run, m)| format!("{run}: {m}"))
        };
        Ok((of(a)?, of(b)?))
    }

    /// Ask a question this many times; the first few are also counted separately.
    pub(crate) fn ask(&self, question: Question, times: usize) -> Result<Answer, String> {
        let mut answer = Answer::default();
        let comparisons = self.comparisons(question, times);
        for (i, (a, b)) in comparisons.iter().take(times).enumerate() {
            let verdict = self.verdict(a, b, question.design.paired())?;
            let Compared::Number(n) = &verdict.primary.compared else {
                return Err(format!("{}: {:?}", self.name, verdict.primary.finding));
            };
            let (a, b) = (&n.a, &n.b);
            let grew = |by: f64| median(b) > median(a).map(|m| m * by);
            answer.all.count(verdict.outcome);
            if i < FIRST {
                answer.first.count(verdict.outcome);
            }
            answer.above_10 += usize::from(grew(1.10));
            answer.above_5 += usize::from(grew(1.05));
        }
        Ok(answer)
    }
}

/// How often the gate gave each answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) pass: usize,
    pub(crate) regressed: usize,
    pub(crate) inconclusive: usize,
}

impl Tally {
    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Pass => self.pass += 1,
            Outcome::Regressed => self.regressed += 1,
            Outcome::Inconclusive => self.inconclusive += 1,
        }
    }

    /// Comparisons.
    pub(crate) fn all(&self) -> usize {
        self.pass + self.regressed + self.inconclusive
    }
}

/// The answers to a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// By the gate.
    pub(crate) all: Tally,
    /// By the gate, in the first [`FIRST`] comparisons.
    pub(crate) first: Tally,
    /// The median grew by more than 10 %.
    pub(crate) above_10: usize,
    /// The median grew by more than 5 %.
    pub(crate) above_5: usize,
}

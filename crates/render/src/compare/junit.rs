//! JUnit XML: one test case per metric, as CI servers show them.
//!
//! There is no standard. The output is valid by the schema of Jenkins' xUnit plugin
//! (`junit-10.xsd`), which most readers follow. Only the deciding metric can fail; an undecided one
//! is skipped, because JUnit has no third outcome. No times are stated: a comparison has none.

use super::report::GateReport;
use super::words;
use crate::markup::quoted;
use holdup_gate::judge::{Finding, Judged};
use holdup_gate::verdict::{Outcome, Verdict};
use std::io::{self, Write};

/// Write the verdict as JUnit XML.
///
/// # Errors
/// Errors of `out`.
pub fn write(report: &GateReport, out: &mut dyn Write) -> io::Result<()> {
    let verdict = &report.verdict;
    let mut cases = vec![primary(report)];
    cases.extend(verdict.inform.iter().map(|judged| informing(judged, verdict)));
    let count = |of: fn(&Case) -> bool| cases.iter().filter(|c| of(c)).count();
    let failures = count(|c| matches!(c.end, End::Failure(_)));
    let skipped = count(|c| matches!(c.end, End::Skipped(_)));
    let tests = cases.len();
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        out,
        "<testsuites name=\"holdup gate\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\">"
    )?;
    writeln!(
        out,
        "  <testsuite name=\"holdup gate\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" \
         skipped=\"{skipped}\">"
    )?;
    writeln!(out, "    <properties>")?;
    for (name, value) in properties(report) {
        writeln!(out, "      <property name=\"{name}\" value=\"{}\"/>", quoted(&value))?;
    }
    writeln!(out, "    </properties>")?;
    cases.iter().try_for_each(|case| case.write(out))?;
    writeln!(out, "  </testsuite>\n</testsuites>")
}

fn properties(report: &GateReport) -> Vec<(&'static str, String)> {
    let verdict = &report.verdict;
    let mut all = vec![
        ("outcome", verdict.outcome.word().to_owned()),
        ("runs", words::runs(verdict)),
        ("work", verdict.work.to_string()),
    ];
    all.extend(report.baseline.iter().map(|file| ("baseline", file.clone())));
    all.extend(verdict.problems.iter().map(|p| ("problem", p.words.clone())));
    all
}

struct Case {
    metric: String,
    class: &'static str,
    end: End,
    /// Detailed lines.
    output: Vec<String>,
}

enum End {
    Passed,
    Failure(String),
    Skipped(String),
}

fn primary(report: &GateReport) -> Case {
    let verdict = &report.verdict;
    let headline = words::headline(report);
    let mut output = vec![headline.clone(), words::proof(&verdict.primary, verdict).join("; ")];
    output.extend(
        verdict.problems.iter().map(|p| format!("problem: {}; what to do: {}", p.words, p.remedy)),
    );
    output.extend(verdict.why.iter().map(|r| format!("why: {}", words::reason(r))));
    output.extend(words::set_aside(verdict));
    output.extend(verdict.expired.iter().map(words::expired));
    Case {
        metric: verdict.primary.limit.metric.to_string(),
        class: "holdup.gate.primary",
        end: match verdict.outcome {
            Outcome::Pass => End::Passed,
            Outcome::Regressed => End::Failure(headline),
            Outcome::Inconclusive => End::Skipped(format!("inconclusive: {headline}")),
        },
        output,
    }
}

fn informing(judged: &Judged, verdict: &Verdict) -> Case {
    let metric = judged.limit.metric.to_string();
    let found = format!("{metric} {}", words::judged(judged, &verdict.judgement));
    Case {
        class: "holdup.gate.inform",
        end: match &judged.finding {
            Finding::Unsure(_) => End::Skipped(format!("unsure: {found}")),
            Finding::Same | Finding::Better | Finding::Worse | Finding::BeyondHard => End::Passed,
        },
        output: vec![format!("{} (for information only)", words::finding(&judged.finding)), found],
        metric,
    }
}

impl Case {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let metric = quoted(&self.metric);
        writeln!(out, "    <testcase classname=\"{}\" name=\"{metric}\">", self.class)?;
        match &self.end {
            End::Passed => {}
            End::Failure(words) => {
                writeln!(
                    out,
                    "      <failure type=\"regression\" message=\"{}\"/>",
                    quoted(words)
                )?;
            }
            End::Skipped(words) => {
                writeln!(
                    out,
                    "      <skipped type=\"inconclusive\" message=\"{}\"/>",
                    quoted(words)
                )?;
            }
        }
        let lines: Vec<String> = self.output.iter().map(|line| quoted(line)).collect();
        writeln!(out, "      <system-out>{}</system-out>", lines.join("\n"))?;
        writeln!(out, "    </testcase>")
    }
}

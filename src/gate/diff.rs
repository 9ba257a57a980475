//! `holdup diff`: every table of two recordings compared.

use super::args::{DiffArgs, PerName};
use super::load;
use super::sinks::Answer;
use crate::exit::{self, Result, usage};
use crate::progress;
use holdup_gate::Work;
use holdup_gate::judge::Sides;
use holdup_gate::metric::Per;
use holdup_render::compare::{Comparison, DiffReport, SideHead};

/// Default number of rows in text.
const ENTRIES: usize = 25;

/// Run the verb.
pub(crate) fn run(args: &DiffArgs) -> Result<u8> {
    let answer = Answer::open(&args.output, &[&args.a, &args.b])?;
    progress::start(args.output.quiet);
    let mut a = load::all(std::slice::from_ref(&args.a))?;
    let mut b = load::all(std::slice::from_ref(&args.b))?;
    progress::end();
    if a.redacted || b.redacted {
        a.redact();
        b.redact();
    }
    let work = load::work(&args.compare, a.work.as_deref().or(b.work.as_deref()))?;
    let per = match args.per {
        Some(PerName::S) => Per::Second,
        Some(PerName::Cpu) => Per::Capacity,
        Some(PerName::Work) if work == Work::Unknown => {
            return Err(usage("--per work: also say what a unit of work is, with --work"));
        }
        Some(PerName::Work) | None => work.per(),
    };
    let sides = Sides { a: &a.runs, b: &b.runs, paired: false };
    if let (Per::Work, Some(run)) = (per, sides.runs().find(|r| work.units(r).is_none())) {
        return Err(usage(format!("--work: {} contains no unit of the work {work}", run.name)));
    }
    let head = |runs, path: &std::path::Path| SideHead::of(runs, Some(&path.to_string_lossy()));
    let heads = (head(&a.runs, &args.a), head(&b.runs, &args.b));
    let mut report = DiffReport::of(sides, heads, per, &work);
    report.entries = answer.entries(args.entries.entries, ENTRIES);
    report.differences = load::differences(sides, &load::allowed(&args.compare));
    answer.write(&Comparison::Diff(report))?;
    Ok(exit::OK)
}

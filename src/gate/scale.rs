//! `holdup scale`: the same work on more and more CPUs.

use super::args::ScaleArgs;
use super::load;
use super::sinks::Answer;
use crate::exit::{self, Result, usage};
use crate::progress;
use crate::units::scaled;
use holdup_gate::scale::{Known, Step, scaling};
use holdup_gate::setting::{Aspect, first_difference};
use holdup_render::compare::{Comparison, ScaleReport};
use std::path::{Path, PathBuf};

/// Default number of leaves and system calls in text, for each number of CPUs.
const ENTRIES: usize = 5;

/// Run the verb.
pub(crate) fn run(args: &ScaleArgs) -> Result<u8> {
    let asked = args.steps.iter().map(|s| parse(s)).collect::<Result<Vec<_>>>()?;
    let inputs: Vec<&Path> = asked.iter().filter_map(|(_, v)| v.path()).collect();
    let answer = Answer::open(&args.output, &inputs)?;
    progress::start(args.output.quiet);
    let mut work = None;
    let mut steps = Vec::new();
    for (cpus, value) in asked {
        let known = match value {
            Value::Known(known) => known,
            Value::Path(path) => {
                let read = load::all(std::slice::from_ref(&path))?;
                work = work.or(read.work);
                Known::Runs(read.runs)
            }
        };
        steps.push(Step { cpus, known });
    }
    progress::end();
    let work = load::work(&args.compare, work.as_deref())?;
    alike(&steps, &args.compare)?;
    let setup = args.setup.as_deref().map(time).transpose()?;
    let scaling = scaling(steps, &work, setup).map_err(usage)?;
    let entries = answer.entries(args.entries.entries, ENTRIES);
    answer.write(&Comparison::Scale(ScaleReport { scaling, work, entries }))?;
    Ok(exit::OK)
}

/// `37min`, in seconds.
fn time(text: &str) -> Result<f64> {
    match scaled::<f64, _>(text, &UNITS) {
        Some((n, Unit::Seconds(scale))) if n.is_finite() && n >= 0.0 => Ok(n * scale),
        _ => Err(usage(format!("--setup: '{text}' is not a time; write 90, 90s or 37min"))),
    }
}

/// All recordings must be from one machine: apart from the CPUs, they have the same settings.
fn alike(steps: &[Step], args: &super::args::CompareArgs) -> Result<()> {
    let mut allowed = load::allowed(args);
    allowed.push(Aspect::Cpus);
    match first_difference(steps.iter().flat_map(Step::runs), &allowed).map(|d| d.words) {
        None => Ok(()),
        Some(words) => Err(usage(format!(
            "{words}: all recordings must be from one machine; --allow accepts differences"
        ))),
    }
}

/// The value after `CPUS=`.
enum Value {
    Known(Known),
    Path(PathBuf),
}

impl Value {
    fn path(&self) -> Option<&Path> {
        if let Value::Path(path) = self { Some(path) } else { None }
    }
}

/// The meaning of a step's number.
#[derive(Clone, Copy)]
enum Unit {
    /// A rate per second.
    Rate,
    /// A time in this many seconds.
    Seconds(f64),
}

const UNITS: [(&str, Unit); 7] = [
    ("/s", Unit::Rate),
    ("min", Unit::Seconds(60.0)),
    ("ns", Unit::Seconds(1e-9)),
    ("us", Unit::Seconds(1e-6)),
    ("ms", Unit::Seconds(1e-3)),
    ("s", Unit::Seconds(1.0)),
    ("", Unit::Seconds(1.0)),
];

fn parse(text: &str) -> Result<(u32, Value)> {
    let wrong =
        || usage(format!("'{text}': write CPUS=TIME, CPUS=RATE/s or CPUS=TRACE, such as 4=190s"));
    let (cpus, value) = text.split_once('=').ok_or_else(wrong)?;
    let cpus = cpus.parse().ok().filter(|&n| n > 0).ok_or_else(wrong)?;
    // If a file has that name, the file is meant, even if it is called 12.
    let path = PathBuf::from(value);
    if path.exists() {
        return Ok((cpus, Value::Path(path)));
    }
    let known = match scaled(value, &UNITS).filter(|(n, _): &(f64, _)| n.is_finite() && *n > 0.0) {
        Some((rate, Unit::Rate)) => Known::Throughput(rate),
        Some((n, Unit::Seconds(scale))) => Known::Time(n * scale),
        None => return Ok((cpus, Value::Path(path))),
    };
    Ok((cpus, Value::Known(known)))
}

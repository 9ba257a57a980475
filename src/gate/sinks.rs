//! Where a comparison goes: standard output or a file, files of other forms beside it, and the
//! page of the job that runs it.
//!
//! All are opened before the first trace is read: a wrong path must not cost minutes.

use super::args::GateArgs;
use crate::cli::{ColorName, OutputArgs};
use crate::config;
use crate::exit::usage;
use crate::output::Output;
use anyhow::{Context, Result};
use holdup_render::Format;
use holdup_render::compare::{self, Comparison, GateReport, annotations, junit, sarif};
use std::env;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The answer itself.
pub(super) struct Answer {
    output: Output,
    format: Format,
}

impl Answer {
    /// Open it; never on top of an input.
    pub(super) fn open(args: &OutputArgs, inputs: &[&Path]) -> Result<Answer> {
        let path = args.output.as_deref();
        let input = path.and_then(|p| inputs.iter().find(|i| config::same_file(p, i)));
        let output = Output::open(path, input.copied().unwrap_or(Path::new("")))?;
        let format = config::format(args, &output)?;
        Ok(Answer { output, format })
    }

    /// Rows to show where nobody says: text is read by people.
    pub(super) fn entries(&self, asked: Option<usize>, text: usize) -> Option<usize> {
        match asked {
            Some(0) => None,
            Some(n) => Some(n),
            None => matches!(self.format, Format::Text(_)).then_some(text),
        }
    }

    /// Write it.
    pub(super) fn write(self, comparison: &Comparison) -> Result<()> {
        let name = self.output.name();
        self.output.stream(|out| {
            let mut out = BufWriter::new(out);
            let done =
                compare::write(comparison, &self.format, &mut out).and_then(|()| out.flush());
            match name {
                // A closed pipe is told by its own error.
                None => Ok(done?),
                Some(name) => done.with_context(|| format!("{name}: cannot be written")),
            }
        })
    }
}

/// A form that stands in a file of its own.
type Form = fn(&GateReport, &mut dyn Write) -> io::Result<()>;

/// Every place that a gate's verdict goes to.
pub(super) struct Sinks {
    answer: Answer,
    files: Vec<(PathBuf, File, Form)>,
    /// Print annotations for GitHub.
    annotate: bool,
    /// The summary page of the job, to be added to.
    summary: Option<(PathBuf, File)>,
}

impl Sinks {
    /// Open all of them.
    pub(super) fn open(args: &GateArgs) -> Result<Sinks> {
        let inputs: Vec<&Path> = (args.traces.iter())
            .chain(&args.pair)
            .chain(&args.baseline)
            .chain(&args.policy)
            .map(PathBuf::as_path)
            .collect();
        let asked: [(&Option<PathBuf>, Form); 3] =
            [(&args.junit, junit::write), (&args.sarif, sarif::write), (&args.markdown, markdown)];
        let mut files = Vec::new();
        for (path, form) in asked.into_iter().filter_map(|(p, form)| Some((p.as_ref()?, form))) {
            if inputs.iter().any(|input| config::same_file(path, input)) {
                let path = path.display();
                return Err(usage(format!("{path}: is an input; it would be overwritten")));
            }
            let file = File::create(path).map_err(|e| unwritable(path, &e))?;
            files.push((path.clone(), file, form));
        }
        let annotate = match args.github {
            ColorName::Always => true,
            ColorName::Never => false,
            ColorName::Auto => env::var_os("GITHUB_ACTIONS").is_some_and(|v| v == "true"),
        };
        let page = env::var_os("GITHUB_STEP_SUMMARY").filter(|v| annotate && !v.is_empty());
        let summary = match page.map(PathBuf::from) {
            None => None,
            Some(path) => {
                let file = OpenOptions::new().append(true).create(true).open(&path);
                Some((path.clone(), file.map_err(|e| unwritable(&path, &e))?))
            }
        };
        Ok(Sinks { answer: Answer::open(&args.output, &inputs)?, files, annotate, summary })
    }

    /// Write the verdict everywhere.
    pub(super) fn verdict(self, report: GateReport) -> Result<()> {
        for (path, file, form) in &self.files {
            let mut out = BufWriter::new(file);
            form(&report, &mut out).and_then(|()| out.flush()).map_err(|e| unwritable(path, &e))?;
        }
        if let Some((path, file)) = &self.summary {
            let mut out = BufWriter::new(file);
            markdown(&report, &mut out)
                .and_then(|()| out.flush())
                .map_err(|e| unwritable(path, &e))?;
        }
        let annotate = self.annotate;
        // GitHub reads commands from both streams; behind JSON on standard output they would make
        // it none.
        let beside = matches!(self.answer.format, Format::Json | Format::Csv { .. });
        let comparison = Comparison::Gate(Box::new(report));
        self.answer.write(&comparison)?;
        if let Comparison::Gate(report) = &comparison
            && annotate
        {
            match beside {
                true => annotations::write(report, &mut io::stderr().lock())?,
                false => annotations::write(report, &mut io::stdout().lock())?,
            }
        }
        Ok(())
    }

    /// Write something else where the answer goes.
    pub(super) fn other(self, comparison: &Comparison) -> Result<()> {
        self.answer.write(comparison)
    }
}

fn markdown(report: &GateReport, out: &mut dyn Write) -> io::Result<()> {
    let comparison = Comparison::Gate(Box::new(report.clone()));
    compare::write(&comparison, &Format::Markdown, out)
}

fn unwritable(path: &Path, error: &io::Error) -> anyhow::Error {
    usage(format!("{}: cannot be written: {error}", path.display()))
}

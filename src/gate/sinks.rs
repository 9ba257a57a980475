//! The destinations of a comparison: standard output or a file, additional files in other formats,
//! and the summary page of the CI job that runs holdup.
//!
//! All are opened before the first trace is read: a wrong path must not cost minutes.

use super::args::GateArgs;
use super::rounds;
use crate::cli::{ColorName, OutputArgs};
use crate::config;
use crate::exit::{Failure, Result, unwritable, usage};
use crate::output::Output;
use holdup_render::Format;
use holdup_render::compare::{self, Comparison, GateReport, annotations, junit, markdown, sarif};
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
    /// Open the destination; never overwrite an input.
    pub(super) fn open(args: &OutputArgs, inputs: &[&Path]) -> Result<Answer> {
        let output = Output::open(args.output.as_deref(), inputs)?;
        let format = config::format(args, &output)?;
        Ok(Answer { output, format })
    }

    /// Number of rows to show: see [`config::entries`].
    pub(super) fn entries(&self, asked: Option<usize>, text: usize) -> Option<usize> {
        config::entries(&self.format, asked, text)
    }

    /// Write the comparison.
    pub(super) fn write(self, comparison: &Comparison) -> Result<()> {
        self.output.write_with(|out| compare::write(comparison, &self.format, out))
    }
}

/// A form that is written to a separate file.
type Form = fn(&GateReport, &mut dyn Write) -> io::Result<()>;

/// All destinations of a gate's verdict.
pub(super) struct Sinks {
    answer: Answer,
    files: Vec<(PathBuf, File, Form)>,
    /// Whether to print annotations for GitHub.
    annotate: bool,
}

impl Sinks {
    /// Open all destinations.
    pub(super) fn open(args: &GateArgs) -> Result<Sinks> {
        let inputs: Vec<&Path> = rounds::inputs(args).chain(args.policy.as_deref()).collect();
        let asked: [(&Option<PathBuf>, Form); 3] = [
            (&args.junit, junit::write),
            (&args.sarif, sarif::write),
            (&args.markdown, markdown::gate),
        ];
        let mut files = Vec::new();
        for (path, form) in asked.into_iter().filter_map(|(p, form)| Some((p.as_ref()?, form))) {
            if inputs.iter().any(|input| crate::output::same_file(path, input)) {
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
        if let Some(path) = page.map(PathBuf::from) {
            // Append, because the job's page has the output of earlier steps.
            let file = OpenOptions::new().append(true).create(true).open(&path);
            let file = file.map_err(|e| unwritable(&path, &e))?;
            files.push((path, file, markdown::gate));
        }
        Ok(Sinks { answer: Answer::open(&args.output, &inputs)?, files, annotate })
    }

    /// Write the verdict everywhere.
    pub(super) fn verdict(self, report: GateReport) -> Result<()> {
        for (path, file, form) in &self.files {
            let mut out = BufWriter::new(file);
            form(&report, &mut out).and_then(|()| out.flush()).map_err(|e| unwritable(path, &e))?;
        }
        let mut commands = Vec::new();
        if self.annotate {
            annotations::write(&report, &mut commands).map_err(Failure::Stdout)?;
        }
        // GitHub reads commands from both streams; after JSON on standard output they would make it
        // invalid.
        let to_stderr = matches!(self.answer.format, Format::Json | Format::Csv { .. });
        self.answer.write(&Comparison::Gate(Box::new(report)))?;
        let written = match to_stderr {
            true => io::stderr().lock().write_all(&commands),
            false => io::stdout().lock().write_all(&commands),
        };
        written.map_err(Failure::Stdout)
    }

    /// Write another comparison to the answer's destination.
    pub(super) fn other(self, comparison: &Comparison) -> Result<()> {
        self.answer.write(comparison)
    }
}

//! `holdup guide`: the walk, interactively on a terminal, or written with the recommended answers.

use crate::cli::{FormatName, GuideArgs};
use crate::config::Config;
use crate::exit::{self, Failure, Result, usage};
use crate::replay::{self, Asked, ForVerdict};
use crate::tables::{any_table, table_names};
use crate::thresholds::thresholds;
use crate::write::write;
use holdup_diagnose::guide::{To, Walk, walk_judged};
use holdup_diagnose::{Class, Extras};
use holdup_passes::{Analysis, Detail};
use holdup_render::{Body, Format, Report, TextOptions, TraceHead, text};
use holdup_trace::Reader;
use std::io::{self, BufRead, IsTerminal, Write};

/// Rows of a table shown during the walk.
const ENTRIES: usize = 12;

/// Run the verb.
pub(crate) fn run(args: &GuideArgs) -> Result<u8> {
    let limits = thresholds(args.thresholds.as_deref())?;
    let terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let output = &args.common.output;
    let text_to_stdout = output.output.is_none()
        && !output.json
        && output.separator.is_none()
        && output.format == FormatName::Text;
    let config = Config::new(&args.common)?.named_by(&args.symbols)?;
    let ask_in = match (args.ask || (terminal && !args.yes && text_to_stdout), &config.format) {
        (false, _) => None,
        (true, Format::Text(_)) if config.trace.as_os_str() == "-" => {
            return Err(usage(
                "standard input is read for answers: name a file as TRACE, or use --yes",
            ));
        }
        (true, Format::Text(options)) => Some(options.clone()),
        (true, _) => {
            return Err(usage(
                "guide asks its questions in text only; use --yes with other formats",
            ));
        }
    };
    let reader = holdup_open::open(&config.trace)?;
    let asked = Asked { gain: args.gain, detail: Detail::Sums, whole: false };
    let ForVerdict { judged, code, not_replayed } =
        replay::read(&config, &*reader, &limits, &args.symbols, asked)?;
    let extras = Extras { code: code.as_ref().map(|c| c as _), ..Extras::default() };
    let mut walk = walk_judged(reader.info(), &judged, extras, limits);
    walk.diagnosis.not_replayed = walk.diagnosis.not_replayed.or(not_replayed);
    if let Some(options) = ask_in {
        crate::progress::end();
        return Asking { walk: &walk, reader: &*reader, analysis: &judged.analysis, options }
            .run(&mut io::stdin().lock(), &mut io::stdout().lock())
            .map_err(Failure::Stdout);
    }
    let class = walk.diagnosis.verdict.class;
    write("guide", config, &*reader, &judged.analysis, |_, _, _| Ok(Body::Guide(Box::new(walk))))?;
    Ok(if class == Class::NotEnoughEvidence { exit::INCONCLUSIVE } else { exit::OK })
}

struct Asking<'a> {
    walk: &'a Walk,
    reader: &'a dyn Reader,
    analysis: &'a Analysis,
    options: TextOptions,
}

impl Asking<'_> {
    /// Ask one question after the other. The walk ends at the end of the input.
    fn run(&self, answers: &mut dyn BufRead, out: &mut dyn Write) -> io::Result<u8> {
        let quiet = TextOptions { quiet: true, ..self.options.clone() };
        let mut way: Vec<&str> = self.walk.questions.first().map(|q| q.id).into_iter().collect();
        writeln!(out, "{}", HELP)?;
        let mut show = true;
        while let Some(q) = way.last().and_then(|id| self.walk.question(id)) {
            if show {
                writeln!(out)?;
                text::write_question(q, way.len(), &self.options, out)?;
            }
            show = true;
            write!(
                out,
                "[1-{}, Enter = {}, t TABLE, b, r, q, ?] ",
                q.branches.len(),
                q.recommended + 1
            )?;
            out.flush()?;
            let mut line = String::new();
            if answers.read_line(&mut line)? == 0 {
                writeln!(out)?;
                return Ok(exit::OK);
            }
            let mut words = line.split_whitespace();
            let branch = match (words.next(), words.next()) {
                (None, _) => q.recommended,
                (Some("q" | "quit"), _) => return Ok(exit::OK),
                (Some("r" | "report"), _) => break,
                (Some("b" | "back"), _) => {
                    if way.len() > 1 {
                        way.pop();
                    } else {
                        writeln!(out, "This is the first question.")?;
                        show = false;
                    }
                    continue;
                }
                (Some("t" | "table"), name) => {
                    let name = name.or(q.tables.first().copied()).unwrap_or("cpus");
                    self.table(name, &quiet, out)?;
                    show = false;
                    continue;
                }
                (Some(number), _) => match number.parse::<usize>() {
                    Ok(n) if (1..=q.branches.len()).contains(&n) => n - 1,
                    _ => {
                        writeln!(
                            out,
                            "{}\nTables that show more about this question: {}; all tables: {}",
                            HELP,
                            q.tables.join(", "),
                            table_names().join(", ")
                        )?;
                        show = false;
                        continue;
                    }
                },
            };
            match q.branches[branch].to {
                To::Question(id) => way.push(id),
                To::Class(class) => {
                    writeln!(out)?;
                    text::write_end(self.walk, class, &self.options, out)?;
                    if class == self.walk.diagnosis.verdict.class {
                        break;
                    }
                    // A path that ends without the verdict: suggest another look at its last
                    // branch.
                    writeln!(
                        out,
                        "  Enter shows the report, b goes back to the previous question."
                    )?;
                    write!(out, "[Enter, b, q] ")?;
                    out.flush()?;
                    let mut line = String::new();
                    let more = answers.read_line(&mut line)?;
                    match line.trim() {
                        "b" | "back" => continue,
                        "q" | "quit" => return Ok(exit::OK),
                        _ if more == 0 => {
                            writeln!(out)?;
                            return Ok(exit::OK);
                        }
                        _ => break,
                    }
                }
            }
        }
        self.write(Body::Diagnosis(Box::new(self.walk.diagnosis.clone())), &quiet, out)?;
        Ok(exit::OK)
    }

    fn table(&self, name: &str, options: &TextOptions, out: &mut dyn Write) -> io::Result<()> {
        match any_table(name, self.analysis, &self.reader.info().capabilities) {
            Some(mut table) => {
                table.entries = Some(ENTRIES);
                self.write(Body::Table(table), options, out)
            }
            None => writeln!(
                out,
                "There is no table {}; the tables are {}.",
                text::escape(name),
                table_names().join(", ")
            ),
        }
    }

    fn write(&self, body: Body, options: &TextOptions, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out)?;
        let report = Report {
            command: "guide",
            trace: TraceHead::new(self.reader.info(), self.analysis),
            quality: self.analysis.quality.entries(),
            body,
        };
        text::write(&report, options, out)?;
        out.flush()
    }
}

const HELP: &str = "A number chooses an answer, Enter chooses the recommended answer (>); t TABLE \
                    shows a table, b goes back, r shows the report, q quits.";

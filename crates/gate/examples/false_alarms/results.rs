//! The answers as a file next to the runs, and as a table for people.

use super::experiment::{Answer, QUESTIONS, Question, Tally, WORKLOADS, Workload};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// The columns of the file.
const HEADER: &str = "workload,question,pass,regressed,inconclusive,\
                      first_pass,first_regressed,first_inconclusive,above_10_pct,above_5_pct";

/// The answers to all questions about all workloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Results {
    /// SHA-256 of the runs and policies that were used.
    pub(crate) of: String,
    /// In the order of [`WORKLOADS`], and for each in the order of [`QUESTIONS`].
    pub(crate) answers: Vec<Vec<Answer>>,
}

/// A checksum of all runs and policies of a folder.
pub(crate) fn checksum(folder: &Path) -> Result<String, String> {
    let mut sum = Sha256::new();
    for name in WORKLOADS {
        let runs = [100, 110, 125].map(|length| format!("runs/{name}-{length}.json"));
        for file in runs.iter().chain([&format!("{name}.toml")]) {
            let path = folder.join(file);
            sum.update(std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?);
        }
    }
    Ok(sum.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

impl Results {
    /// Ask every question `times` times.
    pub(crate) fn of(folder: &Path, times: usize) -> Result<Results, String> {
        // A thread for each workload: they take equally long.
        let ask = |name: &'static str| -> Result<Vec<Answer>, String> {
            let workload = Workload::load(folder, name)?;
            QUESTIONS
                .iter()
                .map(|question| workload.ask(*question, question.often(times)))
                .collect()
        };
        let answers = std::thread::scope(|scope| {
            let threads: Vec<_> =
                WORKLOADS.iter().map(|name| scope.spawn(move || ask(name))).collect();
            let join = |t: std::thread::ScopedJoinHandle<'_, _>| {
                t.join().map_err(|_| "a thread panicked".to_owned())?
            };
            threads.into_iter().map(join).collect::<Result<Vec<_>, String>>()
        });
        Ok(Results { of: checksum(folder)?, answers: answers? })
    }

    /// Every answer with its workload and question.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static str, Question, &Answer)> {
        let row = |(name, answers)| {
            let answers: &Vec<Answer> = answers;
            QUESTIONS.iter().zip(answers).map(move |(question, a)| (name, *question, a))
        };
        WORKLOADS.iter().copied().zip(&self.answers).flat_map(row)
    }

    /// The text of the file.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("# of {}\n{HEADER}\n", self.of);
        for (name, question, Answer { all, first, above_10, above_5 }) in self.rows() {
            let tally = |t: &Tally| format!("{},{},{}", t.pass, t.regressed, t.inconclusive);
            let (all, first) = (tally(all), tally(first));
            let _ = writeln!(text, "{name},{},{all},{first},{above_10},{above_5}", question.key());
        }
        text
    }

    /// Read the text of the file.
    pub(crate) fn parse(text: &str) -> Result<Results, String> {
        let mut lines = text.lines();
        let of = lines.next().and_then(|l| l.strip_prefix("# of ")).ok_or("no checksum")?;
        if lines.next() != Some(HEADER) {
            return Err(format!("the columns are not {HEADER}"));
        }
        let mut answer = |name: &str, question: &Question| {
            let line = lines.next().ok_or("too few lines")?;
            let key = format!("{name},{},", question.key());
            let rest = line.strip_prefix(&key).ok_or(format!("'{line}' is not of {key}"))?;
            let n: Result<Vec<usize>, _> = rest.split(',').map(str::parse).collect();
            let wrong = || format!("'{line}': eight numbers are wanted");
            let n: [usize; 8] = n.ok().and_then(|n| n.try_into().ok()).ok_or_else(wrong)?;
            let tally = |n: &[usize]| Tally { pass: n[0], regressed: n[1], inconclusive: n[2] };
            let (all, first) = (tally(&n[..3]), tally(&n[3..6]));
            Ok::<_, String>(Answer { all, first, above_10: n[6], above_5: n[7] })
        };
        let mut of_one =
            |name: &&str| QUESTIONS.iter().map(|q| answer(name, q)).collect::<Result<_, _>>();
        let answers = WORKLOADS.iter().map(&mut of_one).collect::<Result<_, _>>()?;
        Ok(Results { of: of.to_owned(), answers })
    }
}

/// Another gate's answers about the same comparisons.
pub(crate) struct Other {
    /// Its name and version.
    pub(crate) name: String,
    /// Checksum of the runs that it judged.
    pub(crate) of: String,
    /// Comparisons, and regressions among them, by workload and question.
    said: BTreeMap<(String, String), (usize, usize)>,
}

impl Other {
    /// Read `otava.csv`.
    pub(crate) fn parse(text: &str) -> Result<Other, String> {
        let mut lines = text.lines();
        let head = lines.next().and_then(|l| l.strip_prefix("# ")).ok_or("no first line")?;
        let (name, of) = head.split_once(" of ").ok_or("the first line names no runs")?;
        let mut said = BTreeMap::new();
        for line in lines.skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let [workload, question, all, regressed] = cells[..] else {
                return Err(format!("'{line}': four columns are wanted"));
            };
            let number = |n: &str| n.parse::<usize>().map_err(|e| format!("'{line}': {e}"));
            let key = (workload.to_owned(), question.to_owned());
            said.insert(key, (number(all)?, number(regressed)?));
        }
        Ok(Other { name: name.to_owned(), of: of.to_owned(), said })
    }
}

/// The table of the document.
pub(crate) fn table(results: &Results, other: &Other) -> String {
    let mut text = format!(
        "| workload | comparison | compared | regressed | pass | inconclusive | median +10 % | \
         median +5 % | {} |\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n",
        other.name
    );
    for (name, question, answer) in results.rows() {
        let n = answer.all.all();
        let part = |k: usize, n: usize| match n {
            0 => "n/a".to_owned(),
            n => format!("{:.1} %", k as f64 * 100.0 / n as f64),
        };
        let Tally { pass, regressed, inconclusive } = answer.all;
        let key = (name.to_owned(), question.key());
        let (m, said) = other.said.get(&key).copied().unwrap_or_default();
        let cells = [
            part(regressed, n),
            part(pass, n),
            part(inconclusive, n),
            part(answer.above_10, n),
            part(answer.above_5, n),
            part(said, m),
        ];
        let _ = writeln!(text, "| {name} | {} | {n} | {} |", question.words(), cells.join(" | "));
    }
    text
}

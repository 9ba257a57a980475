//! Predicted against measured: work that was recorded on several numbers of CPUs, predicted from
//! the smaller machine. The table of docs/models.md.

use crate::support::is_written;
use holdup_attribution::{Attribution, analyze};
use holdup_diagnose::predict::{Forecast, PredictRow, of_trace};
use holdup_passes::Options;
use holdup_testkit::{corpus, in_parallel, needs};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A labelled recording of some work on some number of CPUs, with what is said of its worst lock.
struct Rung {
    cpus: u32,
    name: String,
    forecast: Forecast,
}

impl Rung {
    /// Working CPUs that were measured with the lock that costs most.
    fn measured(&self) -> Option<f64> {
        self.worst(self.cpus)?.measured_effective_cpus
    }

    fn worst(&self, cpus: u32) -> Option<&PredictRow> {
        let mut rows = self.forecast.rows.iter().filter(|r| r.object != "all");
        let object = &rows.clone().next()?.object;
        rows.find(|r| r.object == *object && r.cpus == cpus)
    }
}

/// Work that was recorded on several numbers of CPUs: all ladders of the corpus whose programs
/// contend for something that one at a time has. What differs within one is the CPUs; the workers
/// are eight, or one for each CPU.
fn ladders() -> Vec<(String, Vec<Rung>)> {
    let dir = corpus().join("vm");
    let labels = std::fs::read_to_string(dir.join("LABELS.tsv")).unwrap();
    let mut works: BTreeMap<String, (bool, Vec<(u32, String)>)> = BTreeMap::new();
    for line in labels.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (file, work, class) = (fields[0], fields[5], fields[7]);
        let folder = file.split('/').next().unwrap();
        if !folder.starts_with("debian61") || !dir.join(file).is_file() {
            continue;
        }
        let like = |p: &&str| {
            !p.starts_with("dur=") && (!p.starts_with("n=") || folder == "debian61-ladder")
        };
        let work: Vec<&str> = work.split(' ').filter(like).collect();
        let contended = work[0] == "server"
            || ["kernel_lock", "thread_serialization", "application_serialization"]
                .iter()
                .any(|c| class.split('|').any(|own| own == *c));
        let of_work = works.entry(work.join(" ")).or_default();
        of_work.0 |= contended;
        of_work.1.push((fields[4].parse().unwrap(), file.into()));
    }
    let works = works.into_iter().filter(|(_, (contended, _))| *contended);
    let works = works.map(|(work, (_, files))| (work, files));
    let works = works.filter(|(_, files)| files.iter().any(|f| f.0 != files[0].0));
    let read = |(work, mut files): (String, Vec<(u32, String)>)| {
        files.sort();
        let all: Vec<u32> = files.iter().map(|f| f.0).collect();
        let rung = |(cpus, file): &(u32, String)| {
            let reader = holdup_open::open(&dir.join(file)).unwrap();
            let analysis = analyze(&*reader, &Options::default()).unwrap();
            let forecast = of_trace(&Attribution::from(&analysis), &all, None);
            Rung { cpus: *cpus, name: file.split('/').next_back().unwrap().to_owned(), forecast }
        };
        (work, files.iter().map(rung).collect())
    };
    in_parallel(works.collect(), read)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// The ladders on which it was decided that holds go before lost CPUs where both are known. All
/// others are held out.
const FOR_RULES: [&str; 6] = [
    "condvar cs=200 think=200",
    "flock cs=400 think=400",
    "mmap think=100",
    "mutex cs=300 think=200",
    "mutex n=8 cs=200 think=600",
    "server cs=800 think=400",
];

/// The table of docs/models.md: every step of every ladder, predicted from the smaller machine.
fn predicted_against_measured(ladders: &[(String, Vec<Rung>)]) -> String {
    let mut table = String::from(
        "| half | work | CPUs from | to | demand | basis | predicted | measured | error |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    let mut errors = [Vec::new(), Vec::new()];
    for (work, rungs) in ladders {
        let held_out = !FOR_RULES.contains(&work.as_str());
        for (here, from) in rungs.iter().enumerate() {
            let mut targets: Vec<u32> = rungs.iter().map(|r| r.cpus).collect();
            targets.dedup();
            // One row where several recordings are the same step.
            if rungs[..here].iter().any(|r| r.cpus == from.cpus) {
                continue;
            }
            for to in targets.into_iter().filter(|&to| to > from.cpus) {
                let same = rungs.iter().filter(|r| r.cpus == to);
                let measured: Vec<f64> = same.filter_map(Rung::measured).collect();
                let Some(row) = from.worst(to) else { continue };
                let (measured, basis) = (median(&measured), row.basis.map_or("", |b| b.id()));
                let half = if held_out { "held out" } else { "rules" };
                let Some((predicted, demand)) = row.effective_cpus.zip(row.demand) else {
                    writeln!(
                        table,
                        "| {half} | `{work}` | {} | {to} | n/a | | n/a | {measured:.2} | |",
                        from.cpus
                    )
                    .unwrap();
                    continue;
                };
                let error = (predicted / measured - 1.0) * 100.0;
                errors[usize::from(held_out)].push(error.abs());
                writeln!(
                    table,
                    "| {half} | `{work}` | {} | {to} | {:.1} % | {basis} | {predicted:.2} | \
                     {measured:.2} | {error:+.0} % |",
                    from.cpus,
                    demand * 100.0
                )
                .unwrap();
            }
        }
    }
    let sum = |errors: &[f64]| {
        let near = errors.iter().filter(|&&e| e <= 15.0).count();
        format!(
            "median error {:.0} %, {near} of {} steps within 15 %, worst {:.0} %",
            median(errors),
            errors.len(),
            errors.iter().copied().fold(0.0, f64::max)
        )
    };
    let held_out = sum(&errors[1]);
    let mut said = format!("Held-out half: {held_out}.\nHalf for rules: {}.\n", sum(&errors[0]));
    // The same work on the same CPUs, recorded again and again.
    for (work, rungs) in ladders {
        let eight: Vec<f64> =
            rungs.iter().filter(|r| r.cpus == 8).filter_map(Rung::measured).collect();
        if eight.len() >= 5 {
            let (low, high) =
                eight.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), &x| (a.min(x), b.max(x)));
            writeln!(
                said,
                "Run-to-run spread: `{work}` on 8 CPUs, recorded {} times, had {low:.2} to \
                 {high:.2} working CPUs, median {:.2}.",
                eight.len(),
                median(&eight)
            )
            .unwrap();
        }
    }
    format!("{said}\n{table}")
}

/// Where docs/models.md has the table.
const MARKS: (&str, &str) = (
    "<!-- predicted against measured: HOLDUP_BLESS=1 cargo test --test answers predicted -->\n",
    "<!-- end -->\n",
);

#[needs(corpus)]
#[test]
fn the_table_of_predictions_is_up_to_date() {
    let ladders = ladders();
    assert!(ladders.len() >= 8, "{}", ladders.len());
    for rung in ladders.iter().flat_map(|l| &l.1) {
        for row in &rung.forecast.rows {
            let none_negative = [row.effective_cpus, row.lost_cpus, row.measured_effective_cpus]
                .iter()
                .all(|x| x.is_none_or(|x| x >= 0.0 && x.is_finite()));
            assert!(none_negative, "{}: {row:?}", rung.name);
        }
    }
    let made = predicted_against_measured(&ladders);
    is_written("docs/models.md", MARKS, &format!("\n{made}\n"));
}

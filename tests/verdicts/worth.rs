//! A verdict whose mending gains nothing is a wrong verdict, or one that the replay cannot see.

use crate::labels::{Labelled, labelled};
use crate::open;
use crate::support::is_written;
use holdup_attribution::Thresholds;
use holdup_diagnose::{Gain, Verdict, diagnose_judged, phases};
use holdup_passes::{Detail, Options};
use holdup_testkit::{in_parallel, needs};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Less than so many times as fast is nothing.
const GAINS: f64 = 1.02;

const MARKS: (&str, &str) = (
    "<!-- what mending gains: HOLDUP_BLESS=1 cargo test --test verdicts worth -->\n",
    "<!-- end of what mending gains -->",
);

fn verdict_on(of: Labelled) -> (Labelled, Verdict) {
    let reader = open(&of.path);
    let options = Options { detail: Detail::Steps, ..Options::default() };
    let judged = phases::read(&*reader, &options, &Thresholds::default()).expect("readable");
    let verdict = diagnose_judged(reader.info(), &judged, None, Thresholds::default()).verdict;
    (of, verdict)
}

/// How one half does; and the rows of the verdicts whose mending gains nothing.
fn half(title: &str, all: &[&(Labelled, Verdict)], rows: &mut String) -> String {
    let mut nothing = 0;
    let mut gains = Vec::new();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for (of, verdict) in all {
        match verdict.gain.as_ref().expect("it was asked for") {
            Gain::Unknown(why) => {
                // How much, and which thing, differ from one recording to the next.
                let figure = |w: &str| w.starts_with(|c: char| c.is_ascii_digit());
                let first = why.reason.split([':', ';']).next().unwrap_or_default();
                let words = first.split(' ').map(|w| if figure(w) { "…" } else { w });
                *reasons.entry(words.collect::<Vec<_>>().join(" ")).or_default() += 1;
            }
            Gain::Replayed(r) => {
                gains.push(r.gain);
                if r.gain < GAINS {
                    nothing += 1;
                    let right = of.right.iter().any(|r| r == verdict.class.id());
                    let label = if right { "the label" } else { "another than the label" };
                    writeln!(
                        rows,
                        "| `{}` | {title} | {} ({label}) | {} | {:.2} |",
                        of.name,
                        verdict.class.id(),
                        r.change.replace('|', "\\|"),
                        r.gain
                    )
                    .unwrap();
                }
            }
        }
    }
    gains.sort_by(f64::total_cmp);
    let median = gains.get(gains.len() / 2).copied().unwrap_or(1.0);
    let mut said = format!(
        "{title}: of {} verdicts {} could be replayed without what they name; {nothing} of them \
         gain less than {GAINS}x, the median gain is {median:.2}x. No figure:\n\n",
        all.len(),
        gains.len()
    );
    for (reason, count) in reasons {
        writeln!(said, "* {count}: {reason}").unwrap();
    }
    said + "\n"
}

#[needs(corpus)]
#[test]
fn worth_of_what_verdicts_name_is_written_down() {
    let all = in_parallel(labelled(), verdict_on);
    let (tune, check): (Vec<_>, Vec<_>) = all.iter().partition(|(of, _)| of.is_to_tune());
    let mut rows = String::new();
    let mut made = String::from("\n");
    made += &half("rules", &tune, &mut rows);
    made += &half("check", &check, &mut rows);
    made += "| recording | half | verdict | change | gain |\n|---|---|---|---|--:|\n";
    is_written("docs/models.md", MARKS, &(made + &rows + "\n"));
}

//! The experiment of `docs/ci.md`: its answers match the recorded runs and the current gate, they
//! keep the bounds, and the document contains them.

#[path = "../../examples/false_alarms/document.rs"]
#[allow(dead_code, reason = "the program writes it")]
mod document;
#[path = "../../examples/false_alarms/draw.rs"]
pub(crate) mod draw;
#[path = "../../examples/false_alarms/experiment.rs"]
#[allow(dead_code, reason = "the program prints them")]
mod experiment;
#[path = "../../examples/false_alarms/results.rs"]
#[allow(dead_code, reason = "the program writes it")]
mod results;

use draw::{Design, Drawn};
use experiment::{Answer, FIRST, QUESTIONS, folder};
use holdup_gate::stats::generator::Generator;
use results::{Other, Results, checksum};
use std::collections::BTreeSet;

/// The gate gives no answer with such a background load.
const CROWDED: &str = "crowd";

fn recorded() -> Results {
    Results::parse(&document::read(&folder().join("results.csv")).unwrap()).unwrap()
}

#[test]
fn the_answers_are_about_the_runs_at_hand() {
    let of = checksum(&folder()).unwrap();
    let other = Other::parse(&document::read(&folder().join("otava.csv")).unwrap()).unwrap();
    let again = "fixtures/gate/experiment.sh makes the answers anew";
    assert_eq!(recorded().of, of, "results.csv is of other runs or policies: {again}");
    assert_eq!(other.of, of, "otava.csv is of other runs or policies: {again}");
}

#[test]
fn the_gate_still_answers_as_it_did() {
    let now = Results::of(&folder(), FIRST).unwrap();
    for ((name, question, was), (.., is)) in recorded().rows().zip(now.rows()) {
        assert_eq!(
            was.first,
            is.first,
            "{name}, {}: the judge has changed; HOLDUP_BLESS=1 cargo run --release -p holdup-gate \
             --example false_alarms asks it anew",
            question.words()
        );
    }
}

#[test]
fn the_document_has_the_table() {
    let (document, blessed) = document::both(&folder()).unwrap();
    assert!(
        document == blessed,
        "docs/ci.md is not what the answers say: HOLDUP_BLESS=1 cargo run --release -p holdup-gate \
         --example false_alarms"
    );
}

/// Answers to these questions, without the workload `crowd`.
fn answers(of: &Results, wanted: impl Fn(u32, Design) -> bool) -> Vec<(String, Answer)> {
    of.rows()
        .filter(|(name, q, _)| *name != CROWDED && wanted(q.length, q.design))
        .map(|(name, q, answer)| (format!("{name}, {}", q.words()), *answer))
        .collect()
}

#[test]
fn at_most_one_in_two_hundred_unchanged_workloads_regresses() {
    let results = recorded();
    let unchanged =
        answers(&results, |length, design| length == 100 && !matches!(design, Design::Blocks(_)));
    assert_eq!(unchanged.len(), 6);
    for (words, Answer { all, .. }) in unchanged {
        assert!(all.all() >= 1000, "{words}: {all:?}");
        assert!(all.regressed * 200 <= all.all(), "{words}: {all:?}");
    }
}

/// Its runs scatter by 6 to 8 %: too much for five runs per side, and for ten pairs at 10 %.
const RESTLESS: &str = "mmap";

#[test]
fn nineteen_of_twenty_slower_workloads_are_caught() {
    let results = recorded();
    let mut slower = answers(&results, |length, design| {
        (length, design) == (125, Design::Any(5)) || (length, design) == (110, Design::Pairs(10))
    });
    slower.retain(|(words, _)| !words.starts_with(RESTLESS));
    assert_eq!(slower.len(), 4);
    // Ten pairs detect a quarter in every workload.
    slower.extend(answers(&results, |length, design| (length, design) == (125, Design::Pairs(10))));
    for (words, Answer { all, .. }) in slower {
        assert!(all.all() >= 1000, "{words}: {all:?}");
        assert!(all.regressed * 20 >= all.all() * 19, "{words}: {all:?}");
    }
}

#[test]
fn a_quarter_more_never_passes() {
    for (words, Answer { all, .. }) in answers(&recorded(), |length, _| length == 125) {
        assert_eq!(all.pass, 0, "{words}: {all:?}");
    }
}

#[test]
fn beside_a_busy_neighbour_nothing_is_decided() {
    let results = recorded();
    for (name, question, Answer { all, .. }) in results.rows().filter(|r| r.0 == CROWDED) {
        assert_eq!(all.regressed, 0, "{name}, {}", question.words());
        assert!(all.inconclusive * 20 >= all.all() * 19, "{name}, {}", question.words());
    }
}

/// The run numbers of a draw, and whether they are distinct.
fn distinct(drawn: &Drawn) -> bool {
    let all: BTreeSet<usize> = drawn.a.iter().chain(&drawn.b).copied().collect();
    all.len() == drawn.a.len() + drawn.b.len() && all.iter().all(|&i| i < 24)
}

#[test]
fn no_run_is_compared_with_itself() {
    for question in QUESTIONS.iter().filter(|q| q.length == 100) {
        let drawn = question.design.same(24, 500, &mut Generator::new(7));
        let n = question.design.runs();
        assert!(drawn.iter().all(distinct), "{question:?}");
        assert!(drawn.iter().all(|d| (d.a.len(), d.b.len()) == (n, n)), "{question:?}");
        let times = if question.design == Design::Blocks(5) { 240 } else { 500 };
        assert_eq!(drawn.len(), times);
        assert_ne!(drawn[0], drawn[1]);
    }
}

#[test]
fn pairs_are_of_one_round() {
    for Drawn { a, b } in Design::Pairs(10).other(24, 100, &mut Generator::new(7)) {
        assert_eq!(a, b);
        assert!(a.is_sorted() && a.len() == 10, "{a:?}");
    }
    for Drawn { a, b } in Design::Pairs(10).same(24, 100, &mut Generator::new(7)) {
        assert!(a.iter().zip(&b).all(|(a, b)| a / 2 == b / 2 && a != b), "{a:?} {b:?}");
    }
}

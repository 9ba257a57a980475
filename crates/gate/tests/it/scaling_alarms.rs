//! The experiment of `docs/ci.md` on gates on scaling: some of its comparisons are repeated, and
//! the document has a line for each.

#[path = "../../examples/scaling_alarms/experiment.rs"]
#[allow(dead_code, reason = "the program writes the document")]
mod experiment;

use super::false_alarms::draw;
use draw::Design;
use experiment::{After, Answer, DOCUMENT, QUESTIONS, Question, WORKLOADS, Workload, heading, row};

/// The answers for each workload, concurrently.
fn answers(wanted: impl Fn(&Question) -> bool + Sync, times: usize) -> Vec<(Question, Answer)> {
    let of = |name: &str| {
        let workload = Workload::load(name).unwrap();
        let asked = QUESTIONS.iter().filter(|q| wanted(q));
        asked.map(|q| (*q, workload.ask(*q, times).unwrap())).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let all = WORKLOADS.map(|name| scope.spawn(move || of(name)));
        all.into_iter().flat_map(|one| one.join().unwrap()).collect()
    })
}

#[test]
fn what_scales_as_before_seldom_regresses() {
    for (question, answer) in answers(|q| q.every_alarm_is_false(), 50) {
        assert!(answer.scaling.regressed <= 1, "{question:?}: {answer:?}");
    }
}

/// Rounds that other programs disturbed are left out, and then ten pairs may be too few: but the
/// gate never says that nothing changed.
#[test]
fn worse_scaling_is_caught_by_ten_pairs_and_never_passes() {
    let pairs = |q: &Question| !q.every_alarm_is_false() && q.design == Design::Pairs(10);
    for (question, answer) in answers(pairs, 40) {
        let found = answer.scaling;
        let least = if question.after == After::Worse(25) { 36 } else { 28 };
        assert!(found.regressed >= least && found.pass == 0, "{question:?}: {answer:?}");
    }
}

#[test]
fn the_document_has_a_line_for_each_question() {
    let [_, table, _] = DOCUMENT.parts().unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 2 + WORKLOADS.len() * QUESTIONS.len());
    assert!(table.starts_with(&heading()));
    let asked = WORKLOADS.iter().flat_map(|w| QUESTIONS.iter().map(move |q| (w, q)));
    for (line, (workload, question)) in lines[2..].iter().zip(asked) {
        let of = row(workload, question, &Answer::default());
        let begin = of.split_once(" | 0 |").unwrap().0;
        assert!(line.starts_with(begin), "{line}\n{begin}");
    }
}

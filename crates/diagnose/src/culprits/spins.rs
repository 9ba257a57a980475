//! Code in which threads spin, as culprits.

use super::{program_name, waited_for};
use crate::facts::Facts;
use crate::report::{Culprit, Role};
use holdup_attribution::{Sleeper, UserSpinning};
use holdup_passes::percent;

/// Functions that are named, at most.
const FUNCTIONS: usize = 2;
/// A function in which less than this part of the spinning was sampled is not named, in per cent.
const LEAST: f64 = 10.0;

/// The functions in which the threads of a program spin: `pthread_spin_lock of prog (123)`.
pub(crate) fn spinning(facts: &Facts<'_>, s: &UserSpinning) -> Culprit {
    let spin = s.threads.iter().filter(|t| t.2 > 0);
    let sleepers: Vec<Sleeper> =
        spin.map(|&(slot, _, spun)| Sleeper { slot, wait_ns: spun }).collect();
    let program = program_name(facts, s.threads.iter().map(|t| t.0));
    let first = s.threads.first().map(|t| facts.thread(t.0));
    let pid = first.filter(|_| !s.between_processes).and_then(|t| facts.analysis.pid(t));
    let owner = pid.map_or_else(|| program.clone(), |pid| format!("{program} ({pid})"));
    let functions = functions(s);
    let culprit = Culprit {
        kind: "spin loop",
        id: functions.clone(),
        name: format!("{functions} of {owner}"),
        pid,
        ns: s.spun_ns,
        role: Role::Loops,
        ..Culprit::default()
    };
    waited_for(facts, &sleepers, culprit)
}

/// `runtime.procyield (80 %), lock2 (15 %)`: the share of the samples of spinning, unless there is
/// only one function.
fn functions(s: &UserSpinning) -> String {
    let all: u64 = s.functions.iter().map(|f| f.1).sum();
    let named = s.functions.iter().filter(|f| !f.0.is_empty());
    let named = named.map(|(name, n)| (name, percent(*n, all))).filter(|f| f.1 >= LEAST);
    let named: Vec<(&String, f64)> = named.take(FUNCTIONS).collect();
    match &named[..] {
        [] => "a loop".to_owned(),
        [(name, _)] => (*name).clone(),
        all => {
            let words: Vec<String> =
                all.iter().map(|(name, pct)| format!("{name} ({pct:.0} %)")).collect();
            words.join(", ")
        }
    }
}

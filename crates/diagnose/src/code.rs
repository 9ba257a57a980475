//! Describes culprits by the program's own code.

use crate::facts::Facts;
use crate::report::{Culprit, Finding, Role};
use holdup_profile::Spot;

/// A share that counts as all of it, in per cent, and is not printed.
const NEARLY_ALL: f64 = 95.0;
/// A share worth naming, in per cent.
const NAMED: f64 = 5.0;
/// Functions named in a sentence, at most.
const FUNCTIONS: usize = 3;

/// How threads use a culprit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deed {
    /// It acquires something that one thread at a time holds.
    Takes,
    /// A thread waits for it.
    Waits,
    /// It runs code.
    Runs,
}

impl Deed {
    fn of(role: Role) -> Deed {
        match role {
            Role::Contended | Role::Spins | Role::Loops => Deed::Takes,
            Role::Server | Role::Straggler | Role::Runs | Role::Queued | Role::Throttled => {
                Deed::Runs
            }
            Role::Costs
            | Role::Handover
            | Role::Barrier
            | Role::Served
            | Role::Device
            | Role::KernelLock
            | Role::Driver => Deed::Waits,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Deed::Takes => "taken in",
            Deed::Waits => "waited for in",
            Deed::Runs => "busy in",
        }
    }
}

impl Culprit {
    /// Its name, with the function in which threads wait for it, or which it runs; if no call chain
    /// tells that, the function that releases it.
    pub fn named_in_code(&self) -> String {
        let place = self.places_in_code(1).or_else(|| self.let_go_in_code(1));
        place.map_or_else(|| self.name.clone(), |place| format!("{}, {place}", self.name))
    }

    /// `taken in transfer (bank.c:31, 62 %), audit (bank.c:50, 30 %)`: the most important
    /// functions, at most `most`. `None` if no function is known by name.
    pub fn places_in_code(&self, most: usize) -> Option<String> {
        let code = self.code.as_ref()?;
        let deed = Deed::of(self.role);
        let spots = if deed == Deed::Runs { &code.runs } else { &code.waits };
        Some(format!("{} {}", deed.words(), functions(spots, most)?))
    }

    /// All that its code tells: where threads wait for it or it runs, and where it is released.
    pub fn phrases_of_code(&self) -> Vec<String> {
        let phrases = [
            self.places_in_code(FUNCTIONS),
            self.let_go_in_code(FUNCTIONS),
            self.calls_meanwhile(),
        ];
        phrases.into_iter().flatten().collect()
    }

    /// `meanwhile in write (62 % of the waiting)`: the calls of its holders.
    fn calls_meanwhile(&self) -> Option<String> {
        let calls = self.code.as_ref().filter(|_| Deed::of(self.role) == Deed::Takes)?.calls.iter();
        let named = calls.filter(|call| call.pct >= NAMED).take(FUNCTIONS);
        let words: Vec<String> =
            named.map(|c| format!("{} ({:.0} % of the waiting time)", c.call, c.pct)).collect();
        (!words.is_empty()).then(|| format!("meanwhile in {}", words.join(", ")))
    }

    /// `released in transfer (bank.c:33)`: the functions that end the waits. For objects that
    /// threads only wait for, only if the waiters' code is unknown: runtimes that schedule threads
    /// of their own, as Go's, sleep on none of the program's stacks, but their wakers run on one.
    fn let_go_in_code(&self, most: usize) -> Option<String> {
        let words = match Deed::of(self.role) {
            Deed::Takes => "released in",
            Deed::Waits if self.places_in_code(1).is_none() => "waiters woken in",
            Deed::Waits | Deed::Runs => return None,
        };
        Some(format!("{words} {}", functions(&self.code.as_ref()?.wakes, most)?))
    }
}

/// `transfer (bank.c:31, 62 %), audit (bank.c:50, 30 %)`; `None` if no function is known by name.
fn functions(spots: &[Spot], most: usize) -> Option<String> {
    let named = spots.iter().filter(|spot| spot.pct >= NAMED);
    let words: Vec<String> = named.filter_map(function).take(most).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// `transfer (bank.c:31, 62 %)`.
fn function(spot: &Spot) -> Option<String> {
    spot.words_with((spot.pct < NEARLY_ALL).then(|| format!("{:.0} %", spot.pct)))
}

/// Put the advice in terms of the program's code; without call chains, say how to get them.
pub(crate) fn advise(facts: &Facts<'_>, finding: &mut Finding) {
    if finding.ruled_out.is_some() || finding.culprits.is_empty() {
        return;
    }
    let advice = finding.culprits.iter().find_map(of_culprit);
    let missing = || match finding.culprits.first().map(|c| Deed::of(c.role)) {
        Some(Deed::Takes) if !facts.caps.stacks => Some(
            "record with call chains (holdup record -g) to see which functions acquire the lock \
             and hold it",
        ),
        _ => None,
    };
    finding.advice.extend(advice.or_else(|| missing().map(str::to_owned)));
}

fn of_culprit(culprit: &Culprit) -> Option<String> {
    let code = culprit.code.as_ref()?;
    let runs = functions(&code.runs, FUNCTIONS);
    Some(match Deed::of(culprit.role) {
        Deed::Takes => format!(
            "while other threads wait, the holders run {}: make this code shorter, or run it \
             before or after the critical section",
            runs?
        ),
        Deed::Runs => format!(
            "the thread runs {}: make this code faster, or divide it among \
                               threads",
            runs?
        ),
        Deed::Waits => {
            let waits = functions(&code.waits, FUNCTIONS)?;
            format!("the waiting threads sleep in {waits}: use the object less often there")
        }
    })
}

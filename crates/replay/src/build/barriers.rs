//! Rounds of barriers: the threads that take part in each.

use super::Builder;
use super::ends::Ended;
use super::objects::Class;
use holdup_passes::{Did, Object};
use holdup_trace::Nanos;

/// Wake-ups of one barrier by one thread within this time are one round.
const ROUND_NS: Nanos = 2_000_000;

impl Builder<'_> {
    /// The thread that wakes the others at a barrier arrived last; all of them take part in one
    /// round. Some sleep once more before they leave: an ordinary wait for their waker.
    pub(super) fn find_rounds(&mut self) {
        for &(slot, _) in &self.slots {
            let mut open: Option<(Object, Nanos, u32)> = None;
            let mut members = Vec::new();
            for step in self.analysis.steps(slot).steps {
                if matches!(step.what, Did::Sleep(..)) {
                    open = None;
                }
                let Some(Ended { sleeper, number, object, .. }) = self.ended(slot, step) else {
                    continue;
                };
                if self.class(object) != Class::Barrier {
                    continue;
                }
                let round = match open {
                    Some((o, at, round)) if o == object && step.at - at < ROUND_NS => round,
                    _ => {
                        members.clear();
                        self.rounds.push(1);
                        self.rounds.len() as u32 - 1
                    }
                };
                open = Some((object, step.at, round));
                if !members.contains(&sleeper) {
                    members.push(sleeper);
                    self.rounds[round as usize] += 1;
                    self.in_round.insert((sleeper, number), round);
                }
            }
        }
    }
}

//! The gain from removing a bottleneck.
//!
//! Three estimators give it, on one scale, "times as fast":
//! * **replayed**: the trace is replayed on a simulated machine on which the resource is not scarce
//!   ([`holdup_replay::estimate`]);
//! * **chains**: each thread saves its waiting for the resource, and the part of its other waits
//!   that its wakers save, as far as there are CPUs. A replay may save less, because it keeps the
//!   traced order in which servers, clients and runtimes did one thing after the other;
//! * **bound**: the part of the wanted CPU time that the ledger charges to the resource. Without it
//!   the rest remains; and the work ends no earlier than by all of that CPU time.
//!
//! Lost CPU time is not the cost: a lock that is held while sleeping costs hardly any CPU time and
//! makes the work take four times as long. So if the trace can be replayed, the replay counts.

use holdup_replay::Estimate;
use serde::Serialize;

/// How a [`Worth`] is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The trace was replayed with the resource no longer scarce.
    #[default]
    Replayed,
    /// The gain was estimated from the chains of wake-ups: the time that each thread saves if it
    /// does not wait for the resource.
    Chains,
    /// The gain is an upper bound, from the CPU time that the ledger charges to the bottleneck.
    Bound,
}

impl Basis {
    /// How this estimate is known.
    pub fn of(estimate: &Estimate) -> Basis {
        match (estimate.is_bound, estimate.by_chains) {
            (true, _) => Basis::Bound,
            (_, true) => Basis::Chains,
            _ => Basis::Replayed,
        }
    }

    /// In one word, as in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Basis::Replayed => "replayed",
            Basis::Chains => "chains",
            Basis::Bound => "bound",
        }
    }
}

/// How many times as fast the traced work would be if a resource were no longer scarce.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Worth {
    /// How the gain is known.
    pub basis: Basis,
    /// How many times as fast the work would be; 1 means no gain.
    pub times: f64,
    /// Low end of `times`, by which findings are ranked: the value for the longest replay. It is
    /// lower still if the unchanged replay does not take as long as the trace did, or if the gain
    /// is estimated from chains of wake-ups.
    pub low: f64,
    /// High end of `times`: the value for the shortest replay.
    pub high: f64,
    /// What is changed, in the syntax of `holdup whatif`; `null` if nothing was replayed.
    pub change: Option<String>,
    /// What is changed, in plain words.
    pub fix: Option<String>,
    /// How long the work takes in a replay without a change.
    pub unchanged_ns: Option<u64>,
    /// How long the work takes in a replay with the change.
    pub wall_ns: Option<u64>,
}

impl Worth {
    /// The gain by which findings are ranked: the low end. A bound says only that the gain is no
    /// larger, so it counts half-way between no gain and itself. A lock that a replay removed may
    /// be why one thread at a time had work, which is a bound.
    pub(crate) fn firm(&self) -> f64 {
        match self.basis {
            Basis::Bound => self.low.max(1.0).sqrt(),
            Basis::Replayed | Basis::Chains => self.low,
        }
    }

    /// From the demand alone: this much of the wanted CPU time is lost, in per cent.
    pub(crate) fn bound(lost_pct: f64) -> Worth {
        // A finding without a known cost has no known gain.
        let lost_pct = if lost_pct.is_finite() { lost_pct.clamp(0.0, 99.9) } else { 0.0 };
        let times = rounded(100.0 / (100.0 - lost_pct));
        Worth {
            basis: Basis::Bound,
            times,
            low: times,
            high: times,
            change: None,
            fix: None,
            unchanged_ns: None,
            wall_ns: None,
        }
    }

    /// This gain, if only this part of the work has it.
    pub(crate) fn for_part(self, part: f64) -> Worth {
        if part >= 1.0 {
            return self;
        }
        let of = |times: f64| rounded(1.0 + (times - 1.0) * part);
        let (times, low, high) = (of(self.times), of(self.low), of(self.high));
        let wall_ns = self.unchanged_ns.map(|ns| (ns as f64 / times.max(0.001)) as u64);
        Worth { times, low, high, wall_ns, ..self }
    }

    /// This gain, but no larger than `most`.
    pub(crate) fn at_most(self, most: f64) -> Worth {
        let within = |times: f64| times.min(rounded(most));
        let (times, low, high) = (within(self.times), within(self.low), within(self.high));
        Worth { times, low, high, ..self }
    }
}

/// How many times as fast the traced work would be if the holders of a lock no longer lost some of
/// the time for which they hold it.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HolderWorth {
    /// What is changed, in the syntax of `holdup whatif`.
    pub change: String,
    /// What is changed for the holders, in plain words.
    pub fix: &'static str,
    /// Part of the time in which other threads waited that the holders lose in this way, in per
    /// cent.
    pub pct: f64,
    /// How many times as fast the work would be.
    pub times: f64,
}

/// Three decimals.
pub(crate) fn rounded(times: f64) -> f64 {
    (times * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two processes contend for a file lock: so one at a time has work, for a gain of at most
    /// 1.93, and without the lock they are 1.88 to 1.94 times as fast.
    #[test]
    fn what_a_replay_removed_comes_before_a_bound_that_is_hardly_larger() {
        let serial = Worth::bound(48.1);
        let lock = Worth { basis: Basis::Chains, low: 1.88, times: 1.94, ..serial.clone() };
        assert!(serial.low > lock.low && serial.firm() < lock.firm());
        let hardly = Worth { basis: Basis::Replayed, low: 1.2, ..lock };
        assert!(serial.firm() > hardly.firm(), "a small gain does not explain the bound");
    }
}

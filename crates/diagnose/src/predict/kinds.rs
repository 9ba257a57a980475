//! Kinds of threads. If threads use different locks, or some use a lock often and others seldom, a
//! common demand is too pessimistic for larger machines: a thread that seldom wants a saturated
//! lock is not delayed as much. So threads with the same name that use the same locks are one kind,
//! a class of customers of [`holdup_model::Mix`].

use super::{Subject, lost};
use holdup_attribution::Attribution;
use holdup_model::{Class, Load, Mix};
use holdup_passes::{Slot, role};
use holdup_trace::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// With more kinds than this, each thread is probably a kind of its own, which tells nothing.
const MOST_KINDS: usize = 8;
/// Locks that are held less than this fraction of the most held one do not define a kind.
const NOTABLE: f64 = 0.1;

/// Threads that use the same locks.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// The common beginning of their names.
    pub comm: String,
    /// Number of threads.
    pub threads: u32,
    /// Fraction of its time that one of them would hold each station if it were alone, D.
    pub demands: Vec<f64>,
}

/// A lock with its users.
pub(super) struct Used {
    /// The lock.
    pub(super) subject: Subject,
    /// Every user, and how long it held the lock and waited for it, as far as known.
    pub(super) users: BTreeMap<Slot, Use>,
}

/// How one thread used a lock.
#[derive(Clone, Copy, Default)]
pub(super) struct Use {
    pub(super) held_ns: Nanos,
    pub(super) waited_ns: Nanos,
}

/// The model's result for a number of customers.
#[derive(Clone, Copy)]
pub(super) struct Predicted {
    pub(super) load: Load,
    /// Fraction of the time that the busiest lock is held.
    pub(super) busiest: f64,
}

/// The threads `users` of `locks`, as kinds. Empty if they are all alike, or if each is a kind of
/// its own. Also empty if there are more of them than CPUs and they sleep: then a waiter leaves its
/// CPU to another, and the model of classes has no CPUs.
pub(super) fn kinds(
    judged: &Attribution<'_>,
    all: &Subject,
    locks: &[Used],
    users: &BTreeSet<Slot>,
) -> Vec<Kind> {
    let threads = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let Some(seen) = all.seen else { return Vec::new() };
    let known = locks.iter().all(|l| !l.subject.stations.is_empty());
    if !known || all.threads != Some(threads(users.len())) {
        return Vec::new();
    }
    if !all.spins && users.len() > seen.cpus as usize {
        return Vec::new();
    }
    let most = locks.iter().map(|l| time_held(&l.subject)).fold(0.0, f64::max);
    let notable = |l: &&Used| time_held(&l.subject) >= most * NOTABLE;
    let mut groups: BTreeMap<(String, Vec<bool>), Vec<Slot>> = BTreeMap::new();
    for &slot in users {
        let uses = locks.iter().filter(|l| notable(l)).map(|l| l.users.contains_key(&slot));
        let comm = judged.analysis.comm(judged.analysis.thread(slot));
        let role = String::from_utf8_lossy(role(comm.as_bytes())).into_owned();
        groups.entry((role, uses.collect())).or_default().push(slot);
    }
    if !(2..=MOST_KINDS).contains(&groups.len()) {
        return Vec::new();
    }
    // Spinning threads share a CPU equally.
    let each = f64::from(seen.cpus.min(threads(users.len()))) / users.len() as f64;
    let kind = |(key, slots): ((String, Vec<bool>), Vec<Slot>)| {
        let waits: f64 = locks.iter().map(|l| lost(&l.subject) * l.part_of_waits(&slots)).sum();
        let effective = slots.len() as f64 * each - waits;
        let demand = |l: &Used| time_held(&l.subject) * l.part_of_holds(&slots) / effective;
        let mut demands: Vec<f64> = locks.iter().map(demand).collect();
        let sum: f64 = demands.iter().sum();
        if sum > 1.0 {
            demands.iter_mut().for_each(|d| *d /= sum);
        }
        let fits = effective > 0.0;
        fits.then(|| Kind { comm: key.0, threads: threads(slots.len()), demands })
    };
    groups.into_iter().map(kind).collect::<Option<_>>().unwrap_or_default()
}

/// Fraction of the time that a lock is held, by its demand.
fn time_held(subject: &Subject) -> f64 {
    let Some(seen) = subject.seen else { return 0.0 };
    subject.demand().unwrap_or(0.0) * seen.effective(subject.threads_on(seen.cpus))
}

impl Used {
    /// The fraction of the waiting that these threads did; if unknown, by their number.
    fn part_of_waits(&self, slots: &[Slot]) -> f64 {
        self.part(slots, |u| u.waited_ns)
    }

    /// The fraction of the holds that these threads had; if unknown, by their number.
    fn part_of_holds(&self, slots: &[Slot]) -> f64 {
        self.part(slots, |u| u.held_ns)
    }

    fn part(&self, slots: &[Slot], of: impl Fn(&Use) -> Nanos) -> f64 {
        let theirs = || slots.iter().filter_map(|slot| self.users.get(slot));
        let all: Nanos = self.users.values().map(&of).sum();
        if all == 0 {
            return theirs().count() as f64 / self.users.len().max(1) as f64;
        }
        theirs().map(of).sum::<Nanos>() as f64 / all as f64
    }
}

/// The model's result for `customers` of these kinds, in the proportions that were seen.
pub(super) fn predicted(kinds: &[Kind], cpus: u32, customers: u32) -> Option<Predicted> {
    let numbers = shares(&kinds.iter().map(|k| k.threads).collect::<Vec<_>>(), customers);
    let class = |(kind, customers): (&Kind, u32)| {
        let think = (1.0 - kind.demands.iter().sum::<f64>()).max(0.0);
        Class { customers, think, demands: kind.demands.clone() }
    };
    let mix = Mix { classes: kinds.iter().zip(numbers).map(class).collect() };
    let served = mix.solve()?;
    let sum = |of: &dyn Fn(usize) -> f64| (0..kinds.len()).map(of).sum::<f64>();
    let held = |k: usize| sum(&|c| served[c].throughput * kinds[c].demands[k]);
    let effective = sum(&|c| served[c].effective);
    let stations = kinds.first()?.demands.len();
    let holding = (0..stations).map(held).sum::<f64>();
    let load = Load {
        cpus,
        threads: customers,
        throughput: sum(&|c| served[c].throughput),
        executing: (effective - holding).max(0.0),
        ready: 0.0,
        waiting: (f64::from(customers) - effective).max(0.0),
        holding,
    };
    Some(Predicted { load, busiest: (0..stations).map(held).fold(0.0, f64::max) })
}

/// `all` divided in proportion to `parts`, in whole numbers whose sum is `all`.
fn shares(parts: &[u32], all: u32) -> Vec<u32> {
    let sum: u64 = parts.iter().map(|&n| u64::from(n)).sum::<u64>().max(1);
    // Rounding errors are carried on to the next.
    let mut before = 0;
    let ends = parts.iter().scan(0, |end, &n| {
        *end += u64::from(n);
        Some((*end * u64::from(all) * 2 + sum) / (sum * 2))
    });
    ends.map(|end| {
        let share = end - before;
        before = end;
        share as u32
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(threads: u32, demands: &[f64]) -> Kind {
        Kind { comm: "work".to_owned(), threads, demands: demands.to_vec() }
    }

    #[test]
    fn shares_add_up() {
        assert_eq!(shares(&[4, 4], 16), [8, 8]);
        assert_eq!(shares(&[1, 3], 2), [1, 1]);
        assert_eq!(shares(&[1, 1, 1], 8), [3, 2, 3]);
        assert_eq!(shares(&[u32::MAX, 1], 8192), [8192, 0]);
        for all in 0..50 {
            assert_eq!(shares(&[3, 5, 7, 1], all).iter().sum::<u32>(), all);
        }
    }

    /// Two pools with locks of their own lose what each loses alone.
    #[test]
    fn pools_with_locks_of_their_own_do_not_meet() {
        let both = [kind(4, &[0.5, 0.0]), kind(4, &[0.0, 0.1])];
        let found = predicted(&both, 8, 8).unwrap();
        let alone = |demand| predicted(&[kind(4, &[demand])], 4, 4).unwrap().load;
        let sum = alone(0.5).effective_cpus() + alone(0.1).effective_cpus();
        assert!((found.load.effective_cpus() - sum).abs() < 1e-9, "{:?} {sum}", found.load);
        assert!((found.busiest - alone(0.5).holding).abs() < 1e-9);
    }
}

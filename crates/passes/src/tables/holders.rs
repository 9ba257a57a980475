//! Why holders were slow, as rows: what they did while others waited, each part with its share.
//!
//! This is the one place where the times of holders are added up. Tables, culprits, exports and the
//! page print what stands here.

use crate::analysis::Analysis;
use crate::past::{HolderDid, HolderPart};
use crate::rounding::percent;
use crate::waits::Object;
use holdup_trace::Nanos;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// One activity of the holders of an object while other threads waited for the object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HolderTime {
    /// Activity of the holders: `user`, `preempted`, `disk` …; docs/waits.md lists all.
    pub did: &'static str,
    /// Activity of the holders, in words.
    pub title: &'static str,
    /// The system call in which the holders did this; `null` outside of calls.
    pub call: Option<String>,
    /// Time for which the holders did this.
    pub ns: u64,
    /// Part of all time in which holders had the object while other threads waited, in per cent.
    pub pct: f64,
    /// The objects that the holders slept for, longest first; empty if they ran or were ready.
    pub objects: Vec<HolderObject>,
    /// The functions that ran while the holders were in their own code, by samples. Empty if no
    /// samples were recorded.
    pub functions: Vec<HolderFunction>,
    /// They ran, and so did what the lock is for.
    #[serde(skip)]
    pub runs: bool,
}

/// An object that holders slept for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HolderObject {
    /// Name of the object.
    pub object: String,
    /// Time for which the holders slept for the object.
    pub ns: u64,
}

/// A function that holders of an object ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HolderFunction {
    /// Name of the function.
    pub function: String,
    /// Source line of the function, or else the file that contains it.
    pub at: Option<String>,
    /// Number of samples in the function.
    pub samples: u64,
    /// Part of the samples of the holders' own code, in per cent.
    pub pct: f64,
}

impl HolderTime {
    /// `waiting for a disk (fsync)`: the activity in words, for sentences.
    pub fn phrase(&self) -> String {
        match &self.call {
            Some(call) => format!("{} ({call})", self.title),
            None => self.title.to_owned(),
        }
    }

    /// Whether the row is about this activity.
    fn is(&self, part: HolderPart) -> bool {
        self.did == part.id()
    }
}

impl Analysis {
    /// What holders did, one row for each activity and system call, longest first.
    pub fn holder_times(
        &self,
        did: impl IntoIterator<Item = (HolderDid, Nanos)>,
    ) -> Vec<HolderTime> {
        let mut sums: BTreeMap<(HolderPart, Option<u32>), BTreeMap<Option<Object>, Nanos>> =
            BTreeMap::new();
        for (HolderDid { part, call, object }, ns) in did {
            let object = object.filter(|&object| object != Object::OTHER);
            *sums.entry((part, call)).or_default().entry(object).or_default() += ns;
        }
        let time = |((part, call), by): ((HolderPart, Option<u32>), BTreeMap<_, Nanos>)| {
            let named = by.iter().filter_map(|(&object, &ns)| {
                Some(HolderObject { object: self.object_name(object?), ns })
            });
            HolderTime {
                did: part.id(),
                title: part.title(),
                call: call.map(|nr| self.call_name(nr)),
                ns: by.values().sum(),
                objects: named.collect(),
                runs: !part.is_asleep() && !part.is_without_cpu(),
                ..HolderTime::default()
            }
        };
        let mut times: Vec<HolderTime> = sums.into_iter().map(time).collect();
        arrange(&mut times);
        times
    }
}

/// Add the times of `b` to those of `a`.
pub fn add_holder_times(a: &mut Vec<HolderTime>, b: Vec<HolderTime>) {
    for time in b {
        match a.iter_mut().find(|t| (t.did, &t.call) == (time.did, &time.call)) {
            Some(t) => {
                t.ns += time.ns;
                for more in time.objects {
                    match t.objects.iter_mut().find(|o| o.object == more.object) {
                        Some(o) => o.ns += more.ns,
                        None => t.objects.push(more),
                    }
                }
            }
            None => a.push(time),
        }
    }
    arrange(a);
}

/// Sorts longest first, and computes the percentages.
fn arrange(times: &mut [HolderTime]) {
    let all: Nanos = times.iter().map(|t| t.ns).sum();
    for time in times.iter_mut() {
        time.pct = percent(time.ns, all);
        time.objects.sort_by_key(|o| Reverse(o.ns));
    }
    times.sort_by_key(|t| Reverse(t.ns));
}

/// Adds the functions that holders ran in their own code.
pub fn tell_functions(times: &mut [HolderTime], functions: &[HolderFunction]) {
    for time in times.iter_mut().filter(|t| t.is(HolderPart::User)) {
        time.functions = functions.to_vec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(did: &'static str, call: Option<&str>, ns: u64, objects: &[(&str, u64)]) -> HolderTime {
        let objects =
            objects.iter().map(|&(o, ns)| HolderObject { object: o.to_owned(), ns }).collect();
        HolderTime { did, call: call.map(str::to_owned), ns, objects, ..HolderTime::default() }
    }

    #[test]
    fn times_of_two_objects_add_up_and_their_shares_are_of_all() {
        let mut a = vec![time("user", None, 300, &[]), time("disk", Some("fsync"), 100, &[])];
        let b = vec![
            time("disk", Some("fsync"), 500, &[("b", 200), ("c", 300)]),
            time("disk", Some("read"), 100, &[("b", 100)]),
        ];
        add_holder_times(&mut a, b);
        let found: Vec<_> = a.iter().map(|t| (t.did, t.call.as_deref(), t.ns, t.pct)).collect();
        let expected = [
            ("disk", Some("fsync"), 600, 60.0),
            ("user", None, 300, 30.0),
            ("disk", Some("read"), 100, 10.0),
        ];
        assert_eq!(found, expected);
        assert_eq!(a[0].objects[0], HolderObject { object: "c".to_owned(), ns: 300 });
    }

    #[test]
    fn functions_are_told_of_their_own_code_alone() {
        let mut times = vec![time("user", None, 3, &[]), time("kernel", Some("read"), 1, &[])];
        let function = HolderFunction { function: "refill".to_owned(), ..Default::default() };
        tell_functions(&mut times, std::slice::from_ref(&function));
        assert_eq!(times[0].functions, [function]);
        assert_eq!(times[1].functions, []);
    }
}

//! The wait graph: threads as nodes, waits as edges, cycles, and the root causes.

use crate::Attribution;
use crate::leaf::Leaf;
use holdup_passes::{Object, Slot, WaitSum, percent};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A thread that waits for another thread, or that another thread waits for.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Node {
    /// Id of the thread.
    pub tid: u32,
    /// Process of the thread.
    pub pid: Option<u32>,
    /// Name of the thread.
    pub comm: String,
    /// Time for which the thread was on a CPU.
    pub running_ns: u64,
    /// Time for which the thread waited, on edges of this graph.
    pub waiting_ns: u64,
    /// Number of the wait cycle that the thread is in, counted from 1; `null` if it is in none.
    pub cycle: Option<u32>,
}

/// Waits of one thread for one object, ended by one other thread.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Edge {
    /// Thread that waited.
    pub waiter: u32,
    /// The thread that ended the wait; `null` if no thread did (a device, an interrupt, the end of
    /// the trace).
    pub waker: Option<u32>,
    /// Kind of the object that the thread waited for.
    pub kind: &'static str,
    /// What a futex is used for.
    pub usage: Option<&'static str>,
    /// The object that the thread waited for.
    pub object: String,
    /// Number of waits.
    pub waits: u64,
    /// Time asleep in these waits.
    pub wait_ns: u64,
}

/// The end of a chain of waits: what the first thread of the chain waited for.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Root {
    /// Cause of the wait: the last part of the path of a leaf of the ledger.
    pub cause: &'static str,
    /// Kind of the object that was waited for.
    pub kind: &'static str,
    /// The object that was waited for.
    pub object: String,
    /// Idle CPU time that this object caused.
    pub idle_blamed_ns: u64,
    /// Part of all idle CPU time, in per cent.
    pub pct_idle_blamed: f64,
}

/// The blocking graph: which threads wait for which threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Graph {
    /// Threads, ordered by id.
    pub nodes: Vec<Node>,
    /// Waits of one thread for another, longest first; idle waits (timers, input) are left out.
    pub edges: Vec<Edge>,
    /// Groups of threads that wait for each other in a cycle (strongly connected by edges that have
    /// at least one per cent of the waiter's waiting time). The group with the most waiting time
    /// comes first.
    pub cycles: Vec<Vec<u32>>,
    /// Ends of wait chains, the most idle CPU time first.
    pub roots: Vec<Root>,
}

/// An edge with less than this part of its waiter's time does not close a cycle, in per cent.
pub const CYCLE_PCT: u64 = 1;

impl Attribution<'_> {
    /// The wait graph; needs [`holdup_passes::Detail::Edges`].
    pub fn graph(&self) -> Graph {
        let a = self.analysis;
        let names = self.object_names();
        let mut edges: BTreeMap<(Slot, Option<Slot>, Object), WaitSum> = BTreeMap::new();
        let mut waiting: BTreeMap<Slot, u64> = BTreeMap::new();
        for (key, sum) in a.edges() {
            if key.cause.is_idle() || !a.wanted(a.thread(key.waiter)) {
                continue;
            }
            edges.entry((key.waiter, key.waker, a.final_object(key.object))).or_default().add(sum);
            *waiting.entry(key.waiter).or_default() += sum.wait_ns;
        }
        let slots: BTreeSet<Slot> = edges.keys().flat_map(|e| [Some(e.0), e.1]).flatten().collect();
        let order: Vec<Slot> = slots.into_iter().collect();
        let place: BTreeMap<Slot, usize> = order.iter().enumerate().map(|(i, &s)| (s, i)).collect();
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); order.len()];
        for (&(waiter, waker, _), sum) in &edges {
            let enough =
                sum.wait_ns * 100 >= waiting.get(&waiter).copied().unwrap_or(0) * CYCLE_PCT;
            if let Some(w) = waker.filter(|&w| enough && w != waiter) {
                next[place[&waiter]].push(place[&w]);
            }
        }
        let time = |s: Slot| waiting.get(&s).copied().unwrap_or(0);
        let mut cycles: Vec<Vec<Slot>> = components(&next)
            .into_iter()
            .filter(|c| c.len() > 1)
            .map(|c| c.into_iter().map(|i| order[i]).collect())
            .collect();
        cycles.sort_by_key(|k: &Vec<Slot>| {
            (std::cmp::Reverse(k.iter().map(|&s| time(s)).sum::<u64>()), k.first().copied())
        });
        let cycle_of: BTreeMap<Slot, u32> = cycles
            .iter()
            .enumerate()
            .flat_map(|(i, k)| k.iter().map(move |&s| (s, i as u32 + 1)))
            .collect();
        let tid = |s: Slot| a.thread(s).tid.0;
        let mut list: Vec<Edge> = edges
            .iter()
            .map(|(&(waiter, waker, object), sum)| {
                let (kind, usage, label) =
                    names.get(&object).cloned().unwrap_or(("other", None, String::new()));
                Edge {
                    waiter: tid(waiter),
                    waker: waker.map(tid),
                    kind,
                    usage,
                    object: label,
                    waits: sum.waits,
                    wait_ns: sum.wait_ns,
                }
            })
            .collect();
        list.sort_by(|a, b| {
            (b.wait_ns, a.waiter, a.waker, &a.object)
                .cmp(&(a.wait_ns, b.waiter, b.waker, &b.object))
        });
        let mut nodes: Vec<Node> = order
            .iter()
            .map(|&s| {
                let t = a.thread(s);
                Node {
                    tid: t.tid.0,
                    pid: a.pid(t),
                    comm: a.comm(t),
                    running_ns: t.running_ns,
                    waiting_ns: time(s),
                    cycle: cycle_of.get(&s).copied(),
                }
            })
            .collect();
        nodes.sort_by(|a, b| (a.tid, &a.comm).cmp(&(b.tid, &b.comm)));
        let idle = a.idle_ns();
        let mut roots: BTreeMap<(Leaf, Object), WaitSum> = BTreeMap::new();
        // As in the tables, waits of threads that had no work are left out: the ledger may count
        // their idle time as serial.
        for w in self.waits.iter().filter(|w| w.leaf != Leaf::NoWork) {
            roots.entry((w.leaf, w.row.object)).or_default().add(&w.row.sum);
        }
        let mut roots: Vec<Root> = roots
            .into_iter()
            .filter(|(_, sum)| sum.share_ns() > 0)
            .map(|((leaf, object), sum)| {
                let (kind, _, label) =
                    names.get(&object).cloned().unwrap_or(("other", None, String::new()));
                let ns = sum.share_ns();
                Root {
                    cause: leaf.name(),
                    kind,
                    object: label,
                    idle_blamed_ns: ns,
                    pct_idle_blamed: percent(ns, idle),
                }
            })
            .collect();
        roots.sort_by(|a, b| {
            (b.idle_blamed_ns, a.cause, &a.object).cmp(&(a.idle_blamed_ns, b.cause, &b.object))
        });
        Graph {
            nodes,
            edges: list,
            cycles: cycles.into_iter().map(|k| k.into_iter().map(tid).collect()).collect(),
            roots,
        }
    }
}

/// Strongly connected components of the graph with these successors of each node (Tarjan), without
/// recursion; each ascending.
pub fn components(next: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let n = next.len();
    let (mut number, mut low, mut on_stack) = (vec![NEW; n], vec![0; n], vec![false; n]);
    let (mut stack, mut out, mut count) = (Vec::new(), Vec::new(), 0);
    for root in 0..n {
        if number[root] != NEW {
            continue;
        }
        let mut work = vec![(root, 0)];
        while let Some(&mut (v, ref mut at)) = work.last_mut() {
            if *at == 0 {
                (number[v], low[v]) = (count, count);
                count += 1;
                stack.push(v);
                on_stack[v] = true;
            }
            if let Some(&w) = next[v].get(*at) {
                *at += 1;
                if number[w] == NEW {
                    work.push((w, 0));
                } else if on_stack[w] {
                    low[v] = low[v].min(number[w]);
                }
                continue;
            }
            work.pop();
            if let Some(&(parent, _)) = work.last() {
                low[parent] = low[parent].min(low[v]);
            }
            if low[v] == number[v] {
                let mut component = Vec::new();
                while let Some(w) = stack.pop() {
                    on_stack[w] = false;
                    component.push(w);
                    if w == v {
                        break;
                    }
                }
                component.sort_unstable();
                out.push(component);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::components;

    #[test]
    fn cycles_are_the_circles() {
        // 0 -> 1 -> 2 -> 0, 3 -> 0, 4 <-> 5, 6 alone
        let next = [vec![1], vec![2], vec![0], vec![0], vec![5], vec![4], vec![]];
        let mut c = components(&next);
        c.sort();
        assert_eq!(c, [vec![0, 1, 2], vec![3], vec![4, 5], vec![6]]);
    }
}

//! The capacity ledger: CPUs x wall time, down to leaves that add up to it exactly.
//!
//! The busy side and the idle total come from the CPU accounting ([`crate::cpus`]), the division
//! of the idle total from the waits ([`crate::blame`]). `no work` is what remains of the idle
//! total, so the ledger closes by construction; that the parts never exceed the total is asserted
//! by the tests over every trace.

use crate::analysis::{Analysis, WaitRow};
use crate::blame::Cause;
use crate::rows::{Ledger, LedgerNode, percent};
use crate::threads::Slot;
use crate::waits::Object;
use holdup_syscalls::WaitKind;
use holdup_trace::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// Part of the wall time a thread must exist to be judged by its life, in per cent: recordings
/// start before the work does.
const SERVER_LIFE_PCT: u64 = 40;
/// Share of its life a thread must have been running (or ready) to count as a server that others
/// wait for because it is busy, in per cent. The server of AIX case 4 ran 95 % of one CPU, one on a
/// machine that was taken away from it now and then 65 %; a lock's holder among N equal workers
/// runs about 100/N %, and ends no more waits than the others.
const SERVER_BUSY_PCT: u64 = 60;
/// Share of all waiting time it must have ended, in per cent. Servers of the labelled corpus end
/// 98 % and more; two workers that hand a turn to each other end half each, up to two thirds.
const SERVER_WAKES_PCT: u64 = 80;
/// Share of the waiting time at barriers that one thread must have ended to be named, in per cent.
const LAST_PCT: u64 = 60;

/// A thread whose time on a CPU, or ready for one, others wait for through pipes and sockets for no
/// longer than this part of it, in per cent: one partner waits while the other works. The two have
/// one CPU's worth of work, and nobody stands in line, if nobody else uses the same pipe or socket.
/// Where n threads share k tokens it is (n - k) / k.
const PARTNER_PCT: u64 = 125;

/// Whom threads wait for.
pub(crate) struct Awaited {
    server: Option<Server>,
    partners: BTreeSet<Slot>,
    between_two: BTreeSet<Object>,
}

impl WaitRow {
    /// A wait for what another thread sends: through a pipe or socket.
    fn is_stream(&self) -> bool {
        let kind = self.call.as_deref().map(holdup_syscalls::wait_kind);
        self.cause == Cause::KernelService
            && matches!(kind, Some(WaitKind::ReadWrite | WaitKind::Socket))
    }
}

/// The thread everybody waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Server {
    /// Who.
    pub slot: Slot,
    /// Its time running or ready to run.
    pub busy_ns: Nanos,
    /// Time it existed.
    pub life_ns: Nanos,
    /// Waiting time of others that it ended.
    pub ended_wait_ns: Nanos,
    /// All such waiting time.
    pub all_wait_ns: Nanos,
}

impl Analysis {
    /// The one thread that is busy nearly all the time and that most of the waiting is for; or the
    /// one that the others most often find missing at a barrier.
    pub fn server(&self) -> Option<Server> {
        self.server_of(&self.wait_rows())
    }

    fn server_of(&self, rows: &[WaitRow]) -> Option<Server> {
        let mut ended: BTreeMap<Slot, Nanos> = BTreeMap::new();
        let mut last: BTreeMap<Slot, Nanos> = BTreeMap::new();
        let (mut all, mut at_barriers) = (0, 0);
        for r in rows {
            if matches!(r.cause, Cause::ThreadSync | Cause::KernelService) {
                let barrier = self.is_barrier(r.object);
                all += r.sum.wait_ns;
                at_barriers += if barrier { r.sum.wait_ns } else { 0 };
                // A thread of the kernel is a driver's; that is another matter.
                if let Some(w) = r.waker.filter(|&w| !self.thread(w).is_kthread()) {
                    *ended.entry(w).or_default() += r.sum.wait_ns;
                    if barrier {
                        *last.entry(w).or_default() += r.sum.wait_ns;
                    }
                }
            }
        }
        let most = |by: &BTreeMap<Slot, Nanos>| {
            by.iter().max_by_key(|&(&s, &ns)| (ns, std::cmp::Reverse(s))).map(|(&s, &ns)| (s, ns))
        };
        let server = |(slot, most): (Slot, Nanos), all: Nanos| {
            let t = self.thread(slot);
            let busy = t.running_ns + t.woken_ns + t.preempted_ns;
            Server {
                slot,
                busy_ns: busy,
                life_ns: self.life_ns(t),
                ended_wait_ns: most,
                all_wait_ns: all,
            }
        };
        let lives_long = |s: &Server| {
            s.life_ns as u128 * 100 >= self.wall_ns() as u128 * SERVER_LIFE_PCT as u128
        };
        let ends = |s: &Server, pct: u64| {
            s.ended_wait_ns as u128 * 100 >= s.all_wait_ns as u128 * pct as u128
        };
        let busy =
            |s: &Server| s.busy_ns as u128 * 100 >= s.life_ns as u128 * SERVER_BUSY_PCT as u128;
        most(&ended)
            .map(|m| server(m, all))
            .filter(|s| lives_long(s) && busy(s) && ends(s, SERVER_WAKES_PCT))
            .or_else(|| {
                most(&last)
                    .map(|m| server(m, at_barriers))
                    .filter(|s| lives_long(s) && ends(s, LAST_PCT) && at_barriers * 2 > all)
            })
    }

    /// Whom threads wait for, over all waits.
    pub(crate) fn awaited(&self, rows: &[WaitRow]) -> Awaited {
        let mut streams: BTreeMap<Slot, Nanos> = BTreeMap::new();
        for r in rows {
            if let (true, Some(w)) = (r.is_stream(), r.waker) {
                *streams.entry(w).or_default() += r.sum.wait_ns;
            }
        }
        let alone = |&(w, wait): &(Slot, Nanos)| {
            let t = self.thread(w);
            let busy = t.running_ns + t.woken_ns + t.preempted_ns;
            wait as u128 * 100 <= busy as u128 * PARTNER_PCT as u128
        };
        Awaited {
            server: self.server_of(rows),
            between_two: self.between_two(),
            partners: streams.into_iter().filter(alone).map(|s| s.0).collect(),
        }
    }

    /// The leaf of the ledger that a wait's share belongs to.
    pub(crate) fn leaf(&self, r: &WaitRow, awaited: &Awaited) -> &'static str {
        let turns = matches!(r.cause, Cause::ThreadSync | Cause::KernelService);
        // At a barrier everybody waits for the one who comes last.
        let one = turns
            && (awaited.server.is_some_and(|s| r.waker == Some(s.slot))
                || self.is_barrier(r.object));
        if one {
            "one-server"
        } else if r.is_stream()
            && r.waker.is_some_and(|w| awaited.partners.contains(&w))
            && awaited.between_two.contains(&self.engine.waits.find(r.object))
        {
            "no-work"
        } else {
            r.cause.path()
        }
    }

    /// Where every CPU-second went.
    pub fn ledger(&self) -> Ledger {
        let rows = self.cpu_rows();
        let sum = |f: &dyn Fn(&crate::rows::CpuRow) -> u64| rows.iter().map(f).sum::<u64>();
        let user = sum(&|r| r.user_ns);
        let kernel = sum(&|r| r.kernel_ns.unwrap_or(0));
        let kthreads = sum(&|r| r.kthread_ns);
        let irq = sum(&|r| r.irq_ns.unwrap_or(0));
        let softirq = sum(&|r| r.softirq_ns.unwrap_or(0));
        let idle = sum(&|r| r.idle_ns);
        let unaccounted = sum(&|r| r.unaccounted_ns);
        let capacity = self.capacity_ns();

        let mut shares: BTreeMap<&'static str, u128> = BTreeMap::new();
        let waits = self.wait_rows();
        let awaited = self.awaited(&waits);
        for r in &waits {
            *shares.entry(self.leaf(r, &awaited)).or_default() += r.sum.share;
        }
        let share = |path: &str| (shares.get(path).copied().unwrap_or(0) >> 32) as u64;
        // The waits' shares and the CPUs' idle time are measured by different machines; where
        // events were lost they may differ, and the CPUs are right.
        let mut left = idle;
        let mut take = |ns: u64| {
            let ns = ns.min(left);
            left -= ns;
            ns
        };
        let parts = [
            ("idle/thread-sync", take(share("thread-sync"))),
            ("idle/kernel-services", take(share("kernel-services"))),
            ("idle/kernel-locks", take(share("kernel-locks"))),
            ("idle/one-server", take(share("one-server"))),
            ("idle/io", take(share("io"))),
            ("idle/scheduler", take(self.scheduler_idle_ns())),
        ];
        let mut nodes = Vec::new();
        let mut node = |path: &str, ns: u64| {
            nodes.push(LedgerNode { path: path.to_owned(), ns, pct: percent(ns, capacity) })
        };
        node("busy", user + kernel + kthreads + irq + softirq);
        node("busy/user", user);
        node("busy/kernel", kernel);
        if self.capabilities.contention && self.capabilities.syscalls {
            // A CPU row without system calls has no kernel time, so neither has its part.
            let spin = self.lock_spin_ns().min(kernel);
            node("busy/kernel/lock-spin", spin);
            node("busy/kernel/other", kernel - spin);
        }
        node("busy/kthreads", kthreads);
        node("busy/irq", irq);
        node("busy/softirq", softirq);
        node("idle", idle);
        for (path, ns) in parts {
            node(path, ns);
        }
        node("idle/no-work", left);
        node("unaccounted", unaccounted);
        Ledger { capacity_ns: capacity, nodes }
    }
}

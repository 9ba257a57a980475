//! Kernel locks on traces built by hand.

use holdup_attribution::{Attribution, Leaf, Total, WaitsBy, analyze};
use holdup_passes::{
    Analysis, Cause, Detail, Filter, LockBy, LockKind, LockRow, LockSource, Options, Selection,
};
use holdup_testkit::{MemTrace, TraceBuilder};
use holdup_trace::{QualityCode, SymbolTable};
use std::sync::Arc;

const SPIN: u32 = 1;
const READ: u32 = 2;
const WRITE: u32 = 4;
const MUTEX: u32 = 32;

const A: u64 = 0xffff_8880_0000_1000;
const B: u64 = 0xffff_8880_0000_2000;

fn run(trace: &MemTrace) -> Analysis {
    run_with(trace, &Options::default())
}

fn run_with(trace: &MemTrace, options: &Options) -> Analysis {
    let a = analyze(trace, options).unwrap();
    let ledger = Attribution::from(&a).ledger;
    assert_eq!(ledger.leaves().map(|l| l.1).sum::<u64>(), ledger.capacity_ns);
    a
}

fn by_address(a: &Analysis, address: u64) -> LockRow {
    a.locks(LockBy::Lock).into_iter().find(|r| r.address == Some(Some(address))).unwrap()
}

/// A mutex: spins, sleeps, is ready and waits for a CPU, spins again; one wait.
fn contended_mutex() -> TraceBuilder {
    TraceBuilder::new(1)
        .switch(100, 0, 0, 42, "R")
        .sys_enter(110, 0, 42, 1)
        .contention_begin(120, 0, 42, A, SPIN | MUTEX)
        .contention_begin(150, 0, 42, A, MUTEX)
        .switch(160, 0, 42, 43, "D")
        .wakeup(200, 0, 43, 42)
        .switch(230, 0, 43, 42, "R")
        .contention_begin(232, 0, 42, A, SPIN | MUTEX)
        .contention_end(240, 0, 42, A)
        .sys_exit(250, 0, 42, 1, 0)
        .switch(300, 0, 42, 0, "S")
}

#[test]
fn a_mutex_that_spins_and_sleeps_is_one_wait_split_by_what_the_thread_did() {
    let a = run(&contended_mutex().build());
    let r = by_address(&a, A);
    assert_eq!((r.contended, r.open, r.wait_total_ns), (Some(1), Some(0), Some(120)));
    assert_eq!((r.spin_ns, r.runnable_ns, r.block_ns), (Some(50), Some(30), Some(40)));
    assert_eq!((r.slept, r.slept_wait_ns), (Some(1), Some(120)));
    assert_eq!(
        (r.wait_min_ns, r.wait_avg_ns, r.wait_max_ns, r.wait_p99_ns),
        (Some(120), Some(120), Some(120), Some(120))
    );
    assert_eq!((r.first_ns, r.last_ns), (Some(120), Some(120)));
    assert_eq!(
        (r.lock_type, r.acquired, r.hold_total_ns),
        (Some(Some("mutex".into())), None, None)
    );
    // The time on a CPU is in the ledger, as part of kernel.
    let ledger = Attribution::from(&a).ledger;
    assert_eq!(
        (ledger.total(Total::Kernel), ledger.ns(Leaf::LockSpin), ledger.ns(Leaf::KernelOther)),
        (70, 50, 20)
    );
}

#[test]
fn without_switches_spinning_and_sleeping_are_not_told_apart() {
    let a = run(&TraceBuilder::new(1)
        .contention_begin(10, 0, 42, A, WRITE)
        .contention_end(30, 0, 42, A)
        .build());
    let r = by_address(&a, A);
    assert_eq!((r.wait_total_ns, r.spin_ns, r.block_ns, r.slept), (Some(20), None, None, None));
    assert!(Attribution::from(&a).ledger.get(Leaf::LockSpin).is_none());
}

#[test]
fn waits_nest_by_lock() {
    // The spinlock inside the mutex, waited for while waiting for the mutex.
    let a = run(&TraceBuilder::new(1)
        .switch(0, 0, 0, 42, "R")
        .contention_begin(10, 0, 42, A, MUTEX)
        .contention_begin(20, 0, 42, B, SPIN)
        .contention_end(25, 0, 42, B)
        .contention_end(40, 0, 42, A)
        .build());
    assert_eq!(by_address(&a, A).wait_total_ns, Some(30));
    assert_eq!(by_address(&a, B).wait_total_ns, Some(5));
    let types: Vec<_> = a
        .locks(LockBy::Type)
        .into_iter()
        .map(|r| (r.lock_type.unwrap().unwrap(), r.wait_total_ns.unwrap()))
        .collect();
    assert_eq!(types, [("spinlock".to_owned(), 5), ("mutex".to_owned(), 30)]);
}

#[test]
fn the_idle_tasks_of_two_cpus_are_two_waiters_in_one_row() {
    let a = run(&TraceBuilder::new(2)
        .contention_begin(10, 0, 0, A, SPIN)
        .contention_begin(12, 1, 0, A, SPIN)
        .contention_end(20, 0, 0, A)
        .contention_end(32, 1, 0, A)
        .build());
    let rows = a.locks(LockBy::Task);
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].tid, rows[0].comm.as_deref(), rows[0].contended, rows[0].wait_total_ns),
        (Some(Some(0)), Some("swapper"), Some(2), Some(30))
    );
    assert_eq!(by_address(&a, A).max_waiters, Some(2));
}

#[test]
fn open_waits_and_lost_ends_are_counted_apart() {
    let a = run(&TraceBuilder::new(2)
        .switch(0, 0, 0, 42, "R")
        .switch(0, 1, 0, 43, "R")
        .sys_enter(5, 0, 42, 1)
        .contention_begin(10, 0, 42, A, WRITE)
        // Its end is lost: the call returns.
        .sys_exit(50, 0, 42, 1, 0)
        .contention_end(60, 0, 42, A)
        .contention_begin(70, 1, 43, A, READ)
        .switch(100, 0, 42, 0, "S")
        .build());
    let r = by_address(&a, A);
    assert_eq!(
        (r.contended, r.wait_total_ns, r.open, r.open_ns),
        (Some(2), Some(0), Some(1), Some(30))
    );
    assert_eq!(r.lock_type, Some(Some("rwsem".into())));
    assert_eq!(r.wait_min_ns, None);
    assert_eq!(a.quality.count(QualityCode::UnmatchedContention), 1);
}

#[test]
fn a_window_counts_a_wait_from_its_start() {
    let options =
        Options::from(Selection { from: Some(130), to: Some(170), ..Selection::default() });
    let a = run_with(&contended_mutex().build(), &options);
    let r = by_address(&a, A);
    assert_eq!(
        (r.contended, r.open, r.open_ns, r.wait_total_ns),
        (Some(1), Some(1), Some(40), Some(0))
    );
    assert_eq!(Attribution::from(&a).ledger.ns(Leaf::LockSpin), 30);
}

#[test]
fn sleeping_while_waiting_for_a_lock_is_blamed_on_kernel_locks() {
    let a = run(&TraceBuilder::new(1)
        .switch(0, 0, 0, 42, "R")
        .sys_enter(5, 0, 42, 0)
        .contention_begin(10, 0, 42, A, READ)
        .switch(20, 0, 42, 0, "D")
        .wakeup(70, 0, 0, 42)
        .switch(70, 0, 0, 42, "R")
        .contention_end(80, 0, 42, A)
        .sys_exit(90, 0, 42, 0, 0)
        .build());
    assert_eq!(
        a.wait_rows().iter().map(|r| (r.cause, r.sum.wait_ns)).collect::<Vec<_>>(),
        [(Cause::KernelLock, 50)]
    );
    assert_eq!(Attribution::from(&a).ledger.ns(Leaf::KernelLocks), 50);
}

#[test]
fn a_wait_in_a_page_fault_is_kernel_time_without_a_call() {
    let a = run(&TraceBuilder::new(1)
        .switch(0, 0, 0, 42, "R")
        .sys_enter(5, 0, 42, 0)
        .sys_exit(6, 0, 42, 0, 0)
        .contention_begin(10, 0, 42, A, READ)
        .contention_end(30, 0, 42, A)
        .switch(50, 0, 42, 0, "S")
        .build());
    let ledger = Attribution::from(&a).ledger;
    assert_eq!(
        (ledger.ns(Leaf::LockSpin), ledger.total(Total::Kernel), ledger.ns(Leaf::UserUndivided)),
        (20, 21, 29)
    );
}

#[test]
fn callers_are_the_first_frame_outside_the_locking_code() {
    let chain = [
        0xffff_ffff_81a5_6314,
        0xffff_ffff_81a5_65f0,
        0xffff_ffff_812a_d4a3,
        0xffff_ffff_81a4_3e1d,
    ];
    let trace = TraceBuilder::new(1)
        .contention_begin_from(10, 0, 42, A, WRITE, &[])
        .contention_end(12, 0, 42, A)
        .contention_begin_from(20, 0, 42, A, WRITE, &chain)
        .contention_end(30, 0, 42, A)
        .contention_begin_from(40, 0, 42, A, WRITE, &chain)
        .contention_end(45, 0, 42, A)
        .build();
    let callers = |a: &Analysis| -> Vec<(Option<String>, u64)> {
        a.locks(LockBy::Caller)
            .into_iter()
            .map(|r| (r.caller.unwrap(), r.wait_total_ns.unwrap()))
            .collect()
    };
    assert_eq!(callers(&run(&trace)), [(None, 2), (Some("0xffffffff812ad4a3".into()), 15)]);
    let symbols = SymbolTable::from_kallsyms(
        b"ffffffff812ad3f0 T vm_mmap_pgoff\nffffffff81a52350 T __sched_text_start\n\
           ffffffff81a5917a T __sched_text_end\nffff888000000ff0 D a_lock\n",
    );
    let a = run_with(&trace, &Options { symbols: Some(Arc::new(symbols)), ..Options::default() });
    assert_eq!(callers(&a), [(None, 2), (Some("vm_mmap_pgoff+0xb3".into()), 15)]);
    assert_eq!(by_address(&a, A).name, Some(Some("a_lock+0x10".into())));
}

#[test]
fn filters_choose_kinds_locks_and_threads() {
    let trace = TraceBuilder::new(1)
        .contention_begin(10, 0, 42, A, READ)
        .contention_end(11, 0, 42, A)
        .contention_begin(20, 0, 43, A, WRITE)
        .contention_end(22, 0, 43, A)
        .contention_begin(30, 0, 43, B, SPIN)
        .contention_end(34, 0, 43, B)
        .build();
    let total = |options: Options| {
        run_with(&trace, &options)
            .locks(LockBy::Type)
            .iter()
            .map(|r| r.wait_total_ns.unwrap())
            .sum::<u64>()
    };
    assert_eq!(total(Options::default()), 7);
    assert_eq!(
        total(Options::from(Filter {
            lock_kinds: LockKind::parse("rwsem").unwrap(),
            ..Filter::default()
        })),
        3
    );
    assert_eq!(
        total(Options::from(Filter {
            lock_kinds: LockKind::parse("rwsem:W").unwrap(),
            ..Filter::default()
        })),
        2
    );
    assert_eq!(total(Options::from(Filter { lock_addresses: vec![B], ..Filter::default() })), 4);
    assert_eq!(total(Options::from(Filter { tids: vec![43], ..Filter::default() })), 6);
}

const CLASS: &str = "&mm->mmap_lock";

#[test]
fn lockdep_shows_acquisitions_waits_and_holds() {
    let a = run(&TraceBuilder::new(2)
        .switch(0, 0, 0, 42, "R")
        .switch(0, 1, 0, 43, "R")
        .lock_acquire(10, 0, 42, A, CLASS, 0)
        .lock_acquired(11, 0, 42, A, CLASS)
        .lock_acquire(15, 1, 43, A, CLASS, 0)
        .lock_contended(16, 1, 43, A, CLASS)
        .switch(20, 1, 43, 0, "D")
        // The holder loses its CPU.
        .switch(30, 0, 42, 44, "R")
        .switch(50, 0, 44, 42, "S")
        .lock_release(60, 0, 42, A, CLASS)
        .wakeup(60, 0, 42, 43)
        .switch(66, 1, 0, 43, "R")
        .lock_acquired(70, 1, 43, A, CLASS)
        .lock_release(75, 1, 43, A, CLASS)
        .lock_acquire(80, 1, 43, A, CLASS, 1)
        .lock_release(83, 1, 43, A, CLASS)
        .switch(100, 0, 42, 0, "S")
        .build());
    let r = by_address(&a, A);
    assert_eq!(
        (r.name.clone(), r.acquired, r.trylocks, r.contended),
        (Some(Some(CLASS.into())), Some(3), Some(1), Some(1))
    );
    assert_eq!(
        (r.wait_total_ns, r.spin_ns, r.runnable_ns, r.block_ns),
        (Some(54), Some(8), Some(6), Some(40))
    );
    assert_eq!(
        (r.hold_total_ns, r.hold_min_ns, r.hold_avg_ns, r.hold_max_ns),
        (Some(57), Some(3), Some(19), Some(49))
    );
    assert_eq!(
        (r.preempted_holds, r.preempted_hold_ns, r.slept_holds),
        (Some(1), Some(20), Some(0))
    );
    assert_eq!(
        (r.miss_rate, r.utilization, r.block_pct, r.sleep_pct),
        (Some(0.333), Some(0.57), Some(33.333), Some(33.333))
    );
    assert_eq!((r.max_waiters, r.recursion), (Some(1), Some(1)));
}

/// 42 holds it from 11 on and 43 waits from 16; the same 100 ns later. Holders are followed from
/// their first contended hold on.
#[test]
fn lockdep_tells_what_holders_did_while_others_waited() {
    let turn = |t: TraceBuilder, at: u64| {
        t.lock_acquire(at + 10, 0, 42, A, CLASS, 0)
            .lock_acquired(at + 11, 0, 42, A, CLASS)
            .lock_acquire(at + 15, 1, 43, A, CLASS, 0)
            .lock_contended(at + 16, 1, 43, A, CLASS)
            .switch(at + 20, 1, 43, 0, "D")
            .switch(at + 30, 0, 42, 44, "R")
            .switch(at + 50, 0, 44, 42, "S")
            .lock_release(at + 60, 0, 42, A, CLASS)
            .wakeup(at + 60, 0, 42, 43)
            .switch(at + 66, 1, 0, 43, "R")
            .lock_acquired(at + 70, 1, 43, A, CLASS)
            .lock_release(at + 75, 1, 43, A, CLASS)
    };
    let base = TraceBuilder::new(2).switch(0, 0, 0, 42, "R").switch(0, 1, 0, 43, "R");
    let a = run(&turn(turn(base, 0), 100).switch(200, 0, 42, 0, "S").build());
    let did = by_address(&a, A).holders_did.unwrap();
    let found: Vec<_> = did.iter().map(|t| (t.did, t.ns, t.pct)).collect();
    assert_eq!(found, [("unknown", 44, 50.0), ("user", 24, 27.273), ("preempted", 20, 22.727)]);
    // No thread waited while 43 held it.
    assert_eq!(did.iter().map(|t| t.ns).sum::<u64>(), 2 * (60 - 16));
    assert_eq!(a.locks(LockBy::Type)[0].holders_did, None);
}

#[test]
fn lockdep_maps_without_acquired_are_held_from_acquire_and_readers_nest() {
    const RCU: &str = "rcu_read_lock";
    let a = run(&TraceBuilder::new(1)
        .switch(0, 0, 0, 42, "R")
        .lock_acquire(10, 0, 42, A, RCU, 2)
        .lock_acquire(12, 0, 42, A, RCU, 2)
        .lock_release(15, 0, 42, A, RCU)
        .lock_release(20, 0, 42, A, RCU)
        // Abandoned: waited for, never held.
        .lock_acquire(30, 0, 42, B, CLASS, 0)
        .lock_contended(31, 0, 42, B, CLASS)
        .lock_release(40, 0, 42, B, CLASS)
        .build());
    let r = by_address(&a, A);
    assert_eq!(
        (r.acquired, r.reads, r.hold_total_ns, r.recursion, r.contended),
        (Some(2), Some(2), Some(13), Some(2), Some(0))
    );
    let r = by_address(&a, B);
    assert_eq!(
        (r.acquired, r.contended, r.wait_total_ns, r.hold_total_ns),
        (Some(0), Some(1), Some(9), Some(0))
    );
}

#[test]
fn the_two_events_of_waits_alone_show_no_hold_times() {
    let mut b = TraceBuilder::new(1);
    for i in 0..100 {
        // Never released as far as the trace tells: must not fill any table.
        b = b.lock_acquired(10 + i, 0, 42, A + i * 8, CLASS);
    }
    let a =
        run(&b.lock_contended(200, 0, 42, B, CLASS).lock_acquired(250, 0, 42, B, CLASS).build());
    let r = by_address(&a, B);
    assert_eq!((r.acquired, r.contended, r.wait_total_ns), (Some(1), Some(1), Some(50)));
    assert_eq!((r.hold_total_ns, r.utilization, r.trylocks), (None, None, None));
    let class = a.locks(LockBy::Class);
    assert_eq!((class.len(), class[0].acquired, class[0].address), (1, Some(101), Some(None)));
}

#[test]
fn lockdep_names_the_locks_of_contention_events() {
    let map = A + 0x28;
    let a = run(&TraceBuilder::new(1)
        .switch(0, 0, 0, 42, "R")
        .lock_acquire(10, 0, 42, map, CLASS, 0)
        .contention_begin(11, 0, 42, A, WRITE)
        .lock_contended(12, 0, 42, map, CLASS)
        .lock_acquired(20, 0, 42, map, CLASS)
        .contention_end(21, 0, 42, A)
        .lock_release(30, 0, 42, map, CLASS)
        .build());
    let contention = a.locks_from(LockBy::Lock, LockSource::Contention);
    assert_eq!(
        (contention[0].address, contention[0].name.clone(), contention[0].wait_total_ns),
        (Some(Some(A)), Some(Some(CLASS.into())), Some(10))
    );
    let r = by_address(&a, map);
    assert_eq!((r.lock_type, r.wait_total_ns), (Some(Some("rwsem:W".into())), Some(8)));
}

/// A holds the lock; B and C wait for it in turn, and A has it again in between.
fn turns() -> TraceBuilder {
    TraceBuilder::new(3)
        .switch(100, 0, 0, 1, "R")
        .switch(100, 1, 0, 2, "R")
        .switch(100, 2, 0, 3, "R")
        .contention_begin(200, 1, 2, A, MUTEX)
        .switch(210, 1, 2, 0, "D")
        .contention_begin(300, 2, 3, A, MUTEX)
        .switch(310, 2, 3, 0, "D")
        .contended_release(400, 0, 1, A)
        .waking(401, 0, 1, 2)
        .wakeup(402, 0, 1, 2)
        .switch(410, 1, 0, 2, "R")
        .contention_end(420, 1, 2, A)
        .contended_release(700, 1, 2, A)
        // Another thread wakes on the holder's behalf.
        .waking(701, 0, 1, 3)
        .wakeup(702, 0, 1, 3)
        .switch(710, 2, 0, 3, "R")
        .contention_end(720, 2, 3, A)
        .switch(1000, 2, 3, 0, "S")
}

#[test]
fn who_releases_a_contended_lock_held_it_while_others_waited() {
    let a = run_with(&turns().build(), &Options { detail: Detail::Edges, ..Options::default() });
    let row = by_address(&a, A);
    // B waited 220 in total and C 420; for A from 200 to 400, for B from 420 to 700.
    assert_eq!(row.wait_total_ns, Some(220 + 420));
    assert_eq!(row.holders, Some(2));
    assert_eq!(row.holder, Some(Some(1)));
    assert_eq!(row.holder_ns, Some(Some(200)));
    assert_eq!(row.pct_holder, Some(Some(46.875)), "(200 + 100) of 640");
    let locks = a.lock_threads();
    let held: Vec<(u32, u64, u64)> = locks[0]
        .holders
        .iter()
        .map(|&(slot, held, waited)| (a.thread(slot).tid.0, held, waited))
        .collect();
    assert_eq!(held, [(1, 200, 300), (2, 280, 280)]);
    // Asleep: B from 210 to 402, C from 310 to 702.
    let waits = Attribution::from(&a);
    let row = &waits.waits(WaitsBy::Object)[0];
    assert_eq!(row.kind, "kernel-lock");
    let holders: Vec<(u32, u64, bool)> =
        row.holders.iter().map(|h| (h.tid, h.hold_ns, h.inferred)).collect();
    assert_eq!(holders, [(2, 280, false), (1, 190, false)]);
    let edges: Vec<(u32, Option<u32>)> =
        waits.graph().edges.iter().map(|e| (e.waiter, e.waker)).collect();
    assert_eq!(edges, [(3, Some(2)), (2, Some(1))], "by the holder, not who woke");
}

#[test]
fn without_the_event_nothing_is_said_of_holders() {
    let mut trace = contended_mutex().build();
    let row = by_address(&run(&trace), A);
    assert_eq!((row.holder, row.holders), (None, None));
    // The event was recorded, but never happened.
    trace = contended_mutex().contended_release(310, 0, 1, B).build();
    let row = by_address(&run(&trace), A);
    assert_eq!((row.holder, row.holders), (Some(None), Some(0)));
}

#[test]
fn a_window_counts_turns_from_its_start() {
    let selection = Selection { from: Some(350), ..Selection::default() };
    let a = run_with(&turns().build(), &Options { selection, ..Options::default() });
    let row = by_address(&a, A);
    // From 350 to 400 two threads wait for A; then C for B.
    assert_eq!(row.holder, Some(Some(2)));
    assert_eq!(row.holder_ns, Some(Some(280)));
    let held: Vec<u64> = a.lock_threads()[0].holders.iter().map(|h| h.2).collect();
    assert_eq!(held, [280, 100]);
}

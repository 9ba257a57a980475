//! What a recording of chosen system calls shows, and what it does not.

use holdup_attribution::{Leaf, Total, WaitsBy, analyze};
use holdup_passes::{Analysis, Group, ObjectKind, Options, Outside};
use holdup_testkit::{ChosenCalls, MemTrace, TraceBuilder};
use holdup_trace::SymbolTable;
use std::sync::Arc;

const READ: u32 = 0;
const WRITE: u32 = 1;
const GETPPID: u32 = 110;

/// Functions of the kernel, as the chain of a thread that sleeps in a read has them.
const SLEEP: u64 = 0xffff_ffff_8100_3010;
const KSYS_READ: u64 = 0xffff_ffff_8100_1010;
const ENTRY: u64 = 0xffff_ffff_8100_0010;
const RECVFROM: u64 = 0xffff_ffff_8100_4010;
const KERNEL: &[u8] = b"ffffffff81000000 T do_syscall_64\n\
    ffffffff81001000 T ksys_read\n\
    ffffffff81002000 T vfs_read\n\
    ffffffff81003000 T schedule\n\
    ffffffff81004000 T __x64_sys_recvfrom\n\
    ffffffff81005000 T _etext\n";

/// Thread 42 makes calls on CPU 0; thread 43 on CPU 1 reads what 42 writes to the pipe 7.
fn trace() -> MemTrace {
    TraceBuilder::new(2)
        .task(42, 42, Some(1), "writer")
        .task(43, 43, Some(1), "reader")
        .switch(0, 0, 0, 42, "R")
        .switch(0, 1, 0, 43, "R")
        .sys_enter(100, 0, 42, GETPPID)
        .sys_exit(300, 0, 42, GETPPID, 1)
        .sys_enter(300, 1, 43, READ)
        .leaves(400, 1, 43, &[SLEEP, KSYS_READ, ENTRY], 5)
        .switch(400, 1, 43, 0, "S")
        .sys_enter_with(500, 0, 42, WRITE, &[7, 0, 1, 0, 0, 0])
        .records("irq", "softirq_entry")
        .waking(600, 0, 42, 43)
        .wakeup(600, 0, 42, 43)
        .sys_exit(700, 0, 42, WRITE, 1)
        .switch(800, 1, 0, 43, "R")
        .sys_exit(900, 1, 43, READ, 1)
        .switch(1000, 0, 42, 0, "S")
        .switch(1000, 1, 43, 0, "S")
        .build()
}

fn with(calls: &[&str]) -> Analysis {
    let trace = trace();
    let chosen = ChosenCalls::of(&trace, calls.iter().copied()).expect("it has all calls");
    analyze(&chosen, &Options::default()).expect("readable")
}

#[test]
fn chosen_calls_are_counted_and_untraced_ones_have_no_row() {
    let a = with(&["futex", "write"]);
    let rows = a.syscalls(Group::System);
    let calls: Vec<_> = rows.iter().map(|r| (r.name.as_str(), r.count, r.total_ns)).collect();
    assert_eq!(calls, [("write", 1, 200)]);
}

#[test]
fn time_in_untraced_calls_is_not_told_from_application_code() {
    let a = with(&["futex", "write"]);
    let ledger = holdup_attribution::Attribution::from(&a).ledger;
    // 42 runs for 1000 ns, 200 of them in write; 43 for 600.
    assert_eq!(ledger.get(Leaf::ApplicationUndivided), Some(1400));
    assert_eq!((ledger.total(Total::Kernel), ledger.get(Leaf::UserUndivided)), (200, None));
    let cpus = a.cpu_rows();
    assert!(cpus.iter().all(|c| c.user_ns.is_none() && c.kernel_ns.is_none()));
    let procs = a.procs(Group::Thread);
    assert!(procs.iter().all(|p| p.app_ns.is_none() && p.kernel_ns.is_none()));
    assert_eq!(procs.iter().map(|p| p.combined_ns).sum::<u64>(), 1600);
}

#[test]
fn rates_are_known_of_calls_that_are_all_chosen() {
    let sar = with(&["futex", "semop", "semtimedop"]).sar(false).remove(0);
    assert_eq!((sar.sema_per_s, sar.scall_per_s, sar.swrit_per_s), (Some(0.0), None, None));
    assert_eq!((sar.pct_usr, sar.pct_sys), (None, None));
}

#[test]
fn a_sleep_in_a_untraced_call_is_no_page_fault_and_waits_for_what_its_waker_wrote_to() {
    let a = with(&["futex", "write"]);
    assert_eq!(a.outside(), Outside::UntracedCall);
    let objects: Vec<_> = a.objects().filter(|o| o.wait_ns > 0).collect();
    let kinds: Vec<_> = objects.iter().map(|o| o.kind).collect();
    assert_eq!(kinds, [ObjectKind::Pipe]);
    // The reader's number is unknown; the writer's number is valid for the writer only.
    assert_eq!(a.object_name(objects[0].object), "fd 7 of pid 42");
    let blind = with(&["write"]);
    assert_eq!(blind.outside(), Outside::Unknown, "it may have slept for a futex");
}

#[test]
fn a_switch_that_says_where_it_happens_names_the_untraced_call_and_its_descriptor() {
    let trace = trace();
    let chosen = ChosenCalls::of(&trace, ["futex", "write"].iter().copied()).unwrap();
    let symbols = Some(Arc::new(SymbolTable::from_kallsyms(KERNEL)));
    let a = analyze(&chosen, &Options { symbols, ..Options::default() }).expect("readable");
    let objects: Vec<_> = a.objects().filter(|o| o.wait_ns > 0).collect();
    let [pipe] = &objects[..] else { panic!("{objects:?}") };
    // The reader's own number, not the writer's; 42's write shows that it is a pipe.
    assert_eq!((pipe.kind, pipe.wait_ns), (ObjectKind::Pipe, 200));
    assert!(a.object_name(pipe.object).contains("fd 5"), "the reader's number, not the writer's");
    let calls: Vec<_> = a.syscalls(Group::System).into_iter().map(|r| r.name).collect();
    assert_eq!(calls, ["write"], "an untraced call is named, not counted");
}

/// A thread sleeps in D, in a page fault or in an untraced call other than a read: what for, and
/// the idle time for disks.
fn sleeps_in_d(innermost: &[u64]) -> (ObjectKind, String, u64) {
    let chain = [&[0xffff_ffff_8100_3010], innermost, &[ENTRY]].concat();
    let trace = TraceBuilder::new(2)
        .task(42, 42, Some(1), "worker")
        .switch(0, 0, 0, 42, "R")
        .sys_enter(10, 0, 42, WRITE)
        .sys_exit(20, 0, 42, WRITE, 1)
        .leaves(100, 0, 42, &chain, 5)
        .switch(100, 0, 42, 0, "D")
        .waking(600, 1, 0, 42)
        .wakeup(600, 1, 0, 42)
        .switch(600, 0, 0, 42, "R")
        .switch(1000, 0, 42, 0, "S")
        .build();
    let chosen = ChosenCalls::of(&trace, ["futex", "write"].iter().copied()).unwrap();
    let kernel = [KERNEL, b"ffffffff81006000 T io_schedule\nffffffff81007000 T rcu_barrier\n"];
    let symbols = Some(Arc::new(SymbolTable::from_kallsyms(&kernel.concat())));
    let a = analyze(&chosen, &Options { symbols, ..Options::default() }).expect("readable");
    let object = a.objects().find(|o| o.wait_ns > 0).expect("it slept");
    let ledger = holdup_attribution::Attribution::from(&a).ledger;
    (object.kind, a.object_name(object.object), ledger.ns(Leaf::Io))
}

#[test]
fn what_no_signal_ends_is_for_what_the_chain_says() {
    let (kind, name, for_disks) = sleeps_in_d(&[0xffff_ffff_8100_7010]);
    assert_eq!((kind, for_disks), (ObjectKind::Uninterruptible, 0));
    assert!(name.contains("in rcu_barrier+0x10"), "{name}");
    let (kind, _, for_disks) = sleeps_in_d(&[0xffff_ffff_8100_6010, 0xffff_ffff_8100_2010]);
    assert_eq!((kind, for_disks), (ObjectKind::Disk, 500));
}

const RECVFROM_CALL: (u32, &str) = (45, "socket");
const EPOLL_WAIT_CALL: (u32, &str) = (232, "epoll");

/// Thread 43 waits in `call` for what 42 sends over the loopback in an untraced call. An interrupt
/// handler ends on 42's CPU at `irq`, before the softirq that wakes 43. Returns which thread ended
/// the wait.
fn waker_over_loopback((call, kind): (u32, &str), irq: u64) -> Option<u32> {
    const NET_RX: u32 = 3;
    let sendto = 44;
    let trace = TraceBuilder::new(2)
        .task(42, 42, Some(1), "server")
        .task(43, 43, Some(1), "client")
        .switch(0, 0, 0, 42, "R")
        .switch(0, 1, 0, 43, "R")
        .sys_enter_with(100, 1, 43, call, &[5])
        .leaves(400, 1, 43, &[SLEEP, RECVFROM, ENTRY], 5)
        .switch(400, 1, 43, 0, "S")
        .irq(irq - 100, irq, 0, 42, 9)
        .sys_enter(50_000, 0, 42, sendto)
        .softirq(60_000, 62_000, 0, 42, NET_RX)
        .waking(61_000, 0, 42, 43)
        .wakeup(61_000, 0, 42, 43)
        .sys_exit(70_000, 0, 42, sendto, 1)
        .switch(71_000, 1, 0, 43, "R")
        .sys_exit(72_000, 1, 43, call, 1)
        .switch(80_000, 0, 42, 0, "S")
        .switch(80_000, 1, 43, 0, "S")
        .build();
    let chosen = ChosenCalls::of(&trace, ["futex", "epoll_wait"].iter().copied()).unwrap();
    let symbols = Some(Arc::new(SymbolTable::from_kallsyms(KERNEL)));
    let a = analyze(&chosen, &Options { symbols, ..Options::default() }).expect("readable");
    let rows = holdup_attribution::Attribution::from(&a).waits(WaitsBy::Object);
    let row = rows.iter().find(|r| r.kind == kind).expect("it receives");
    row.top_waker
}

#[test]
fn who_sends_over_the_loopback_ends_the_wait_and_a_device_does_not() {
    for call in [RECVFROM_CALL, EPOLL_WAIT_CALL] {
        assert_eq!(waker_over_loopback(call, 20_000), Some(42), "a softirq of its own");
        assert_eq!(waker_over_loopback(call, 59_500), None, "after the interrupt of a device");
    }
}

#[test]
fn threads_that_make_untraced_calls_only_are_no_kernel_threads() {
    let a = with(&["futex"]);
    assert!(a.threads().all(|(_, t)| !t.is_kthread()));
    assert_eq!(a.syscalls(Group::System), []);
}

/// Thread 43 sleeps in a poll while 42 runs, perhaps in an untraced call, and is woken.
fn polls_beside_a_running_thread(in_irq: bool) -> Analysis {
    const POLL: u32 = 7;
    let waking = if in_irq { TraceBuilder::waking_in_irq } else { TraceBuilder::waking };
    let trace = TraceBuilder::new(2)
        .task(42, 42, Some(1), "other")
        .task(43, 43, Some(1), "poller")
        .switch(0, 0, 0, 42, "R")
        .switch(0, 1, 0, 43, "R")
        .sys_enter(100, 1, 43, POLL)
        .switch(200, 1, 43, 0, "S");
    let trace = waking(trace, 600, 0, 42, 43)
        .wakeup(600, 0, 42, 43)
        .switch(700, 1, 0, 43, "R")
        .sys_exit(800, 1, 43, POLL, 0)
        .switch(900, 0, 42, 0, "S")
        .switch(900, 1, 43, 0, "S")
        .build();
    let chosen = ChosenCalls::of(&trace, ["poll"]).expect("it has all calls");
    analyze(&chosen, &Options::default()).expect("readable")
}

/// On a busy machine the timers of every program fire while some other program runs.
#[test]
fn a_timer_that_fires_on_a_thread_is_not_that_thread() {
    let wakers = |a: &Analysis| -> Vec<u32> {
        let by = a.ended_by();
        by.objects().flat_map(|(_, by)| by).map(|of| a.thread(of.0).tid.0).collect()
    };
    assert_eq!(wakers(&polls_beside_a_running_thread(false)), [42]);
    assert!(wakers(&polls_beside_a_running_thread(true)).is_empty());
}

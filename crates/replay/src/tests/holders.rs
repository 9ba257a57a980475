//! Holders that do not sleep, and that always have a CPU.

use super::{LOCK, freely, program, wall};
use crate::change::{Change, LockChange, View};
use crate::program::{ObjectId, Op, Order, Program};
use crate::simulate::simulate;
use holdup_passes::ObjectKind;

const AWAKE: Change = Change::Lock(LOCK, LockChange::Awake);
const FIRST: Change = Change::Lock(LOCK, LockChange::First);

/// Two threads contend for a lock; its holder runs for 1 ms and sleeps for 4 ms.
fn over_a_sleep() -> Program {
    let held =
        [Op::Hold(LOCK), Op::Run(1_000_000), Op::Sleep(4_000_000, ObjectId::NONE), Op::Drop(LOCK)];
    let mut p = program(2, &[held.to_vec(), held.to_vec()]);
    p.objects[0].order = Order::Taken;
    p
}

#[test]
fn who_has_the_lock_sleeps_no_more_and_who_has_none_does() {
    let p = over_a_sleep();
    assert_eq!(freely(&p, &[]).wall_ns, 10_000_000);
    assert_eq!(freely(&p, &[AWAKE]).wall_ns, 2_000_000);
    let asleep = [Op::Run(1_000_000), Op::Sleep(4_000_000, ObjectId::NONE), Op::Run(1)];
    let p = program(2, &[asleep.to_vec()]);
    assert_eq!(wall(&p, &[AWAKE]), 5_000_001);
}

#[test]
fn who_has_the_lock_waits_for_no_second_one() {
    let second = ObjectId(1);
    let has_second = vec![Op::Hold(second), Op::Run(50), Op::Drop(second)];
    let wants_both = [Op::Hold(LOCK), Op::Hold(second), Op::Run(10), Op::Drop(second)];
    let mut p = program(2, &[has_second, [&wants_both[..], &[Op::Drop(LOCK)]].concat()]);
    p.objects.push(p.objects[0].clone());
    for o in &mut p.objects {
        o.order = Order::Taken;
    }
    p.threads[0].works = false;
    assert_eq!(freely(&p, &[]).wall_ns, 10, "the work begins when it has both");
    p.threads[0].works = true;
    assert_eq!(freely(&p, &[]).wall_ns, 60);
    assert_eq!(freely(&p, &[AWAKE]).wall_ns, 50);
}

/// One CPU. The first thread holds the lock. Two that do not want it are further behind, so each
/// gets the CPU first. The last waits for the lock.
#[test]
fn who_has_the_lock_is_not_preempted() {
    let hold = vec![Op::Hold(LOCK), Op::Run(20_000_000), Op::Drop(LOCK)];
    let wants = vec![Op::Hold(LOCK), Op::Run(1), Op::Drop(LOCK), Op::Run(1)];
    let mut p = program(1, &[hold, vec![Op::Run(60_000_000)], wants]);
    p.objects[0].order = Order::Taken;
    p.slice_ns = 2_000_000;
    for t in &mut p.threads {
        t.works = t.tid != 1;
    }
    let (before, first) = (freely(&p, &[]).wall_ns, freely(&p, &[FIRST]).wall_ns);
    assert!(before > 35_000_000, "it shares its CPU: {before}");
    assert!(first < 25_000_000, "it does not: {first}");
}

#[test]
fn a_quota_keeps_who_has_the_lock_off_no_more() {
    let kept_off = Op::Sleep(50, ObjectId::QUOTA);
    let p = program(1, &[vec![Op::Hold(LOCK), Op::Run(5), kept_off, Op::Run(5), Op::Drop(LOCK)]]);
    assert_eq!(wall(&p, &[]), 60);
    assert_eq!(wall(&p, &[FIRST]), 10);
    assert_eq!(wall(&p, &[AWAKE]), 60, "that is not a sleep");
}

/// The holder asks a client that naps for 4 ms before it answers, and naps for 3 ms itself.
#[test]
fn whom_a_holder_waited_for_does_not_sleep_for_it_either() {
    let ms = |n: u64| n * 1_000_000;
    let wait = |number| Op::Wait { number, object: ObjectId::NONE, delay: 0 };
    let holder = vec![
        Op::Hold(LOCK),
        Op::Run(ms(1)),
        Op::Wake { thread: 1, number: 1 },
        wait(2),
        Op::Run(ms(1)),
        Op::Drop(LOCK),
    ];
    let nap = |n| Op::Sleep(ms(n), ObjectId::NONE);
    let client = vec![wait(1), nap(4), Op::Wake { thread: 0, number: 2 }, nap(3), Op::Run(1)];
    let mut p = program(2, &[holder, client]);
    p.times = [0, 0, 1, 1, 5, 6, 0, 1, 5, 5, 8].map(ms).to_vec();
    assert_eq!(freely(&p, &[]).wall_ns, ms(8) + 1);
    assert_eq!(freely(&p, &[AWAKE]).wall_ns, ms(4) + 1, "the nap of its own remains");
    // Another lock's holders still wait for their clients.
    p.ops[0] = Op::Hold(ObjectId(1));
    p.ops[5] = Op::Drop(ObjectId(1));
    p.objects.push(p.objects[0].clone());
    assert_eq!(freely(&p, &[AWAKE]).wall_ns, ms(8) + 1);
}

/// One CPU, which an unrelated thread wants all the time. Unchanged, each has half of it.
#[test]
fn a_holder_that_goes_first_takes_time_from_strangers_and_shares_the_rest_with_them() {
    let ms = |n: u64| n * 1_000_000;
    let worker = vec![Op::Hold(LOCK), Op::Run(ms(20)), Op::Drop(LOCK), Op::Run(ms(20))];
    let mut p = program(1, &[worker, vec![Op::Run(ms(200))]]);
    p.objects[0].order = Order::Taken;
    (p.threads[1].works, p.threads[1].is_background) = (false, true);
    let fair = |changes: &[Change]| {
        simulate(&View { fair: true, ..View::new(&p, changes).unwrap() }, 0).wall_ns
    };
    let (before, first) = (fair(&[]), fair(&[FIRST]));
    assert!((ms(76)..ms(84)).contains(&before), "{before}");
    assert!((ms(56)..ms(64)).contains(&first), "20 ms alone, then 40 for 20: {first}");
    // A prediction gains as much where the order of the trace alone changes little.
    let mut p = p;
    p.free_pct = 50.0;
    let gain = wall(&p, &[]) as f64 / wall(&p, &[FIRST]) as f64;
    let expected = before as f64 / first as f64;
    assert!((gain - expected).abs() < 0.01, "{gain} {expected}");
}

/// Java, Ruby and Ada nap at the futex at which their threads wait: a pool in Ada was 16 times as
/// fast without its lock.
#[test]
fn a_time_limit_that_expires_is_not_removed_with_the_lock() {
    let p = program(1, &[vec![Op::Run(10), Op::Sleep(90, LOCK), Op::Run(10)]]);
    let without = [Change::Lock(LOCK, LockChange::None)];
    assert_eq!((wall(&p, &[]), wall(&p, &without)), (110, 110));
    // A lock of the kernel has no limit: whoever ended that sleep was not recorded.
    let mut p = p;
    p.objects[0].kind = ObjectKind::KernelLock;
    assert_eq!(wall(&p, &without), 20);
    // The limit of threads that take turns is when they ask for the lock.
    (p.objects[0].kind, p.objects[0].in_turn) = (ObjectKind::Futex, true);
    assert_eq!(wall(&p, &without), 20);
}

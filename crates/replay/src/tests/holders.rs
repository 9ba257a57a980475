//! Holders that do not sleep, and that always have a CPU.

use super::{LOCK, freely, program, wall};
use crate::change::{Change, LockChange};
use crate::program::{ObjectId, Op, Order, Program};

const AWAKE: Change = Change::Lock(LOCK, LockChange::Awake);
const FIRST: Change = Change::Lock(LOCK, LockChange::First);

/// Two threads take turns at a lock; whoever has it runs for 1 ms and sleeps for 4 ms.
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

/// One CPU. The first thread has the lock, and two that do not want it are further behind, so each
/// gets the CPU before it; the last waits for the lock.
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
    assert_eq!(wall(&p, &[AWAKE]), 60, "that is no sleep");
}

//! What a single wait was for, and the ledger's leaf for its share of idle time.

use crate::is_recorder;
use crate::leaf::Leaf;
use crate::limits::{Check, Thresholds};
use crate::object::{JudgedObject, WaitRule};
use crate::per_object::PerObject;
use crate::server::{Around, Awaited, Server};
use holdup_passes::{
    Analysis, BlockedFor, Cause, Ended, Judge, Object, Outside, Sleep, WaitEnd, WaitRow,
};
use holdup_syscalls::WaitKind;
use std::collections::BTreeMap;

/// Judges each sleep while the pass runs.
pub const JUDGE: Judge = Judge { is_recorder, counts, cause };

/// Waits of one cause, in one call, for one object, ended by one thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// The measurements.
    pub row: WaitRow,
    /// The leaf of its share of the idle time.
    pub leaf: Leaf,
}

/// Whether idle CPUs could have ended the sleep earlier.
fn counts(sleep: &Sleep) -> bool {
    // A thread that naps between tries at a lock would get it earlier if its holder were earlier.
    if sleep.contending || sleep.retries {
        return true;
    }
    match sleep.kind {
        // What another thread of its program did the last time, it does again.
        Some(kind) if kind.is_event() => sleep.peer_before,
        Some(kind) if kind.is_benign() => false,
        Some(WaitKind::Other) => sleep.uninterruptible,
        // A pool's worker that was not woken the last time most likely waits for work again.
        Some(kind) if kind.is_library() => !sleep.join && !sleep.idle_before,
        Some(_) => true,
        None => sleep.uninterruptible || sleep.outside != Outside::NoCall,
    }
}

/// What a sleep was for, by all that is known at its end.
fn cause(end: &WaitEnd) -> Cause {
    let sleep = &end.sleep;
    let by_application = end.waker.is_some_and(|w| !w.kthread);
    if sleep.contending {
        return Cause::KernelLock;
    }
    // The kernel knows best. A sleep that it does not call I/O ends by another application thread
    // with a lock, or else by a driver, a timer or a kernel thread, however many CPUs idle.
    match sleep.blocked_for {
        Some(BlockedFor::Io) => return Cause::Io,
        Some(BlockedFor::Lock) => return Cause::KernelLock,
        Some(BlockedFor::Other) if by_application && !end.contention_recorded => {
            return Cause::KernelLock;
        }
        Some(BlockedFor::Other) => return Cause::External,
        Some(BlockedFor::Unsaid) if sleep.is_for_device() => return Cause::Io,
        Some(BlockedFor::Unsaid) if by_application && !end.contention_recorded => {
            return Cause::KernelLock;
        }
        Some(BlockedFor::Unsaid) => return Cause::Unknown,
        None => {}
    }
    // A thread that hardly ever runs does not lack CPUs: a main thread that waits for its workers,
    // a daemon's pool. But with many threads at one lock, or at each other's latches, each runs
    // only little too.
    let hardly_runs = end.activity.is_some_and(|a| a.is_rare);
    let rivals = end.lock
        || sleep.retries
        || end.between_processes
        || end.waker.and_then(|w| w.hands_over).is_some();
    if hardly_runs && !rivals && !sleep.uninterruptible {
        return Cause::External;
    }
    if sleep.kind.is_none() && sleep.outside == Outside::Unknown {
        return cause_without_calls(end);
    }
    if sleep.retries && end.waker.is_none() {
        return Cause::KernelService;
    }
    let contends = sleep.kind.is_some_and(WaitKind::is_for_contention);
    if contends && !sleep.uninterruptible {
        let nobody = match end.ended {
            // Only another thread's call ends such a wait; otherwise a timeout or a signal did.
            Ended::Woken => end.waker.is_none() && end.wakers_complete,
            // If only idle tasks' events are missing, an interrupt on an idle CPU ended it.
            Ended::Unseen => end.idle_tasks_unseen,
            // No thread ever ended such a wait: work that never came.
            Ended::Trace => !end.ended_before,
        };
        // A thread that gives up waiting for a lock after a while waits for it again.
        if nobody && !end.is_contended || sleep.join {
            return Cause::External;
        }
    }
    match sleep.kind {
        // Processes contend through shared memory; the threads of one process have private words.
        Some(kind) if kind.is_library() && end.between_processes => Cause::KernelService,
        Some(kind) if kind.is_library() => Cause::ThreadSync,
        Some(kind) if kind.is_service() => Cause::KernelService,
        // In D state a disk's completion comes from an interrupt or kernel thread, and the end of a
        // wait for a lock from another application thread. If contention is recorded, a lock would
        // have shown, so that thread did something else that this one needs: it filled a page, as
        // the server of a FUSE file system does.
        _ if sleep.uninterruptible && by_application => match end.contention_recorded {
            true => Cause::KernelService,
            false => Cause::KernelLock,
        },
        // Only one thread at a time changes the layout of an address space.
        Some(WaitKind::AddressSpace) if sleep.uninterruptible && !end.contention_recorded => {
            Cause::KernelLock
        }
        _ if sleep.is_for_device() => Cause::Io,
        // A driver's reply, the end of a grace period or an untraced call: unknown.
        _ if sleep.uninterruptible => Cause::Unknown,
        Some(kind) if kind.is_stream() && by_application => Cause::KernelService,
        // An untraced call in which it slept until another thread did something: most likely it
        // read what that thread wrote.
        None if sleep.outside == Outside::UntracedCall && by_application => Cause::KernelService,
        // A latch: a sibling wakes this thread, by a signal as the database's backends do, or by a
        // byte in its pipe.
        Some(kind) if kind.is_event() && end.waker.and_then(|w| w.hands_over).is_some() => {
            Cause::KernelService
        }
        Some(WaitKind::DiskSync) => Cause::Io,
        Some(_) => Cause::External,
        // A timeout or an interrupt ended it, which other threads could not have done earlier.
        None if sleep.outside == Outside::UntracedCall => Cause::External,
        None => Cause::Unknown,
    }
}

/// What a thread slept for, if only switches and wake-ups were recorded. Threads of one program
/// that wake each other contend for something of their own; threads of different programs use a
/// kernel service.
fn cause_without_calls(end: &WaitEnd) -> Cause {
    match end.waker.filter(|w| !w.kthread) {
        // An uninterruptible sleep alone does not show that it is for a disk.
        None if end.sleep.uninterruptible => Cause::Unknown,
        None => Cause::External,
        Some(_) if end.sleep.uninterruptible => Cause::KernelLock,
        Some(w) if w.same_program => Cause::ThreadSync,
        Some(_) => Cause::KernelService,
    }
}

/// Assign every wait to its leaf.
pub(crate) fn judge(
    analysis: &Analysis,
    rows: Vec<WaitRow>,
    server: Option<Server>,
    around: Around<'_>,
    serial: Check,
    thresholds: &Thresholds,
) -> Vec<Wait> {
    let awaited = Awaited::new(analysis, &rows, server, around, serial, thresholds);
    let mut waits: Vec<Wait> =
        rows.into_iter().map(|row| Wait { leaf: awaited.leaf(&row), row }).collect();
    one_judgement(analysis, &mut waits);
    waits
}

/// An object has one judgement: if nothing in this machine could have ended most of its waiting
/// earlier, none of its waits is harmful. Waits of unknown objects are not one object.
fn one_judgement(analysis: &Analysis, waits: &mut [Wait]) {
    let mut shares = PerObject::<(u128, u128)>::new(analysis);
    for w in &*waits {
        let (lost, all) = &mut shares[w.row.object];
        *all += w.row.sum.share;
        *lost += if w.leaf == Leaf::NoWork { 0 } else { w.row.sum.share };
    }
    for w in waits {
        let (lost, all) = shares[w.row.object];
        if lost * 2 < all && w.row.object != Object::OTHER {
            w.leaf = Leaf::NoWork;
        }
    }
}

/// Waits are idle for objects that threads mostly wait for in vain, or for threads that have waited
/// for input themselves: there is no work to hand over.
pub(crate) fn lack_work(
    objects: &BTreeMap<Object, JudgedObject>,
    analysis: &Analysis,
    waits: &mut [Wait],
) {
    let lacks_work = |o: &JudgedObject| {
        let ended_ns = o.stats.wait_ns.saturating_sub(o.stats.idle_ns);
        o.rule == WaitRule::IdleNoWork && o.stats.followed_idle_ns * 2 > ended_ns
    };
    let mut is_idle = PerObject::<bool>::new(analysis);
    for (&object, o) in objects {
        is_idle[object] = lacks_work(o);
    }
    for wait in waits.iter_mut().filter(|w| is_idle[w.row.object]) {
        wait.leaf = Leaf::NoWork;
    }
}

/// Waits that look harmful become idle if the ledger says that nothing in this machine could have
/// ended them earlier.
pub(crate) fn follow_ledger(
    objects: &mut BTreeMap<Object, JudgedObject>,
    analysis: &Analysis,
    waits: &[Wait],
) {
    let mut is_lost = PerObject::<Option<bool>>::new(analysis);
    for w in waits {
        *is_lost[w.row.object].get_or_insert(false) |= w.leaf != Leaf::NoWork;
    }
    let follows = |o: &&mut JudgedObject| is_lost[o.stats.object] == Some(false);
    for o in objects.values_mut().filter(follows).filter(|o| o.rule.is_harmful()) {
        o.rule = WaitRule::IdleNoWork;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_passes::{Activity, HandOver, Waker};

    const FUTEX: Sleep = Sleep {
        kind: Some(WaitKind::ThreadSync),
        uninterruptible: false,
        contending: false,
        join: false,
        outside: Outside::NoCall,
        idle_before: false,
        peer_before: false,
        blocked_for: None,
        retries: false,
    };

    fn ended(sleep: Sleep, waker: Option<Waker>) -> WaitEnd {
        WaitEnd {
            sleep,
            ended: Ended::Woken,
            waker,
            wakers_complete: true,
            idle_tasks_unseen: false,
            ended_before: true,
            is_contended: false,
            lock: false,
            activity: Some(Activity { is_rare: false }),
            between_processes: false,
            contention_recorded: false,
        }
    }

    const APPLICATION: Option<Waker> =
        Some(Waker { kthread: false, same_program: false, hands_over: None });

    #[test]
    fn who_ends_a_wait_decides_what_it_was_for() {
        assert_eq!(cause(&ended(FUTEX, APPLICATION)), Cause::ThreadSync);
        assert_eq!(cause(&ended(FUTEX, None)), Cause::External, "a time-out");
        let read = Sleep { kind: Some(WaitKind::ReadWrite), ..FUTEX };
        assert_eq!(cause(&ended(read, APPLICATION)), Cause::KernelService, "a pipe");
        assert_eq!(cause(&ended(read, None)), Cause::External, "a terminal");
        let disk = Sleep { uninterruptible: true, ..read };
        assert_eq!(cause(&ended(disk, None)), Cause::Io);
        assert_eq!(cause(&ended(disk, APPLICATION)), Cause::KernelLock);
        let recorded = WaitEnd { contention_recorded: true, ..ended(disk, APPLICATION) };
        assert_eq!(cause(&recorded), Cause::KernelService, "the lock would have shown");
        let contending = Sleep { contending: true, ..read };
        assert_eq!(cause(&ended(contending, None)), Cause::KernelLock);
    }

    #[test]
    fn what_the_kernel_says_goes_before_what_the_call_suggests() {
        let of = |blocked_for, kind, outside| Sleep {
            kind,
            uninterruptible: true,
            blocked_for: Some(blocked_for),
            outside,
            ..FUTEX
        };
        let unknown = (None, Outside::Unknown);
        let read = (Some(WaitKind::ReadWrite), Outside::NoCall);
        for (kind, calls) in [read, (None, Outside::NoCall), (None, Outside::UntracedCall), unknown]
        {
            for waker in [None, APPLICATION] {
                let io = of(BlockedFor::Io, kind, calls);
                assert_eq!(cause(&ended(io, waker)), Cause::Io);
                let lock = of(BlockedFor::Lock, kind, calls);
                assert_eq!(cause(&ended(lock, waker)), Cause::KernelLock);
            }
            let other = of(BlockedFor::Other, kind, calls);
            assert_eq!(cause(&ended(other, None)), Cause::External, "a driver's interrupt");
            assert_eq!(cause(&ended(other, APPLICATION)), Cause::KernelLock);
            let contention = WaitEnd { contention_recorded: true, ..ended(other, APPLICATION) };
            assert_eq!(cause(&contention), Cause::External, "the lock would have shown");
        }
    }

    #[test]
    fn an_event_that_a_sibling_hands_over_is_a_hand_over() {
        let poll = Sleep { kind: Some(WaitKind::Poll), ..FUTEX };
        let sibling = APPLICATION.map(|w| Waker { hands_over: Some(HandOver::Bytes), ..w });
        assert_eq!(cause(&ended(poll, sibling)), Cause::KernelService);
        assert_eq!(cause(&ended(poll, APPLICATION)), Cause::External, "a client's request");
        assert_eq!(cause(&ended(poll, None)), Cause::External, "the network");
        assert!(!counts(&poll) && counts(&Sleep { peer_before: true, ..poll }));
    }

    #[test]
    fn a_nap_between_two_tries_at_a_lock_is_waiting_for_it() {
        let nap = Sleep { kind: Some(WaitKind::Timer), retries: true, ..FUTEX };
        assert!(counts(&nap) && !counts(&Sleep { retries: false, ..nap }));
        assert_eq!(cause(&ended(nap, None)), Cause::KernelService);
        assert_eq!(cause(&ended(Sleep { retries: false, ..nap }, None)), Cause::External);
        let poll = Sleep { kind: Some(WaitKind::Poll), ..nap };
        assert_eq!(cause(&ended(poll, APPLICATION)), Cause::External, "a request came meanwhile");
    }

    #[test]
    fn a_futex_between_processes_is_a_service_of_the_kernel() {
        let between = WaitEnd { between_processes: true, ..ended(FUTEX, APPLICATION) };
        assert_eq!(cause(&between), Cause::KernelService);
        let idle = WaitEnd { between_processes: true, ..ended(FUTEX, None) };
        assert_eq!(cause(&idle), Cause::External, "a time-out");
    }

    #[test]
    fn a_wait_that_nobody_ever_ended_is_no_work() {
        let open = WaitEnd { ended: Ended::Trace, ended_before: false, ..ended(FUTEX, None) };
        assert_eq!(cause(&open), Cause::External);
        assert_eq!(cause(&WaitEnd { ended_before: true, ..open }), Cause::ThreadSync);
        let blind = WaitEnd { wakers_complete: false, ..ended(FUTEX, None) };
        assert_eq!(cause(&blind), Cause::ThreadSync, "who woke it is not known");
    }

    #[test]
    fn who_hardly_ever_runs_lacks_no_cpu() {
        let rare =
            WaitEnd { activity: Some(Activity { is_rare: true }), ..ended(FUTEX, APPLICATION) };
        assert_eq!(cause(&rare), Cause::External, "a main thread waits for its workers");
        let often = Some(Activity { is_rare: false });
        assert_eq!(cause(&WaitEnd { activity: often, ..rare }), Cause::ThreadSync);
        assert_eq!(cause(&WaitEnd { activity: None, ..rare }), Cause::ThreadSync, "too early");
        assert_eq!(cause(&WaitEnd { lock: true, ..rare }), Cause::ThreadSync, "one of many");
    }

    #[test]
    fn without_system_calls_the_waker_is_all_there_is() {
        let sleep = Sleep { kind: None, outside: Outside::Unknown, ..FUTEX };
        let own = APPLICATION.map(|w| Waker { same_program: true, ..w });
        assert_eq!(cause(&ended(sleep, own)), Cause::ThreadSync);
        assert_eq!(cause(&ended(sleep, APPLICATION)), Cause::KernelService);
        let kthread = APPLICATION.map(|w| Waker { kthread: true, ..w });
        assert_eq!(cause(&ended(sleep, kthread)), Cause::External);
        let disk = Sleep { uninterruptible: true, ..sleep };
        assert_eq!(cause(&ended(disk, kthread)), Cause::Unknown, "in D, and nobody knows why");
        assert_eq!(cause(&ended(disk, None)), Cause::Unknown);
    }

    #[test]
    fn the_letter_d_alone_is_no_disk() {
        let of = |kind, outside| Sleep { kind, uninterruptible: true, outside, ..FUTEX };
        let called = |kind| of(Some(kind), Outside::NoCall);
        // A netlink request that waits for a grace period, a process that ends, a driver's reply.
        for kind in [WaitKind::Socket, WaitKind::Process, WaitKind::Other, WaitKind::Timer] {
            assert_eq!(cause(&ended(called(kind), None)), Cause::Unknown, "{kind:?}");
        }
        for kind in [WaitKind::ReadWrite, WaitKind::DiskSync, WaitKind::FileSystem] {
            assert_eq!(cause(&ended(called(kind), None)), Cause::Io, "{kind:?}");
        }
        assert_eq!(cause(&ended(of(None, Outside::NoCall), None)), Cause::Io, "a page fault");
        let mapping = called(WaitKind::AddressSpace);
        assert_eq!(cause(&ended(mapping, None)), Cause::KernelLock, "mprotect, its waker unseen");
        // Some kernels never say what real-time threads slept for.
        let unsaid = |kind| Sleep { blocked_for: Some(BlockedFor::Unsaid), ..called(kind) };
        assert_eq!(cause(&ended(unsaid(WaitKind::ReadWrite), None)), Cause::Unknown);
        assert_eq!(cause(&ended(unsaid(WaitKind::DiskSync), None)), Cause::Io);
    }

    #[test]
    fn a_sleep_in_a_untraced_call_is_judged_by_who_ended_it() {
        let untraced = Sleep { kind: None, outside: Outside::UntracedCall, ..FUTEX };
        assert!(counts(&untraced));
        assert_eq!(
            cause(&ended(untraced, APPLICATION)),
            Cause::KernelService,
            "a pipe, most likely"
        );
        let own = APPLICATION.map(|w| Waker { same_program: true, ..w });
        assert_eq!(
            cause(&ended(untraced, own)),
            Cause::KernelService,
            "no futex: those are recorded"
        );
        let kthread = APPLICATION.map(|w| Waker { kthread: true, ..w });
        assert_eq!(cause(&ended(untraced, kthread)), Cause::External);
        assert_eq!(cause(&ended(untraced, None)), Cause::External, "a timer or the network");
        let disk = Sleep { uninterruptible: true, ..untraced };
        assert_eq!(cause(&ended(disk, None)), Cause::Unknown, "an untraced call, or a page fault");
        assert_eq!(cause(&ended(disk, APPLICATION)), Cause::KernelLock);
        assert_eq!(
            cause(&ended(Sleep { kind: Some(WaitKind::Timer), ..untraced }, None)),
            Cause::External
        );
    }

    #[test]
    fn benign_sleeps_take_no_share() {
        assert!(counts(&FUTEX));
        assert!(!counts(&Sleep { join: true, ..FUTEX }));
        let timer = Sleep { kind: Some(WaitKind::Timer), ..FUTEX };
        assert!(!counts(&timer) && counts(&Sleep { contending: true, ..timer }));
        // Whoever connects to a server does not contend with it.
        let accept = Sleep { kind: Some(WaitKind::Accept), ..FUTEX };
        assert!(!counts(&accept));
        assert_eq!(cause(&ended(accept, APPLICATION)), Cause::External);
        let fault = Sleep { kind: None, ..FUTEX };
        assert!(!counts(&fault) && counts(&Sleep { uninterruptible: true, ..fault }));
        assert!(counts(&Sleep { outside: Outside::Unknown, ..fault }));
    }
}

//! One line of every event in every dialect, and its expected meaning.

use crate::common::{all, spell};
use holdup_ftracetext::{TextOptions, TextTrace, UNNUMBERED_SYSCALL, open_stream};
use holdup_trace::{Batch, Cpu, Event, EventId, QualityCode, Reader, What, merge};
use std::ops::ControlFlow;
use std::path::Path;

fn trace(text: &str) -> TextTrace {
    open_stream(Path::new("-"), text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The meaning of the event `name: body` in a line of the kernel's text.
fn kernel(event: &str) -> String {
    one(&format!("              sh-196     [003] d..2.   274.804075: {event}\n"))
}

/// The meaning of `name: body` in a line of trace-cmd.
fn report(event: &str) -> String {
    one(&format!("cpus=8\n              sh-196   [003]   274.804075: {event}\n"))
}

/// The meaning of `name: body` in a line of perf script.
fn perf(event: &str) -> String {
    one(&format!("              sh   196 [003]   274.804075:      {event}\n"))
}

fn one(text: &str) -> String {
    let trace = trace(text);
    let (rows, quality) = all(&trace, &|e, batch, r| {
        assert_eq!((e.ts, e.cpu, e.tid.0), (274_804_075_000, Cpu(3), 196));
        assert_eq!(r.info().names.get(e.comm), "sh");
        Some(spell(&e.what, batch, &r.info().names))
    });
    assert_eq!(rows.len(), 1, "{text}");
    let missing = quality.count(QualityCode::MissingField);
    if missing > 0 { format!("{} missing {missing}", rows[0]) } else { rows[0].clone() }
}

#[test]
fn sched_switch() {
    let want = "Switch 1 a b 120 S 2 c==> d 98";
    assert_eq!(
        kernel(
            "sched_switch: prev_comm=a b prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=c==> \
                d next_pid=2 next_prio=98"
        ),
        want
    );
    assert_eq!(report("sched_switch:  a b:1 [120] S ==> c==> d:2 [98]"), want);
    assert_eq!(
        report(
            "sched_switch:  prev_comm=a b prev_pid=1 prev_prio=120 prev_state=1 next_comm=c==> d \
                next_pid=2 next_prio=98"
        ),
        want
    );
    assert_eq!(
        perf(
            "sched:sched_switch: prev_comm=a b prev_pid=1 prev_prio=120 prev_state=S ==> \
                next_comm=c==> d next_pid=2 next_prio=98"
        ),
        want
    );
    assert_eq!(
        report("sched_switch: a:b:1 [-1] R ==> x:y [0]:2 [0]"),
        "Switch 1 a:b -1 R 2 x:y [0] 0"
    );
    let states = [
        ("R+", "R+"),
        ("D|K", "D|K"),
        ("D|W", "D|W"),
        ("D|N", "D|N"),
        ("x", "x"),
        ("W", "W"),
        ("(S)", "S"),
        ("130", "D|K"),
        ("0x1", "S"),
        ("0x800", "?"),
        ("-1", "?"),
        ("Q", "?"),
        ("X|Z", "X|Z"),
        ("I", "I"),
        ("256", "R+"),
        ("1024", "R+"),
        ("2", "D"),
        ("0", "R"),
        ("t", "t"),
    ];
    for (text, want) in states {
        let line = format!(
            "sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state={text} ==> next_comm=b \
                next_pid=2 next_prio=120"
        );
        assert_eq!(kernel(&line), format!("Switch 1 a 120 {want} 2 b 120"), "{text}");
    }
    assert_eq!(kernel("sched_switch: prev_comm=a prev_pid=1 prev_prio=120"), "Other missing 1");
    assert_eq!(
        kernel(
            "sched_switch: prev_comm= prev_pid=1 prev_prio=1 prev_state=R ==> next_comm= \
                next_pid=2 next_prio=1"
        ),
        "Switch 1  1 R 2  1"
    );
}

#[test]
fn old_letters_of_trace_cmd() {
    let lines = "cpus=1\n      a-1  [000]  1.000000: sched_switch: a:1 [120] W ==> b:2 [120]\n\
        \x20     b-2  [000]  1.000001: sched_switch: b:2 [120] X ==> c:3 [120]\n";
    let show = |e: &Event, b: &Batch, r: &dyn Reader| Some(spell(&e.what, b, &r.info().names));
    assert_eq!(
        all(&trace(lines), &show).0,
        ["Switch 1 a 120 I 2 b 120", "Switch 2 b 120 Z 3 c 120"]
    );
    let lines = lines.replace("W ==>", "I ==>");
    assert_eq!(
        all(&trace(&lines), &show).0,
        ["Switch 1 a 120 I 2 b 120", "Switch 2 b 120 X 3 c 120"]
    );
}

#[test]
fn sched_wakeups() {
    for (event, what) in
        [("sched_waking", "Waking"), ("sched_wakeup", "Wakeup"), ("sched_wakeup_new", "WakeupNew")]
    {
        let want = format!("{what} 15 a pid=7 b 120 3");
        assert_eq!(
            kernel(&format!("{event}: comm=a pid=7 b pid=15 prio=120 target_cpu=003")),
            want
        );
        assert_eq!(
            kernel(&format!("{event}: comm=a pid=7 b pid=15 prio=120 success=1 target_cpu=003")),
            want
        );
        assert_eq!(report(&format!("{event}:  a pid=7 b:15 [120] success=1 CPU:003")), want);
        assert_eq!(
            report(&format!("{event}:  a pid=7 b:15 [120]<CANT FIND FIELD success> CPU:003")),
            want
        );
        assert_eq!(report(&format!("{event}:  a pid=7 b:15 [120] CPU:003")), want);
        assert_eq!(report(&format!("{event}:  comm=a pid=7 b pid=15 prio=120 target_cpu=3")), want);
        assert_eq!(
            perf(&format!("sched:{event}: comm=a pid=7 b pid=15 prio=120 target_cpu=003")),
            want
        );
    }
}

#[test]
fn other_sched_events() {
    assert_eq!(
        kernel("sched_migrate_task: comm=a b pid=7 prio=120 orig_cpu=1 dest_cpu=3"),
        "Migrate { tid: Tid(7), from: Cpu(1), to: Cpu(3) }"
    );
    assert_eq!(
        kernel("sched_process_fork: comm=sh pid=196 child_comm=s h child_pid=1807"),
        "Fork 196 1807 s h"
    );
    assert_eq!(
        report("sched_process_fork:  parent_comm=sh parent_pid=196 child_comm=s h child_pid=1807"),
        "Fork 196 1807 s h"
    );
    assert_eq!(
        kernel("sched_process_exec: filename=/bin/a b pid=9 old_pid=8"),
        "Exec 9 8 /bin/a b"
    );
    assert_eq!(kernel("sched_process_exit: comm=wl pid=7 prio=120 group_dead=true"), "Exit 7 wl");
    assert_eq!(
        kernel("sched_stat_runtime: comm=wl pid=7 runtime=416333 [ns] vruntime=3 [ns]"),
        "StatRuntime { tid: Tid(7), runtime: 416333 }"
    );
    for (name, kind) in
        [("wait", "Wait"), ("sleep", "Sleep"), ("iowait", "IoWait"), ("blocked", "Blocked")]
    {
        let line = format!("sched_stat_{name}: comm=a b pid=7 delay=55 [ns]");
        assert_eq!(kernel(&line), format!("StatDelay {{ kind: {kind}, tid: Tid(7), delay: 55 }}"));
    }
    assert_eq!(
        kernel(
            "cgroup_attach_task: dst_root=0 dst_id=44 dst_level=2 dst_path=/a b/c.service pid=7 \
             comm=a b"
        ),
        "AttachTask 7 0 /a b/c.service"
    );
    assert_eq!(
        kernel("sched_pi_setprio: comm=a b pid=7 oldprio=120 newprio=-1"),
        "PiSetPrio { tid: Tid(7), old: 120, new: -1 }"
    );
}

#[test]
fn raw_syscalls() {
    let want = "SysEnter 202 Some([7f00, 80, 0, ffffffffffffffff, 1, 2])";
    assert_eq!(kernel("sys_enter: NR 202 (7f00, 80, 0, ffffffffffffffff, 1, 2)"), want);
    assert_eq!(perf("raw_syscalls:sys_enter: NR 202 (7f00, 80, 0, ffffffffffffffff, 1, 2)"), want);
    let long = |n: u64| n.to_le_bytes().map(|b| format!("{b:02x}")).join(", ");
    let array = [0x7f00, 0x80, 0, u64::MAX, 1, 2].map(long).join(", ");
    assert_eq!(report(&format!("sys_enter:   id=202 args=ARRAY[{array}]")), want);
    let int = |n: u32| n.to_le_bytes().map(|b| format!("{b:02x}")).join(", ");
    let array = [0x7f00, 0x80, 0, u32::MAX, 1, 2].map(int).join(", ");
    assert_eq!(
        report(&format!("sys_enter:   id=202 args=ARRAY[{array}]")),
        want.replace("ffffffffffffffff", "ffffffff")
    );
    assert_eq!(kernel("sys_exit: NR 202 = -11"), "SysExit { nr: 202, ret: -11 }");
    assert_eq!(kernel("sys_exit: NR -1 = -4"), "SysExit { nr: 4294967295, ret: -4 }");
    assert_eq!(report("sys_exit:   id=202 ret=0"), "SysExit { nr: 202, ret: 0 }");
    assert_eq!(report("sys_exit:   id: 0xca, ret: 0"), "SysExit { nr: 202, ret: 0 }");
}

#[test]
fn named_syscalls() {
    let enter = format!("SysEnter {UNNUMBERED_SYSCALL} Some([ff, 5410, 7ffe0babe8fc, 0, 0, 0])");
    assert_eq!(kernel("sys_ioctl(fd: ff, cmd: 5410, arg: 7ffe0babe8fc)"), enter);
    assert_eq!(
        perf("syscalls:sys_enter_ioctl: fd: 0x000000ff, cmd: 0x00005410, arg: 0x7ffe0babe8fc"),
        enter
    );
    assert_eq!(
        report("sys_enter_ioctl:       fd: 0x000000ff, cmd: 0x00005410, arg: 0x7ffe0babe8fc"),
        enter
    );
    assert_eq!(
        report("sys_enter_ioctl:       __syscall_nr=16 fd=255 cmd=0x5410 arg=140729094236412"),
        enter.replace("4026531840", "16")
    );
    assert_eq!(
        kernel("sys_openat(dfd: ffffff9c, filename: 7f01 \"a, b: c\", flags: 80000)"),
        "SysEnter 4026531840 Some([ffffff9c, 7f01, 80000, 0, 0, 0])"
    );
    let exit = format!("SysExit {{ nr: {UNNUMBERED_SYSCALL}, ret: -11 }}");
    assert_eq!(kernel("sys_ioctl -> 0xfffffffffffffff5"), exit);
    assert_eq!(perf("syscalls:sys_exit_ioctl: 0xfffffffffffffff5"), exit);
    assert_eq!(
        report("sys_exit_ioctl:      __syscall_nr=16 ret=-11"),
        "SysExit { nr: 16, ret: -11 }"
    );

    // With a table the numbers are the machine's.
    let options = TextOptions {
        syscall_nr: |machine, name| {
            holdup_syscalls::entry_number(
                machine.map_or(holdup_syscalls::Arch::X86_64, holdup_syscalls::Arch::from_uname),
                name,
            )
        },
        ..TextOptions::default()
    };
    let text = "      a-1  [000] ....  1.000000: sys_newstat(filename: 1)\n\
        \x20     a-1  [000] ....  1.000001: sys_newstat -> 0x0\n\
        \x20     a-1  [000] ....  1.000002: sys_nonesuch -> 0x0\n";
    let trace = options.open_stream(Path::new("-"), text.as_bytes()).unwrap();
    let (rows, _) = all(&trace, &|e, b, r| Some(spell(&e.what, b, &r.info().names)));
    assert_eq!(rows[..2], ["SysEnter 4 Some([1, 0, 0, 0, 0, 0])", "SysExit { nr: 4, ret: 0 }"]);
    assert_eq!(trace.unnumbered_syscall(UNNUMBERED_SYSCALL), Some("nonesuch"));
    assert!(!trace.info().capabilities.syscalls.are_all(), "one call by name is not all calls");
    assert_eq!(trace.info().events[0].name, "sys_enter_newstat");
}

#[test]
fn interrupts_and_work() {
    assert_eq!(
        kernel("irq_handler_entry: irq=24 name=ehci_hcd:usb1, uhci"),
        "IrqEntry 24 ehci_hcd:usb1, uhci"
    );
    assert_eq!(kernel("irq_handler_exit: irq=24 ret=handled"), "IrqExit { irq: 24 }");
    assert_eq!(kernel("softirq_raise: vec=1 [action=TIMER]"), "SoftirqRaise { vec: 1 }");
    assert_eq!(report("softirq_entry:  vec=9"), "SoftirqEntry { vec: 9 }");
    assert_eq!(kernel("softirq_exit: vec=9 [action=RCU]"), "SoftirqExit { vec: 9 }");
    assert_eq!(kernel("local_timer_entry: vector=236"), "VectorEntry 236 local_timer");
    assert_eq!(
        perf("irq_vectors:call_function_single_exit: vector=251"),
        "VectorExit { vector: 251 }"
    );
    assert_eq!(
        kernel("page_fault_user: address=0x14b80b8 ip=0x52c436 error_code=0x7"),
        "PageFault true 14b80b8 52c436"
    );
    assert_eq!(
        kernel("page_fault_kernel: address=0x14ae690 ip=__put_user_nocheck_4 error_code=0x3"),
        "PageFault false 14ae690 0"
    );
    assert_eq!(
        kernel("cpu_idle: state=4294967295 cpu_id=3"),
        "CpuIdle { state: 4294967295, cpu: Cpu(3) }"
    );
    assert_eq!(kernel("cpu_idle: state=1 cpu_id=3"), "CpuIdle { state: 1, cpu: Cpu(3) }");
    let work = |event: &str| {
        let t = trace(&format!("      a-1  [000] ....  1.000000: {event}\n"));
        let show = |e: &Event, _: &Batch, r: &dyn Reader| match e.what {
            What::WorkQueue { work, function, name } => {
                Some(format!("queue {work:x} {function:x} {}", r.info().names.get(name)))
            }
            What::WorkStart { work, function, name } => {
                Some(format!("start {work:x} {function:x} {}", r.info().names.get(name)))
            }
            What::WorkEnd { work } => Some(format!("end {work:x}")),
            _ => None,
        };
        all(&t, &show).0.concat()
    };
    assert_eq!(
        work(
            "workqueue_queue_work: work struct=00000000189c3687 function=decade workqueue=events \
                req_cpu=6 cpu=6"
        ),
        "queue 189c3687 0 decade"
    );
    assert_eq!(
        work(
            "workqueue_queue_work:  work=0xff110000053a7a88 function=vmstat_update workqueue=loop0"
        ),
        "queue ff110000053a7a88 0 vmstat_update"
    );
    assert_eq!(
        work("workqueue_execute_start: work struct 00000000189c3687: function vmstat_update"),
        "start 189c3687 0 vmstat_update"
    );
    assert_eq!(
        work("workqueue_execute_start: work struct 0xff11: function ffffffff81234567"),
        "start ff11 ffffffff81234567 "
    );
    assert_eq!(
        work("workqueue_execute_end: work struct 00000000189c3687: function vmstat_update"),
        "end 189c3687"
    );
    assert_eq!(work("workqueue_execute_end: work struct 00000000189c3687"), "end 189c3687");
    assert_eq!(
        work("workqueue_execute_start: work=0xff (255) function=vmstat_update+0x0/0x50 (-21)"),
        "start ff 0 vmstat_update"
    );
}

#[test]
fn locks() {
    assert_eq!(
        kernel("contention_begin: 00000000f4dcb0f2 (flags=SPIN|MUTEX)"),
        "ContentionBegin f4dcb0f2 33 []"
    );
    assert_eq!(
        perf("lock:contention_begin: 0xff1100000550a8f0 (flags=WRITE|PERCPU)"),
        "ContentionBegin ff1100000550a8f0 20 []"
    );
    assert_eq!(
        report("contention_begin:      lock_addr=0xff11 flags=4"),
        "ContentionBegin ff11 4 []"
    );
    assert_eq!(
        kernel("contention_begin: 00000000f4dcb0f2 (flags=0x41)"),
        "ContentionBegin f4dcb0f2 65 []"
    );
    assert_eq!(
        kernel("contention_end: 00000000f4dcb0f2 (ret=-4)"),
        "ContentionEnd { lock: 4108103922, ret: -4 }"
    );
    assert_eq!(
        report("contention_end:        lock_addr=0xff11 ret=0"),
        "ContentionEnd { lock: 65297, ret: 0 }"
    );
    assert_eq!(
        kernel("contended_release: 00000000f4dcb0f2"),
        "ContendedRelease { lock: 4108103922 }"
    );
    assert_eq!(perf("lock:contended_release: 0xff11"), "ContendedRelease { lock: 65297 }");
    assert_eq!(
        report("contended_release:     lock_addr=0xff11"),
        "ContendedRelease { lock: 65297 }"
    );
    assert_eq!(
        kernel("lock_acquire: 00ff try read &vma->vm_lock->lock"),
        "LockAcquire ff &vma->vm_lock->lock 3"
    );
    assert_eq!(
        report("lock_acquire:   flags=2 name=rcu_read_lock lockdep_addr=0xff"),
        "LockAcquire ff rcu_read_lock 2"
    );
    assert_eq!(kernel("lock_acquired: 00ff &p->pi_lock"), "LockAcquired ff &p->pi_lock");
    assert_eq!(
        kernel("lock_contended: 00ff (work_completion)(&x)"),
        "LockContended ff (work_completion)(&x)"
    );
    assert_eq!(
        perf("lock:lock_release: 0xff &rq->__lock ffffffff810cc2ac [unknown]"),
        "LockRelease ff &rq->__lock"
    );
    assert_eq!(
        report("lock_release:   name=&rq->__lock lockdep_addr=0xff"),
        "LockRelease ff &rq->__lock"
    );
}

#[test]
fn samples_and_call_chains() {
    let text = "\
perf 83220/83220 [001] 36556.170907:          5 cycles:u: \n\
\tffffffffa4c7c5c6 native_write_msr+0x6 ([kernel.kallsyms])\n\
\t    7f81ee50c5d7 ioctl (/lib/libc.so)\n\n\
swapper     0/0     [003] 36556.170908:    1001001 cpu-clock:  ffffffffad14d115 [unknown] \
([kernel.kallsyms])\n\
wl     7/8     [003] 36556.170909: lock:contention_begin: 0xff11 (flags=SPIN)\n\
\tffffffff81000010 foo+0x10 ([kernel.kallsyms])\n\tffffffff81000100 bar ([kernel.kallsyms])\n\n\
wl     7/8     [003] 36556.170910: sched:sched_waking: comm=a pid=1 prio=120 target_cpu=000\n\
\tffffffff81000020 foo+0x20 ([kernel.kallsyms])\n\n";
    let t = trace(text);
    let (rows, quality) =
        all(&t, &|e, b, r| Some(format!("{} {}", e.pid, spell(&e.what, b, &r.info().names))));
    assert_eq!(
        rows,
        [
            "83220 Sample 5 [ffffffffa4c7c5c6, 7f81ee50c5d7]",
            "0 Sample 1001001 [ffffffffad14d115]",
            "7 ContentionBegin ff11 1 [ffffffff81000010, ffffffff81000100]",
            "7 Waking 1 a 120 0"
        ]
    );
    assert_eq!(quality.count(QualityCode::UnreadableLines), 0);
    let info = t.info();
    assert!(info.capabilities.stacks);
    assert!(!info.capabilities.counters, "a clock tells no work from stalls");
    assert!(!info.capabilities.contention, "waits that never end tell nothing");
    assert_eq!(info.symbols.lookup(0xffffffff81000010), Some(("foo", 0x10)));
    assert_eq!(info.symbols.lookup(0xffffffff81000100), Some(("bar", 0)));
    assert_eq!(info.events[0].name, "cycles:u");
}

#[test]
fn sideband_of_perf() {
    let text = "\
         swapper     0/0     [000]     0.000000: PERF_RECORD_FORK(4:5):(2:3)
            init     0/0     [000]     0.000000: PERF_RECORD_COMM: a: b:1/1
            init     0/0     [000]     0.000000: PERF_RECORD_COMM exec: sh:12/13
            init     0/0     [000]     1.000000: PERF_RECORD_EXIT(4:5):(2:3)
            init     1/1     [000]     1.000000: PERF_RECORD_MMAP2 1/1: [0x5(0x1) @ 0 08:01 1 0]: \
        r-xp /bin/init
            init     1/1     [002]     1.000000: PERF_RECORD_LOST lost 12
            init     1/1     [002]     2.000000: PERF_RECORD_SWITCH_CPU_WIDE OUT preempt  next \
        pid/tid:    14/15
            init     1/1     [002]     2.000000: PERF_RECORD_SWITCH_CPU_WIDE IN           prev \
        pid/tid:    -1/-1
            init     1/1     [002]     2.500000: sched:sched_waking: comm=a pid=1 prio=120 \
        target_cpu=000
";
    let t = trace(text);
    assert_eq!(
        (t.event_count(), t.info().events.len(), t.info().span),
        (1, 1, Some((2_500_000_000, 2_500_000_000)))
    );
    let mut rows = Vec::new();
    let quality = merge::drive(&t, 1, &mut |events: &[Event], _: &Batch| {
        rows.extend(events.iter().filter(|e| e.id == EventId::SIDEBAND).map(|e| match e.what {
            What::Comm { tid, pid, comm, exec } => {
                format!("comm {pid} {tid} {} {exec}", t.info().names.get(comm))
            }
            what => format!("{what:?}"),
        }));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(quality.count(QualityCode::LostEvents), 12);
    assert_eq!(
        rows,
        [
            "TaskNew { tid: Tid(5), pid: Pid(4), parent_tid: Tid(3), parent_pid: Pid(2) }",
            "comm 1 1 a: b false",
            "comm 12 13 sh true",
            "TaskEnd { tid: Tid(5), pid: Pid(4) }",
            "Lost { count: 12 }",
            "ContextSwitch { out: true, preempt: true, other: Tid(15) }",
            "ContextSwitch { out: false, preempt: false, other: Tid(4294967295) }",
        ]
    );
}

#[test]
fn sched_blocked_reason() {
    let cases = [
        ("pid=7 iowait=1 caller=worker_thread+0x534/0x820", "7 true 0 worker_thread+0x534"),
        ("pid=7 iowait=0 caller=foo+0x1c/0x30 [ext4] delay=77", "7 false 0 foo+0x1c"),
        ("pid=7 iowait=0 caller=decade", "7 false 0 decade"),
        ("pid=7 iowait=0 caller=ffffffc0000859bc", "7 false ffffffc0000859bc "),
        ("pid=7 caller=0xffffffc0000859bc io_wait=1", "7 true ffffffc0000859bc "),
        ("pid=7 iowait=0 caller=0x0", "7 false 0 "),
    ];
    for (text, want) in cases {
        let line = format!("sched_blocked_reason: {text}");
        assert_eq!(kernel(&line), format!("BlockedReason {want}"), "{text}");
    }
    assert_eq!(kernel("sched_blocked_reason: pid=7 caller=x"), "Other missing 1");
}

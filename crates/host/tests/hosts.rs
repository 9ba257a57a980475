//! Other hosts than this machine: folders that imitate them, and what is judged about each.

use holdup_host::tracefs::NoTracefs;
use holdup_host::{
    Attempt, BUFFER, Calls, Events, Fact, Host, Idle, Root, State, Tried, can_record, facts,
    largest_buffer, no_tracefs, refused, stopped,
};
use holdup_trace::Cpu;
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// A folder with the files of a host.
struct Fake(TempDir);

/// The effective capabilities of root, and of a user without rights.
const ALL: &str = "000001ffffffffff";
const NONE: &str = "0000000000000000";

impl Fake {
    /// A host on which everything is fine for root.
    fn new() -> Fake {
        let fake = Fake(tempfile::tempdir().unwrap());
        fake.user(0, ALL);
        fake.put(
            "/proc/self/limits",
            "Max open files  1024  4096  files\nMax locked memory  65536  65536  bytes",
        );
        for (kind, number) in [
            ("user", 4026531837u32),
            ("pid", 4026531836),
            ("cgroup", 4026531835),
            ("uts", 4026531838),
            ("ipc", 4026531839),
        ] {
            fake.namespace(kind, number);
        }
        fake.put("/proc/sys/kernel/perf_event_paranoid", "2\n");
        fake.put("/proc/sys/kernel/perf_event_mlock_kb", "516\n");
        fake.put("/proc/mounts", "t /sys/kernel/tracing tracefs rw 0 0\nc /cg cgroup2 rw 0 0\n");
        fake.put("/proc/kallsyms", "0000000000000000 A first\nffffffff81000000 T _text\n");
        fake.put("/sys/devices/system/cpu/online", "0-3\n");
        fake.put("/sys/devices/system/cpu/present", "0-3\n");
        fake.put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
        fake.put("/sys/kernel/tracing/events/sched/sched_switch/id", "372\n");
        fake.put("/sys/kernel/tracing/events/sched/sched_switch/format", "name: sched_switch\n");
        fake
    }

    fn put(&self, path: &str, text: &str) {
        let path = Root::at(self.0.path()).path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn user(&self, uid: u32, capabilities: &str) {
        let status =
            format!("Name:\tholdup\nUid:\t{uid}\t{uid}\nCapEff:\t{capabilities}\nSeccomp:\t0\n");
        self.put("/proc/self/status", &status);
    }

    fn namespace(&self, kind: &str, number: u32) {
        let path = Root::at(self.0.path()).path(format!("/proc/self/ns/{kind}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        symlink(format!("{kind}:[{number}]"), path).unwrap();
    }

    fn remove(&self, path: &str) {
        let path = Root::at(self.0.path()).path(path);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
    }

    fn look(&self) -> Host {
        Host::look(&Root::at(self.0.path()))
    }
}

/// The result of trying if everything is fine.
fn all_well() -> Tried {
    Tried {
        events: Some(Events { found: 210, missing: Vec::new(), calls: Calls::Single(97) }),
        call: Some(libc::EFAULT),
        record: Some(Ok(())),
        counters: Some(Ok(())),
        idle: Some(vec![Idle { cpu: Cpu(0), to: 20, from: 20 }]),
    }
}

/// The state of one fact.
#[track_caller]
fn state(host: &Host, tried: &Tried, name: &str) -> State {
    let facts = facts(host, tried);
    facts.into_iter().find(|f| f.name == name).unwrap_or_else(|| panic!("no {name}")).state
}

/// The obstacle that stops a recording on this host, as a message.
#[track_caller]
fn stop(host: &Host, tried: &Tried) -> String {
    stopped(&facts(host, tried)).expect("nothing stops it").to_string()
}

#[test]
fn all_is_well_for_root_of_an_ordinary_host() {
    let all = facts(&Fake::new().look(), &all_well());
    let others: Vec<&Fact> = all.iter().filter(|f| !matches!(f.state, State::Ok { .. })).collect();
    assert!(others.is_empty(), "{others:#?}");
    assert_eq!(can_record(&all), Some(true));
}

#[test]
fn every_thing_has_a_name_of_its_own_and_every_obstacle_a_way_out() {
    let fake = Fake::new();
    fake.user(1000, NONE);
    fake.put("/proc/mounts", "");
    fake.put("/proc/kallsyms", "0000000000000000 T _text\n");
    fake.put("/sys/devices/system/cpu/online", "0-2");
    fake.put("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
    fake.put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    fake.namespace("pid", 4026532177);
    let tried = Tried {
        events: Some(Events {
            found: 9000,
            missing: vec!["lock:contention_begin".into()],
            calls: Calls::OnlyAll,
        }),
        call: Some(libc::EPERM),
        counters: Some(Err(libc::EACCES)),
        idle: Some(vec![Idle { cpu: Cpu(1), to: 20, from: 0 }]),
        ..all_well()
    };
    let all = facts(&fake.look(), &tried);
    let mut names: Vec<&str> = all.iter().map(|f| f.name).collect();
    let obstacles: Vec<_> = all.iter().filter_map(|f| f.state.obstacle()).collect();
    assert!(obstacles.len() > 12, "{all:#?}");
    for obstacle in obstacles {
        assert!(!obstacle.ways_out.is_empty() && !obstacle.what.ends_with('.'), "{obstacle:?}");
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len());
}

#[test]
fn an_ordinary_user_needs_a_capability_or_the_setting() {
    let fake = Fake::new();
    fake.user(1000, NONE);
    let words = stop(&fake.look(), &all_well());
    assert!(words.starts_with("kernel.perf_event_paranoid is 2, and this process has neither"));
    assert!(words.contains("\n    sudo holdup record -- COMMAND"), "{words}");
    assert!(words.contains("sudo sysctl kernel.perf_event_paranoid=-1"), "{words}");
    fake.put("/proc/sys/kernel/perf_event_paranoid", "-1\n");
    assert!(stopped(&facts(&fake.look(), &all_well())).is_none());
    fake.put("/proc/sys/kernel/perf_event_paranoid", "0\n");
    assert!(stop(&fake.look(), &all_well()).starts_with("kernel.perf_event_paranoid is 0,"));
    // CAP_PERFMON is capability 38.
    fake.user(1000, "0000004000000000");
    assert!(stopped(&facts(&fake.look(), &all_well())).is_none());
}

#[test]
fn capabilities_in_a_user_namespace_are_none() {
    let fake = Fake::new();
    fake.namespace("user", 4026532177);
    let words = stop(&fake.look(), &all_well());
    assert!(words.contains("its own user namespace, and the capabilities"), "{words}");
    assert!(words.contains("record outside the user namespace"), "{words}");
}

#[test]
fn a_container_is_told_what_it_needs_in_the_words_of_its_tool() {
    let fake = Fake::new();
    fake.user(0, NONE);
    fake.put("/.dockerenv", "");
    // The mark of an image that is booted as a machine.
    assert!(!stop(&fake.look(), &all_well()).contains("docker"));
    fake.namespace("pid", 4026532177);
    assert!(stop(&fake.look(), &all_well()).contains("docker run --cap-add PERFMON "));
    let State::Limited(threads) = state(&fake.look(), &all_well(), "threads") else { panic!() };
    assert!(threads.what.contains("the kernel records them as thread 0"));
    fake.put("/run/.containerenv", "");
    assert!(stop(&fake.look(), &all_well()).contains("sudo podman run --cap-add PERFMON "));
    fake.put("/proc/self/environ", "A=1\0KUBERNETES_SERVICE_HOST=10.0.0.1\0");
    let words = stop(&fake.look(), &all_well());
    assert!(
        words.contains("give the pod the rights and mounts it needs: docs/recording.md"),
        "{words}"
    );
}

#[test]
fn a_seccomp_filter_is_told_from_a_lack_of_rights() {
    let fake = Fake::new();
    let tried = Tried { call: Some(libc::EPERM), ..all_well() };
    let status = format!("Uid:\t0\nCapEff:\t{ALL}\nSeccomp:\t2\n");
    fake.put("/proc/self/status", &status);
    let words = stop(&fake.look(), &tried);
    assert!(words.starts_with("a seccomp filter refuses the call perf_event_open (EPERM)"));
    assert!(words.contains("SystemCallFilter="), "{words}");
    // A filter that lets the call pass does not matter.
    assert!(stopped(&facts(&fake.look(), &all_well())).is_none());
    fake.user(0, ALL);
    assert!(stop(&fake.look(), &tried).contains("a security module"));
    let tried = Tried { call: Some(libc::ENOSYS), ..all_well() };
    assert!(stop(&fake.look(), &tried).starts_with("this kernel has no perf events"));
}

#[test]
fn tracefs_that_is_not_mounted_is_told_from_one_that_is_closed() {
    let fake = Fake::new();
    fake.put("/proc/mounts", "");
    fake.remove("/sys/kernel/tracing/events");
    let words = stop(&fake.look(), &all_well());
    assert!(words.starts_with("tracefs is not mounted"), "{words}");
    assert!(words.contains("sudo mount -t tracefs nodev /sys/kernel/tracing"), "{words}");
    let host = fake.look();
    assert_eq!(no_tracefs(&host, &NoTracefs::NotMounted).to_string(), words);
    let error = std::io::Error::from_raw_os_error(libc::EACCES);
    let path = Root::at(fake.0.path()).path("/sys/kernel/tracing");
    let words = no_tracefs(&host, &NoTracefs::Unreadable { path, error }).to_string();
    assert!(words.contains("cannot be read (EACCES); it belongs to user "), "{words}");
    assert!(words.contains("sudo mount -o remount,mode=750,gid="), "{words}");
}

#[test]
fn lockdown_stops_at_confidentiality_only() {
    let fake = Fake::new();
    let lockdown = |text| {
        fake.put("/sys/kernel/security/lockdown", text);
        state(&fake.look(), &all_well(), "lockdown")
    };
    assert!(matches!(lockdown("[none] integrity confidentiality\n"), State::Ok { .. }));
    assert!(matches!(lockdown("none [integrity] confidentiality\n"), State::Ok { .. }));
    assert!(matches!(lockdown("none integrity [confidentiality]\n"), State::Missing(_)));
    // The mode is unknown, and tracefs is not visible either.
    assert!(matches!(lockdown(""), State::Ok { .. }));
    fake.remove("/sys/kernel/tracing/events");
    assert!(matches!(lockdown(""), State::Unknown { .. }));
}

#[test]
fn what_the_kernel_lacks_is_named_with_what_it_costs() {
    let host = Fake::new().look();
    let with = |missing: &[&str], calls| {
        let missing = missing.iter().map(|m| (*m).to_owned()).collect();
        Tried { events: Some(Events { found: 20, missing, calls }), ..all_well() }
    };
    let tried = with(&["lock:contention_begin", "lock:contention_end"], Calls::OnlyAll);
    let State::Limited(points) = state(&host, &tried, "tracepoints") else { panic!() };
    assert_eq!(points.what, "this kernel lacks lock:contention_begin, lock:contention_end");
    assert!(points.costs.words().contains("waits for kernel locks"), "{points:?}");
    assert_eq!(points.ways_out[0].what, "boot Linux 5.19 or later, which has these events");
    let State::Limited(calls) = state(&host, &tried, "system-calls") else { panic!() };
    assert!(calls.costs.words().contains("raw_syscalls"));
    let tried = with(&["raw_syscalls:sys_enter"], Calls::None);
    assert!(matches!(state(&host, &tried, "system-calls"), State::Missing(_)));
    assert!(stopped(&facts(&host, &tried)).is_none());
    let words = stop(&host, &with(&["sched:sched_switch"], Calls::OnlyAll));
    assert!(words.starts_with("this kernel lacks sched:sched_switch"));
}

#[test]
fn as_many_files_as_events_and_cpus_must_be_open() {
    let fake = Fake::new();
    fake.put("/proc/self/limits", "Max open files  100  100  files\n");
    let words = stop(&fake.look(), &all_well());
    assert!(words.starts_with("this process may have 100 files open, and a recording needs 904"));
    assert!(words.contains("\n    ulimit -n 1024\n"), "{words}");
    let host = fake.look();
    // A recorder that meets it says the same.
    let met = refused(&host, &all_well(), &Attempt::Open("sched:sched_waking"), libc::EMFILE);
    assert_eq!(met.to_string(), words);
    fake.put("/proc/self/limits", "Max open files  100  904  files\n");
    assert!(matches!(state(&fake.look(), &all_well(), "open-files"), State::Ok { .. }));
    fake.put("/proc/self/limits", "Max open files  100  unlimited  files\n");
    assert!(matches!(state(&fake.look(), &all_well(), "open-files"), State::Ok { .. }));
    fake.put("/proc/self/limits", "nothing of the kind\n");
    assert!(matches!(state(&fake.look(), &all_well(), "open-files"), State::Unknown { .. }));
}

#[test]
fn buffers_are_as_large_as_locked_memory_allows() {
    let fake = Fake::new();
    assert_eq!(largest_buffer(&fake.look()), None, "root has no limit");
    fake.user(1000, "0000004000000000");
    let page = holdup_host::page_size() as u64;
    // 516 KiB and a fourth of 64 KiB for each of four CPUs, less the page of positions.
    let most = largest_buffer(&fake.look()).unwrap();
    assert_eq!(most, page << ((516 + 16) * 1024 / page - 1).ilog2());
    let State::Limited(buffers) = state(&fake.look(), &all_well(), "buffers") else { panic!() };
    assert!(buffers.what.contains("at most 512 KiB"), "{buffers:?}");
    let limits = format!("Max locked memory  {0}  {0}  bytes", 4 * (BUFFER + 2 * page));
    fake.put("/proc/self/limits", &limits);
    assert_eq!(largest_buffer(&fake.look()), Some(BUFFER));
    fake.put("/proc/self/limits", "Max locked memory  0  0  bytes");
    fake.put("/proc/sys/kernel/perf_event_mlock_kb", "0\n");
    let words = stop(&fake.look(), &all_well());
    let limits =
        "kernel.perf_event_mlock_kb and the limit of locked memory allow a buffer of at most 0 KiB";
    assert!(words.starts_with(limits), "{words}");
    let words = refused(&fake.look(), &all_well(), &Attempt::Buffer(1 << 20), libc::EPERM);
    let refused = "the kernel does not allow a buffer of 1024 KiB for each CPU (EPERM); 0 KiB are";
    assert!(words.what.starts_with(refused), "{}", words.what);
}

#[test]
fn a_mute_idle_task_is_told_from_a_busy_cpu() {
    let host = Fake::new().look();
    let idle = |seen: &[(u64, u64)]| {
        let of = |(cpu, &(to, from)): (usize, &(u64, u64))| Idle { cpu: Cpu(cpu as u16), to, from };
        let idle = Some(seen.iter().enumerate().map(of).collect());
        state(&host, &Tried { idle, ..all_well() }, "idle-events")
    };
    assert!(matches!(idle(&[(20, 19), (20, 21)]), State::Ok { .. }));
    let State::Limited(mute) = idle(&[(20, 20), (20, 0)]) else { panic!() };
    assert_eq!(
        mute.what,
        "on CPU 1, 20 switches to the idle task were recorded, and 0 switches away from it"
    );
    assert!(matches!(idle(&[(20, 20), (0, 0)]), State::Unknown { .. }));
    assert!(matches!(idle(&[]), State::Unknown { .. }));
}

#[test]
fn cpus_counters_clock_and_symbols_are_judged() {
    let fake = Fake::new();
    fake.put("/sys/devices/system/cpu/online", "0,2-3\n");
    let State::Limited(cpus) = state(&fake.look(), &all_well(), "cpus") else { panic!() };
    assert_eq!(cpus.what, "3 of 4 CPUs are online; offline: 1");
    assert!(cpus.ways_out[0].commands[0].ends_with("/sys/devices/system/cpu/cpu1/online"));
    fake.put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "acpi_pm\n");
    assert!(matches!(state(&fake.look(), &all_well(), "clock"), State::Limited(_)));
    fake.put("/proc/kallsyms", "0000000000000000 A first\n0000000000000000 T _text\n");
    assert!(matches!(state(&fake.look(), &all_well(), "symbols"), State::Limited(_)));
    let tried = Tried { counters: Some(Err(libc::ENOENT)), ..all_well() };
    let State::Missing(pmu) = state(&fake.look(), &tried, "counters") else { panic!() };
    assert!(pmu.what.contains("PMU") && stopped(&facts(&fake.look(), &tried)).is_none());
}

#[test]
fn what_the_kernel_says_no_to_is_explained() {
    let fake = Fake::new();
    let host = fake.look();
    let open = Attempt::Open("sched:sched_switch");
    let words = |error| refused(&host, &all_well(), &open, error).to_string();
    assert!(words(libc::EACCES).contains("although no setting forbids it: a security module"));
    assert!(words(libc::ENOENT).starts_with("this kernel does not offer sched:sched_switch"));
    assert!(words(libc::ENODEV).contains("CPU that is offline"));
    assert!(words(libc::ENFILE).contains("fs.file-max"));
    assert!(words(libc::EIO).contains("cannot be opened: "));
    fake.user(1000, NONE);
    let met = refused(&fake.look(), &all_well(), &open, libc::EACCES);
    assert_eq!(Some(&met), stopped(&facts(&fake.look(), &all_well())));
    // If the recording was tried, it is reported once.
    let tried = Tried { record: Some(Err((open, libc::EACCES))), ..all_well() };
    assert!(matches!(state(&fake.look(), &tried, "recording"), State::Unknown { .. }));
    assert_eq!(
        facts(&fake.look(), &tried).iter().filter(|f| f.state.obstacle() == Some(&met)).count(),
        1
    );
}

#[test]
fn a_host_that_tells_nothing_is_unknown_not_well() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::look(&Root::at(folder.path()));
    for name in ["permission", "open-files", "cpus", "threads", "symbols", "clock", "recording"] {
        let state = state(&host, &Tried::default(), name);
        assert!(matches!(state, State::Unknown { .. }), "{name}: {state:?}");
    }
    // tracefs is missing; if it is there, nothing is known before recording is tried.
    assert_eq!(can_record(&facts(&host, &Tried::default())), Some(false));
    let untried = Tried { record: None, ..all_well() };
    assert_eq!(can_record(&facts(&Fake::new().look(), &untried)), None);
    fs::create_dir_all(folder.path().join("proc/sys/kernel")).unwrap();
    let host = Host::look(&Root::at(folder.path()));
    assert!(stop(&host, &Tried::default()).starts_with("this kernel has no perf events"));
}

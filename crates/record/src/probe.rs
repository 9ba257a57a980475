//! What only trying shows about a host: whether recording works, and whether idle tasks have
//! events.
//!
//! Some kernels deliver no event of the idle task of some CPUs (`docs/accuracy.md` shows the effect
//! on figures). No file says so. So a thread is bound to each CPU and repeatedly sleeps for a
//! moment, while the switches of all CPUs are recorded: each sleep is a switch to the idle task,
//! which is an event of the thread, and a switch away from it, which is an event of the idle task.
#![allow(unsafe_code, reason = "binding a thread to a CPU is a system call")]

use crate::choice::{Calls, Choice, Wanted};
use crate::ring::{Ring, ring_size};
use crate::sys::{Attr, Event, Whom, abi};
use holdup_host::tracefs::{Tracefs, Tracepoint};
use holdup_host::{Attempt, Events, Host, Idle, Tried, empty_call};
use holdup_syscalls::Preset;
use holdup_trace::Cpu;
use holdup_tracepoint::{Field, Format};
use std::convert::Infallible;
use std::io;
use std::mem::size_of;
use std::time::Duration;

/// The event for the trial.
const SWITCH: &str = "sched:sched_switch";

/// How often a thread sleeps on each CPU in a round, and for how long.
const SLEEPS: u32 = 20;
const SLEEP: Duration = Duration::from_millis(1);

/// Maximal number of rounds until every CPU was idle often enough: others may keep CPUs busy.
const ROUNDS: u32 = 8;

/// Bytes of a ring; some thousands of switches.
const RING: usize = 256 << 10;

/// The kind of a record that is a sample (`PERF_RECORD_SAMPLE`).
const SAMPLE: u32 = 9;

/// Tries everything that the host allows. It takes some hundredths of a second.
pub fn try_out(host: &Host) -> Tried {
    let mut tried = Tried {
        call: Some(empty_call()),
        counters: Some(counters().map_err(number)),
        ..Tried::default()
    };
    let Ok(tracefs) = &host.tracefs else { return tried };
    tried.events = events(tracefs);
    let (Some(switch), Some(cpus)) = (Switch::of(tracefs), &host.kernel.online) else {
        return tried;
    };
    match watch(&switch, cpus) {
        Ok(rings) => {
            tried.record = Some(Ok(()));
            tried.idle = Some(idle(&switch, rings));
        }
        Err(refused) => tried.record = Some(Err(refused)),
    }
    tried
}

fn number(error: io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

/// The events that a recording contains by default; `None` if none can be looked up.
fn events(tracefs: &Tracefs) -> Option<Events> {
    let wanted = Wanted { preset: Preset::Full, all_syscalls: false, extra: Vec::new() };
    let choice = Choice::of(&wanted, tracefs).ok()?;
    // The numbers cannot be read.
    if choice.tracepoints.is_empty() {
        return None;
    }
    let entries = choice.tracepoints.iter().filter(|t| t.name.starts_with("sys_enter")).count();
    let calls = match choice.calls {
        Calls::Chosen => holdup_host::Calls::Single(entries),
        Calls::All | Calls::AllForLack if entries > 0 => holdup_host::Calls::OnlyAll,
        Calls::All | Calls::AllForLack | Calls::Untraced => holdup_host::Calls::None,
    };
    Some(Events { found: choice.tracepoints.len(), missing: choice.missing, calls })
}

/// Whether cycles and instructions of this process can be counted.
fn counters() -> io::Result<()> {
    for config in [abi::PERF_COUNT_HW_CPU_CYCLES, abi::PERF_COUNT_HW_INSTRUCTIONS] {
        let mut attr =
            Attr { type_: abi::PERF_TYPE_HARDWARE, config: config.into(), ..Attr::default() };
        // Counting one's own user mode needs the fewest rights.
        attr.set_exclude_kernel(1);
        attr.set_exclude_hv(1);
        attr.set_disabled(1);
        Event::open(&attr, Whom::Thread(0, None), None)?;
    }
    Ok(())
}

/// `sched:sched_switch`, and the offsets of the previous and next thread in its records.
struct Switch {
    point: Tracepoint,
    prev: Field,
    next: Field,
}

impl Switch {
    fn of(tracefs: &Tracefs) -> Option<Switch> {
        let (system, name) = SWITCH.split_once(':')?;
        let point = tracefs.tracepoint(system, name)?;
        let format = Format::parse(&tracefs.format(system, name).ok()?, system).ok()?;
        let field = |name: &str| format.fields.iter().find(|f| f.name == name && f.size == 4);
        Some(Switch { prev: field("prev_pid")?.clone(), next: field("next_pid")?.clone(), point })
    }

    /// Previous and next thread in a sample of raw data: the size of the data, and the data.
    fn threads(&self, sample: &[u8]) -> Option<(i32, i32)> {
        let data = sample.get(4..)?;
        let number = |field: &Field| {
            let bytes = data.get(field.offset as usize..)?.first_chunk::<4>()?;
            Some(i32::from_ne_bytes(*bytes))
        };
        Some((number(&self.prev)?, number(&self.next)?))
    }
}

/// A CPU whose switches are recorded, as long as this lives.
struct Watched {
    cpu: Cpu,
    ring: Ring,
    _event: Event,
}

/// Records the switches of all CPUs.
fn watch(switch: &Switch, cpus: &[Cpu]) -> Result<Vec<Watched>, (Attempt<'static>, i32)> {
    let mut attr = Attr {
        type_: abi::PERF_TYPE_TRACEPOINT,
        config: switch.point.id,
        sample_type: abi::PERF_SAMPLE_RAW.into(),
        ..Attr::default()
    };
    attr.__bindgen_anon_1.sample_period = 1;
    let watch = |&cpu: &Cpu| {
        let open = |size: usize| {
            let event = Event::open(&attr, Whom::Cpu(cpu.0.into()), None)
                .map_err(|e| (Attempt::Open(SWITCH), number(e)))?;
            let ring =
                Ring::queue(&event, size).map_err(|e| (Attempt::Buffer(size as u64), number(e)))?;
            Ok(Watched { cpu, ring, _event: event })
        };
        open(ring_size(RING)).or_else(|_| open(ring_size(0)))
    };
    cpus.iter().map(watch).collect()
}

/// Makes every CPU idle some times, and counts the events that arrive.
fn idle(switch: &Switch, mut watched: Vec<Watched>) -> Vec<Idle> {
    let mut seen: Vec<Idle> =
        watched.iter().map(|cpu| Idle { cpu: cpu.cpu, to: 0, from: 0 }).collect();
    for _ in 0..ROUNDS {
        make_idle(&watched);
        for (idle, cpu) in seen.iter_mut().zip(&mut watched) {
            let (to, from) = taken(switch, cpu);
            idle.to += to;
            idle.from += from;
        }
        if seen.iter().all(|idle| idle.tells()) {
            break;
        }
    }
    seen
}

/// Lets a thread sleep on each CPU.
fn make_idle(watched: &[Watched]) {
    std::thread::scope(|scope| {
        for cpu in watched.iter().map(|w| w.cpu) {
            // If a thread cannot be created, its CPU is not tried.
            let _ = std::thread::Builder::new().spawn_scoped(scope, move || sleep_on(cpu));
        }
    });
}

/// Sleeps on one CPU, some times; not at all if the process may not run on it.
fn sleep_on(cpu: Cpu) {
    if bind_to(cpu).is_err() {
        return;
    }
    for _ in 0..SLEEPS {
        std::thread::sleep(SLEEP);
    }
}

/// Binds this thread to one CPU.
fn bind_to(cpu: Cpu) -> io::Result<()> {
    let mut mask = [0u64; 1024];
    let (word, bit) = (usize::from(cpu.0) / 64, cpu.0 % 64);
    mask[word] |= 1 << bit;
    // SAFETY: the kernel reads as many bytes as the mask has. A CPU's number has 16 bits.
    let done =
        unsafe { libc::sched_setaffinity(0, size_of::<[u64; 1024]>(), mask.as_ptr().cast()) };
    crate::sys::done(done)
}

/// What arrived from a CPU since the last call: switches to its idle task and away from it.
fn taken(switch: &Switch, watched: &mut Watched) -> (u64, u64) {
    let mut records = Vec::new();
    let Ok(_) = watched.ring.drain(|first, second| {
        records.extend_from_slice(first);
        records.extend_from_slice(second);
        Ok::<(), Infallible>(())
    });
    count(switch, &records)
}

/// The switches to the idle task and away from it.
fn count(switch: &Switch, records: &[u8]) -> (u64, u64) {
    let (mut to, mut from) = (0, 0);
    let mut rest = records;
    // Type (4 bytes), flags (2), size with these eight bytes (2).
    while let Some(header) = rest.first_chunk::<8>() {
        let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
        let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
        let Some(record) = rest.get(8..size) else { break };
        if kind == SAMPLE
            && let Some((prev, next)) = switch.threads(record)
        {
            to += u64::from(next == 0);
            from += u64::from(prev == 0);
        }
        rest = &rest[size..];
    }
    (to, from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_host::Root;
    use holdup_needs::needs;

    #[needs(tracepoints)]
    #[test]
    fn recording_works_where_perf_can_record() {
        let host = Host::look(&Root::host());
        let tried = try_out(&host);
        assert_eq!((tried.call, tried.record), (Some(libc::EFAULT), Some(Ok(()))));
        let cpus: Vec<Cpu> = tried.idle.unwrap().iter().map(|idle| idle.cpu).collect();
        assert_eq!(Some(cpus), host.kernel.online);
        assert!(tried.events.unwrap().found > 5);
    }

    /// Two threads' numbers at offsets 4 and 8 of four bytes more.
    fn switch() -> Switch {
        let text = "name: sched_switch\nID: 3\nformat:\n\
                    \tfield:pid_t prev_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
                    \tfield:pid_t next_pid;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"";
        let fields = Format::parse(text, "sched").unwrap().fields;
        let point = Tracepoint { system: "sched".into(), name: "sched_switch".into(), id: 3 };
        Switch { point, prev: fields[0].clone(), next: fields[1].clone() }
    }

    fn record(kind: u32, prev: i32, next: i32) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(24u16.to_ne_bytes());
        bytes.extend(12u32.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(prev.to_ne_bytes());
        bytes.extend(next.to_ne_bytes());
        bytes
    }

    #[test]
    fn switches_to_and_from_the_idle_task_are_told_apart() {
        let of = |records: &[Vec<u8>]| count(&switch(), &records.concat());
        let (to, from) = (record(SAMPLE, 7, 0), record(SAMPLE, 0, 7));
        assert_eq!(of(&[to.clone(), from.clone(), to.clone(), record(SAMPLE, 7, 8)]), (2, 1));
        assert_eq!(of(&[record(2, 0, 0), to.clone()]), (1, 0), "no sample");
        assert_eq!(of(&[to.clone(), from[..20].to_vec()]), (1, 0), "cut");
        assert_eq!(of(&[to, vec![0; 64]]), (1, 0), "a record of size 0");
    }

    #[test]
    fn a_host_without_tracefs_is_tried_without_harm() {
        let folder = tempfile::tempdir().unwrap();
        let mut host = Host::look(&Root::at(folder.path()));
        assert!(host.tracefs.is_err());
        assert_eq!(try_out(&host).events, None);
        host.tracefs = Ok(Tracefs::at(folder.path()));
        let tried = try_out(&host);
        assert_eq!((tried.events, tried.record, tried.idle), (None, None, None));
    }
}

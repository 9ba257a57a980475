//! All open events of a recording: on each CPU one ring, into which its events write.

use crate::attr::Manner;
use crate::file;
use crate::ring::{Ring, ring_size};
use crate::runtimes::Probe;
use crate::sys::{Attr, Event, Whom, abi, attr_bytes};
use holdup_host::page_size;
use holdup_host::tracefs::Tracepoint;
use holdup_trace::EventKind;
use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::time::Duration;

/// perf's name of the side-band event in the file.
const SIDEBAND: &str = "dummy:HG";

/// perf's name of a timer that takes samples or has counters read.
const TIMER: &str = "cpu-clock";

/// Systems whose events a thread causes itself, so that the recorder may exclude its own. A switch
/// to the recorder ends what ran before it, and an interrupt on top of it is not its own: those
/// must be recorded.
const OWN_DOING: [&str; 3] = ["syscalls", "raw_syscalls", "lock"];

/// Which threads are recorded.
#[derive(Debug)]
pub enum Scope {
    /// All threads.
    Machine,
    /// These threads, and all threads that they create.
    Threads(Vec<u32>),
    /// The threads of a control group: its open folder.
    Cgroup(OwnedFd),
}

/// What is opened.
#[derive(Debug)]
pub struct Setup<'a> {
    /// The events.
    pub tracepoints: &'a [Tracepoint],
    /// Which threads are recorded.
    pub scope: &'a Scope,
    /// The CPUs.
    pub cpus: &'a [u32],
    /// With the call chain of each event.
    pub stacks: bool,
    /// With the place in the kernel where a thread leaves its CPU.
    pub calls: bool,
    /// With code mappings.
    pub maps: bool,
    /// Samples of running code per second and CPU.
    pub samples: Option<NonZeroU32>,
    /// Probes in runtimes.
    pub probes: &'a [Probe],
    /// The kind and size of the rings.
    pub rings: Rings,
}

/// The kind and size of the rings.
#[derive(Clone, Copy, Debug)]
pub enum Rings {
    /// Rings that are emptied as they fill.
    Emptied {
        /// Minimal bytes of each ring. Less if the user may not lock so much memory.
        size: usize,
    },
    /// Rings that keep the last records.
    Last {
        /// Total bytes of all rings. What exceeds a power of two of pages for each CPU stays
        /// unused.
        size: usize,
    },
}

/// An event as the file describes it.
#[derive(Clone, Debug)]
pub struct Described {
    /// Such as `sched:sched_switch`.
    pub name: String,
    /// How it was opened.
    pub attr: Attr,
    /// The numbers in its samples, one for each CPU (and thread).
    pub ids: Vec<u64>,
}

impl Described {
    /// The event in the form that the file writer needs.
    pub fn for_file(&self) -> file::Event {
        file::Event::new(self.name.clone(), &attr_bytes(&self.attr), self.ids.clone())
    }

    fn refused(&self, error: io::Error) -> OpenError {
        OpenError::Event { name: self.name.clone(), error }
    }
}

/// A counter that is read with the leader of its group.
#[derive(Debug)]
pub(crate) struct Led {
    /// Its name in perf.
    pub(crate) name: String,
    /// How it is opened.
    pub(crate) attr: Attr,
    /// The CPUs on which it can be opened; `None` for all.
    pub(crate) cpus: Option<Vec<u32>>,
}

/// The events of one CPU.
#[derive(Debug)]
pub struct OnCpu {
    /// Its number.
    pub cpu: u32,
    /// The records. The thread that reads them takes the lock.
    pub ring: Mutex<Ring>,
    /// The first one, the side band, owns the ring.
    events: Vec<Member>,
}

/// An event, and the index of its description.
#[derive(Debug)]
struct Member {
    event: Event,
    /// Index in [`Session::described`].
    what: usize,
}

impl OnCpu {
    /// The event that becomes readable when the ring fills.
    pub fn owner(&self) -> &Event {
        &self.events[0].event
    }

    /// Pauses and resumes writing into the ring.
    pub fn pause(&self, pause: bool) -> io::Result<()> {
        self.owner().pause_output(pause)
    }
}

/// Open events.
#[derive(Debug)]
pub struct Session {
    /// By CPU; each CPU once.
    pub cpus: Vec<OnCpu>,
    /// The descriptions, starting with the side band.
    pub described: Vec<Described>,
    /// Bytes of each ring.
    pub ring_size: usize,
    /// CPUs that were to be recorded but are offline now.
    pub gone: Vec<u32>,
    /// Index of the first probe in `described`.
    pub(crate) probes: usize,
    /// Why the kernel takes no samples of running code, if it refused them.
    pub unsampled: Option<io::Error>,
    manner: Manner,
}

/// Why events cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The kernel refuses an event.
    #[error("{name}: {error}")]
    Event {
        /// The event.
        name: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// The kernel refuses even the smallest ring.
    #[error("no memory for buffers of {size} bytes: {error}")]
    Ring {
        /// Bytes of each ring.
        size: usize,
        /// The kernel's error.
        error: io::Error,
    },
    /// No thread, or no CPU, that was to be recorded exists any more.
    #[error("none of the threads or CPUs to record exists any more")]
    Nothing,
}

impl Session {
    /// Opens all events. They do not count before [`Session::start`].
    ///
    /// # Errors
    ///
    /// The kernel's error for the first event that it refuses.
    pub fn open(setup: &Setup<'_>) -> Result<Session, OpenError> {
        let size = match setup.rings {
            Rings::Emptied { size } => ring_size(size),
            // The largest ring size that is not larger.
            Rings::Last { size } => ring_size(size / setup.cpus.len().max(1) / 2 + 1),
        };
        let mut manner = Manner {
            stacks: setup.stacks,
            calls: setup.calls,
            maps: setup.maps,
            groups: true,
            build_ids: setup.maps,
            backward: matches!(setup.rings, Rings::Last { .. }),
            inherit: matches!(setup.scope, Scope::Threads(_)),
            wake_after: wake_after(size),
        };
        let (mut size, mut samples, mut unsampled) = (size, setup.samples, None);
        loop {
            match Session::with_rings(setup, manner, (size, samples)) {
                // So much memory is not allowed (`EPERM`) or not available (`ENOMEM`).
                Err(OpenError::Ring { .. }) if size > page_size() => size /= 2,
                // All other events say enough for a recording.
                Err(OpenError::Event { name, error }) if samples.is_some() && name == TIMER => {
                    (samples, unsampled) = (None, Some(error));
                }
                // A flag that an older kernel, or one without control groups, does not know.
                Err(OpenError::Event { error, .. })
                    if (manner.build_ids || manner.groups)
                        && error.raw_os_error() == Some(libc::EINVAL) =>
                {
                    (manner.groups, manner.build_ids) = match (manner.groups, manner.build_ids) {
                        (true, true) => (true, false),
                        (true, false) => (false, setup.maps),
                        (false, _) => (false, false),
                    };
                }
                done => return done.map(|session| Session { unsampled, ..session }),
            }
            manner.wake_after = wake_after(size);
        }
    }

    fn with_rings(
        setup: &Setup<'_>,
        manner: Manner,
        (ring_size, samples): (usize, Option<NonZeroU32>),
    ) -> Result<Session, OpenError> {
        let describe = |name: String, attr| Described { name, attr, ids: Vec::new() };
        let mut described = vec![describe(SIDEBAND.to_owned(), manner.sideband())];
        for tracepoint in setup.tracepoints {
            let name = format!("{}:{}", tracepoint.system, tracepoint.name);
            described.push(describe(name, manner.tracepoint(tracepoint)));
        }
        described.extend(samples.map(|hz| describe(TIMER.to_owned(), manner.sample(hz))));
        let probes = described.len();
        let probe = |probe: &Probe| describe(probe.name.clone(), manner.probe(probe));
        described.extend(setup.probes.iter().map(probe));
        let mut session = Session {
            cpus: Vec::new(),
            described,
            ring_size,
            gone: Vec::new(),
            probes,
            unsampled: None,
            manner,
        };
        // All rings first: a smaller size can then be tried before thousands of events are opened.
        for &cpu in setup.cpus {
            session.open_ring(setup.scope, cpu)?;
        }
        if session.cpus.is_empty() {
            return Err(OpenError::Nothing);
        }
        for i in 0..session.cpus.len() {
            session.open_events(setup.scope, i)?;
        }
        // The address of a path in the recorder's memory is meaningless in the file.
        for described in &mut session.described[probes..] {
            described.attr.__bindgen_anon_3.config1 = 0;
        }
        Ok(session)
    }

    /// Opens the side band of a CPU, and maps the ring from its first event.
    fn open_ring(&mut self, scope: &Scope, cpu: u32) -> Result<(), OpenError> {
        let sideband = &mut self.described[0];
        let mut events = Vec::new();
        for whom in whom(scope, cpu) {
            match open(sideband, whom, None)? {
                Opened::Event(event) => events.push(Member { event, what: 0 }),
                Opened::ThreadGone => {}
                Opened::CpuGone => {
                    self.gone.push(cpu);
                    return Ok(());
                }
            }
        }
        let Some(Member { event: owner, .. }) = events.first() else { return Ok(()) };
        let ring = match self.manner.backward {
            true => Ring::last(owner, self.ring_size),
            false => Ring::queue(owner, self.ring_size),
        };
        let size = self.ring_size;
        let ring = Mutex::new(ring.map_err(|error| OpenError::Ring { size, error })?);
        for member in &events[1..] {
            member.event.redirect_to(owner).map_err(|e| sideband.refused(e))?;
        }
        self.cpus.push(OnCpu { cpu, ring, events });
        Ok(())
    }

    /// Opens the other events of CPU number `i` in the list, and redirects them into its ring.
    fn open_events(&mut self, scope: &Scope, i: usize) -> Result<(), OpenError> {
        let on = &mut self.cpus[i];
        for (what, described) in self.described.iter_mut().enumerate().skip(1) {
            for whom in whom(scope, on.cpu) {
                match open(described, whom, None)? {
                    Opened::Event(event) => {
                        event.redirect_to(on.owner()).map_err(|e| described.refused(e))?;
                        on.events.push(Member { event, what });
                    }
                    Opened::ThreadGone => {}
                    Opened::CpuGone => {
                        self.gone.push(on.cpu);
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether code mappings are recorded.
    pub(crate) fn maps(&self) -> bool {
        self.manner.maps
    }

    /// Whether the control groups of threads are recorded.
    pub(crate) fn groups(&self) -> bool {
        self.manner.groups
    }

    /// How its events are opened.
    pub(crate) fn manner(&self) -> &Manner {
        &self.manner
    }

    /// Opens `led` on every CPU as members of a group led by `sched_switch`. Does nothing if that
    /// event is not recorded.
    pub(crate) fn lead_by_switches(
        &mut self,
        scope: &Scope,
        led: Vec<Led>,
    ) -> Result<(), OpenError> {
        let switch = EventKind::Switch.to_string();
        let Some(leader) = self.described.iter().position(|d| d.name == switch) else {
            return Ok(());
        };
        // The single switch events are closed, and those that lead a group are opened.
        self.described[leader].ids.clear();
        for on in &mut self.cpus {
            on.events.retain(|member| member.what != leader);
        }
        self.lead(scope, leader, led)
    }

    /// Opens `led` on every CPU as members of a group led by a timer.
    pub(crate) fn lead_by_timer(
        &mut self,
        scope: &Scope,
        interval: Duration,
        led: Vec<Led>,
    ) -> Result<(), OpenError> {
        let attr = self.manner.timer(interval);
        self.described.push(Described { name: TIMER.to_owned(), attr, ids: Vec::new() });
        self.lead(scope, self.described.len() - 1, led)
    }

    /// Opens the event described at `leader`, and `led` as members of its group, on every CPU where
    /// at least one of these can be opened.
    fn lead(&mut self, scope: &Scope, leader: usize, led: Vec<Led>) -> Result<(), OpenError> {
        reads_group(&mut self.described[leader].attr);
        let first = self.described.len();
        let describe = |l: &Led| Described { name: l.name.clone(), attr: l.attr, ids: Vec::new() };
        self.described.extend(led.iter().map(describe));
        for on in &mut self.cpus {
            let is_here = |l: &Led| l.cpus.as_ref().is_none_or(|cpus| cpus.contains(&on.cpu));
            let here = || (first..).zip(&led).filter(|(_, l)| is_here(l)).map(|(what, _)| what);
            if here().next().is_none() {
                continue;
            }
            for whom in whom(scope, on.cpu) {
                let Opened::Event(event) = open(&mut self.described[leader], whom, None)? else {
                    continue;
                };
                let mut members = Vec::new();
                for what in here() {
                    let opened = open(&mut self.described[what], whom, Some(&event))?;
                    if let Opened::Event(event) = opened {
                        members.push(Member { event, what });
                    }
                }
                let described = &self.described[leader];
                event.redirect_to(on.owner()).map_err(|e| described.refused(e))?;
                on.events.push(Member { event, what: leader });
                on.events.extend(members);
            }
        }
        Ok(())
    }

    /// Excludes from the recording what these threads do: their system calls and waits for locks.
    ///
    /// # Errors
    ///
    /// The kernel's error. The recording is still good without this, only larger.
    pub fn leave_out(&self, tids: &[u32]) -> io::Result<()> {
        let each: Vec<String> = tids.iter().map(|tid| format!("common_pid != {tid}")).collect();
        let filter = each.join(" && ");
        for on in &self.cpus {
            for member in &on.events {
                let system = self.described[member.what].name.split(':').next();
                if system.is_some_and(|system| OWN_DOING.contains(&system)) {
                    member.event.filter(&filter)?;
                }
            }
        }
        Ok(())
    }

    /// Starts all events.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub fn start(&self) -> io::Result<()> {
        self.each(Event::enable)
    }

    /// Stops all events. The rings keep their content.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub fn stop(&self) -> io::Result<()> {
        self.each(Event::disable)
    }

    fn each(&self, act: impl Fn(&Event) -> io::Result<()>) -> io::Result<()> {
        self.cpus.iter().flat_map(|on| &on.events).try_for_each(|member| act(&member.event))
    }
}

/// Samples then have the values of all counters of the group, and how long these counted.
fn reads_group(attr: &mut Attr) {
    attr.sample_type |= u64::from(abi::PERF_SAMPLE_READ);
    attr.read_format |= u64::from(
        abi::PERF_FORMAT_GROUP
            | abi::PERF_FORMAT_TOTAL_TIME_ENABLED
            | abi::PERF_FORMAT_TOTAL_TIME_RUNNING,
    );
}

/// The result of opening an event.
enum Opened {
    Event(Event),
    /// The thread has ended since it was found.
    ThreadGone,
    /// The CPU has gone offline since it was found.
    CpuGone,
}

fn open(what: &mut Described, whom: Whom<'_>, leader: Option<&Event>) -> Result<Opened, OpenError> {
    let opened = Event::open(&what.attr, whom, leader).and_then(|event| Ok((event.id()?, event)));
    match opened {
        Ok((id, event)) => {
            what.ids.push(id);
            Ok(Opened::Event(event))
        }
        Err(error) => match (error.raw_os_error(), whom) {
            (Some(libc::ESRCH), Whom::Thread(..)) => Ok(Opened::ThreadGone),
            (Some(libc::ENODEV), _) => Ok(Opened::CpuGone),
            _ => Err(what.refused(error)),
        },
    }
}

/// The targets of an event on a CPU.
fn whom(scope: &Scope, cpu: u32) -> Vec<Whom<'_>> {
    match scope {
        Scope::Machine => vec![Whom::Cpu(cpu)],
        Scope::Threads(tids) => tids.iter().map(|&tid| Whom::Thread(tid, Some(cpu))).collect(),
        Scope::Cgroup(folder) => vec![Whom::Cgroup(folder.as_fd(), cpu)],
    }
}

/// The reader of a ring of `size` bytes is woken when a quarter is full: three quarters are left
/// for what comes before it runs.
fn wake_after(size: usize) -> u32 {
    u32::try_from(size / 4).unwrap_or(u32::MAX)
}

//! The page's timeline: what CPUs and threads did, as flat lists of whole numbers.
//!
//! A browser reads a long list of numbers several times faster than a list of records. Times are
//! relative to the beginning, because JavaScript's integers are exact only up to 2^53, and clocks
//! go beyond.

use holdup_attribution::Attribution;
use holdup_passes::{Analysis, Bin, Cause, Doing, Follow, Lane, Slot, Span};
use holdup_trace::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;

/// Most CPUs with a lane.
const CPUS: usize = 64;
/// Most threads with a lane.
const THREADS: usize = 40;
/// Most intervals in the close-up: the page stays below 10 MB.
const SPANS: usize = 150_000;

/// The CPUs and threads that the timeline of a page follows.
pub fn whom(whole: &Analysis) -> Follow {
    whole.worth_following(CPUS, THREADS)
}

/// What CPUs and threads did.
#[derive(Serialize)]
pub struct Timeline {
    wall_ns: Nanos,
    /// The activities to which numbers in lanes refer.
    doings: Vec<Name>,
    /// The causes of the waits in bins: numbers of activities.
    causes: Vec<usize>,
    bins: Bins,
    pixel_ns: Nanos,
    cpus: Vec<CpuLane>,
    cpus_left_out: usize,
    threads: Vec<ThreadLane>,
    threads_left_out: usize,
    /// First and last time of the close-up, in which every switch is shown.
    window: [Nanos; 2],
    /// Switches of the CPUs shown in it.
    window_switches: u64,
    /// Threads named in the close-up.
    people: Vec<Person>,
    /// Objects named in it.
    objects: Vec<String>,
}

#[derive(Serialize)]
struct Name {
    id: &'static str,
    title: &'static str,
}

/// What all CPUs did in equal parts of the time, by kind.
#[derive(Serialize)]
struct Bins {
    /// End of each part.
    end: Vec<Nanos>,
    user: Vec<Nanos>,
    kernel: Vec<Nanos>,
    kthread: Vec<Nanos>,
    irq: Vec<Nanos>,
    softirq: Vec<Nanos>,
    idle: Vec<Nanos>,
    unaccounted: Vec<Nanos>,
    scheduler: Vec<Nanos>,
    waiting: [Vec<Nanos>; Cause::ALL.len()],
    /// Integral of the number of threads running or ready.
    active: Vec<Nanos>,
    switches: Vec<u64>,
}

#[derive(Serialize)]
struct CpuLane {
    cpu: u16,
    idle_ns: Nanos,
    /// Triples: pixels, number of the activity, its per cent of them.
    pieces: Vec<u32>,
    /// Groups of four: distance from the previous end (or the window's beginning), length, number
    /// of the activity, number of the thread.
    spans: Vec<i64>,
}

#[derive(Serialize)]
struct ThreadLane {
    tid: u32,
    pid: Option<u32>,
    comm: String,
    /// A thread of the kernel.
    kernel: bool,
    running_ns: Nanos,
    ready_ns: Nanos,
    pieces: Vec<u32>,
    /// Groups of five: as for a CPU, but with the waker of a sleep, and the number of the object.
    /// -1 for none.
    spans: Vec<i64>,
}

#[derive(Serialize, PartialEq)]
struct Person {
    tid: u32,
    comm: String,
}

impl Timeline {
    /// The timeline from the trace read once (`whole`), and once more with lanes (`followed`).
    pub fn new(whole: &Analysis, followed: &Analysis, follow: &Follow) -> Timeline {
        let start = whole.start;
        let lanes = || {
            let cpus = follow.cpus.iter().filter_map(|&c| followed.cpu_lane(c));
            cpus.chain(follow.threads.iter().filter_map(|&t| followed.lane(t)))
        };
        let window = close_up(followed, follow, &lanes().collect::<Vec<_>>());
        let mut names = Names::new(followed);
        let cpus: Vec<CpuLane> = (follow.cpus.iter())
            .filter_map(|&cpu| Some((cpu, followed.cpu_lane(cpu)?)))
            .map(|(cpu, lane)| CpuLane {
                cpu: cpu.0,
                idle_ns: lane.sum(Doing::Idle),
                pieces: pieces(lane),
                spans: spans(lane, window, |s| vec![names.person(s.who)]),
            })
            .collect();
        let mut threads: Vec<ThreadLane> = (follow.threads.iter())
            .filter_map(|&slot| Some((slot, followed.lane(slot)?)))
            .map(|(slot, lane)| {
                let t = followed.thread(slot);
                ThreadLane {
                    tid: t.tid.0,
                    pid: followed.pid(t),
                    comm: followed.comm(t),
                    kernel: t.is_kthread(),
                    running_ns: lane.sum(Doing::Running),
                    ready_ns: lane.sum(Doing::Ready),
                    pieces: pieces(lane),
                    spans: spans(lane, window, |s| vec![names.person(s.who), names.object(s)]),
                }
            })
            .collect();
        threads.sort_by_key(|t| (std::cmp::Reverse(t.running_ns + t.ready_ns), t.tid));
        let active = whole.threads().filter(|(_, t)| t.running_ns + t.woken_ns > 0).count();
        Timeline {
            wall_ns: whole.wall_ns(),
            doings: Doing::ALL.iter().map(|d| Name { id: d.id(), title: d.title() }).collect(),
            causes: Cause::ALL.iter().map(|&c| Doing::from(c) as usize).collect(),
            bins: Bins::of(&whole.bins(), start),
            pixel_ns: lanes().next().map_or(0, Lane::pixel_ns),
            cpus_left_out: (whole.cpus as usize).saturating_sub(cpus.len()),
            threads_left_out: active.saturating_sub(threads.len()),
            window: [window.0 - start, window.1 - start],
            window_switches: cpus.iter().map(|c| (c.spans.len() / 4) as u64).sum(),
            cpus,
            threads,
            people: names.people,
            objects: names.objects,
        }
    }
}

impl Bins {
    fn of(bins: &[Bin], start: Nanos) -> Bins {
        let all = |get: fn(&Bin) -> Nanos| bins.iter().map(get).collect();
        Bins {
            end: bins.iter().map(|b| b.end - start).collect(),
            user: all(|b| b.user_ns),
            kernel: all(|b| b.kernel_ns),
            kthread: all(|b| b.kthread_ns),
            irq: all(|b| b.irq_ns),
            softirq: all(|b| b.softirq_ns),
            idle: all(|b| b.idle_ns),
            unaccounted: all(|b| b.unaccounted_ns),
            scheduler: all(|b| b.scheduler_ns),
            waiting: std::array::from_fn(|i| bins.iter().map(|b| b.waiting[i]).collect()),
            active: all(|b| b.active_ns),
            switches: all(|b| b.switches),
        }
    }
}

/// The busiest part of the window for which all lanes are complete: [`holdup_passes::CLOSE_UP`] or
/// less, with at most [`SPANS`] intervals.
fn close_up(a: &Analysis, follow: &Follow, lanes: &[&Lane]) -> (Nanos, Nanos) {
    let (from, to) = follow.window;
    let to = lanes.iter().filter_map(|l| l.full()).min().unwrap_or(to);
    let cpus = follow.cpus.iter().filter_map(|&c| a.cpu_lane(c));
    let mut switches: Vec<Nanos> =
        cpus.flat_map(|l| l.spans()).map(|s| s.from).filter(|&at| at < to).collect();
    switches.sort_unstable();
    let width = holdup_passes::CLOSE_UP;
    let mut best = (0, from);
    let mut first = 0;
    for (last, &at) in switches.iter().enumerate() {
        while switches[first] + width < at {
            first += 1;
        }
        let begin = switches[first].min(to.saturating_sub(width)).max(from);
        best = best.max((last + 1 - first, begin));
    }
    let begin = best.1;
    let mut end = to.min(begin + width);
    let within = |end: Nanos| {
        let of = |l: &&Lane| {
            let spans = l.spans();
            spans.partition_point(|s| s.from < end) - spans.partition_point(|s| s.to <= begin)
        };
        lanes.iter().map(of).sum::<usize>()
    };
    while within(end) > SPANS && end > begin + 1 {
        end = begin + (end - begin) / 2;
    }
    (begin, end)
}

fn pieces(lane: &Lane) -> Vec<u32> {
    lane.pieces().iter().flat_map(|p| [p.pixels, p.what as u32, p.pct.into()]).collect()
}

/// The intervals of a lane within the window, with additional numbers for each.
fn spans(
    lane: &Lane,
    (from, to): (Nanos, Nanos),
    mut more: impl FnMut(&Span) -> Vec<i64>,
) -> Vec<i64> {
    let mut list = Vec::new();
    let mut at = from;
    for s in lane.spans().iter().filter(|s| s.to > from && s.from < to) {
        let (begin, end) = (s.from.max(from), s.to.min(to));
        let number = |ns: Nanos| i64::try_from(ns).unwrap_or(i64::MAX);
        list.extend([number(begin - at), number(end - begin), s.what as i64]);
        list.extend(more(s));
        at = end;
    }
    list
}

/// Numbers threads and objects.
struct Names<'a> {
    analysis: &'a Analysis,
    words: BTreeMap<holdup_passes::Object, String>,
    people: Vec<Person>,
    person_of: BTreeMap<Slot, i64>,
    objects: Vec<String>,
    object_of: BTreeMap<holdup_passes::Object, i64>,
}

impl Names<'_> {
    fn new(analysis: &Analysis) -> Names<'_> {
        Names {
            analysis,
            words: Attribution::from(analysis).object_words(),
            people: Vec::new(),
            person_of: BTreeMap::new(),
            objects: Vec::new(),
            object_of: BTreeMap::new(),
        }
    }

    fn person(&mut self, slot: Slot) -> i64 {
        if slot == Slot::IDLE {
            return -1;
        }
        *self.person_of.entry(slot).or_insert_with(|| {
            let t = self.analysis.thread(slot);
            self.people.push(Person { tid: t.tid.0, comm: self.analysis.comm(t) });
            self.people.len() as i64 - 1
        })
    }

    fn object(&mut self, span: &Span) -> i64 {
        let Some(object) = span.object.map(|o| self.analysis.final_object(o)) else { return -1 };
        let Some(words) = self.words.get(&object) else { return -1 };
        *self.object_of.entry(object).or_insert_with(|| {
            self.objects.push(words.clone());
            self.objects.len() as i64 - 1
        })
    }
}

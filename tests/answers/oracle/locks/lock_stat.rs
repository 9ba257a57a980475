//! Traces against the dumps of /proc/lock_stat around them.

use crate::oracle::corpus;
use crate::oracle::tally::Tally;
use holdup_passes::{LockBy, LockSource};
use holdup_testkit::needs;
use std::collections::BTreeMap;

/// What writing two events takes in the emulated guests.
const EVENT_COST_NS: u64 = 3000;

/// lockdep tells classes of one name apart by subclass (`/1`) and key (`#2`); the events do not.
fn bare(class: &str) -> &str {
    let class = class.strip_suffix("-R").or_else(|| class.strip_suffix("-W")).unwrap_or(class);
    let class = class
        .rsplit_once('/')
        .filter(|(_, n)| n.bytes().all(|b| b.is_ascii_digit()))
        .map_or(class, |(c, _)| c);
    class
        .rsplit_once('#')
        .filter(|(_, n)| n.bytes().all(|b| b.is_ascii_digit()))
        .map_or(class, |(c, _)| c)
}

/// The dumps around a trace cover more time than it: the recorder's start and end, the workload's.
/// So lock_stat counts at least what the trace shows, and where it counts the same waits it must
/// measure the same time, but for the way from the one's clock reading to the other's.
#[needs(corpus)]
#[test]
fn lock_stat_pairs_agree_with_the_trace_between_them() {
    let mut tally = Tally::new("lock_stat before/after = trace between");
    for file in corpus::all_files() {
        let Ok(reader) = holdup_open::open(&file.path) else { continue };
        if !file.name.starts_with("vm/lockstat612")
            || !reader.info().events.iter().any(|e| e.short_name() == "lock_contended")
        {
            continue;
        }
        let stem = [".trace.dat", ".perf.data", ".ftrace.txt"]
            .into_iter()
            .find_map(|end| file.name.strip_suffix(end))
            .unwrap();
        let dump = |when: &str| {
            let path = holdup_testkit::corpus().join(format!("{stem}.lock_stat.{when}.txt"));
            let text = std::fs::read(&path).or_else(|_| {
                zstd::decode_all(std::fs::File::open(path.with_extension("txt.zst"))?)
            });
            holdup_lockstat::LockStat::parse(
                &text.unwrap_or_else(|e| panic!("{}: {e}", path.display())),
            )
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        };
        let between = dump("after").since(&dump("before")).expect("not reset in between");
        let a = file.analyze();
        let mut stat: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
        for c in &between.classes {
            let s = stat.entry(bare(&c.name).to_owned()).or_default();
            *s = (s.0 + c.wait.count, s.1 + c.wait.total_ns, s.2 + c.hold.count);
        }
        tally.count("pairs", 1);
        for r in a.locks_from(LockBy::Class, LockSource::Lockdep) {
            let name = r.name.clone().unwrap().unwrap();
            // Cut off in the dump.
            let Some(&(waits, wait_ns, holds)) = stat.get(bare(&name)) else { continue };
            tally.count("classes", 1);
            let ended = r.contended.unwrap() - r.open.unwrap();
            // The event of a wait's begin comes before lock_stat reads its clock, the one of its
            // end after.
            let slack = EVENT_COST_NS + reader.info().clock.resolution_ns;
            tally.check(ended <= waits, || {
                format!("{}: {name}: {ended} waits, lock_stat {waits}", file.name)
            });
            tally.check(r.acquired.unwrap() <= holds + 64, || {
                format!("{}: {name}: acquired {:?}, lock_stat {holds}", file.name, r.acquired)
            });
            if ended > 0 && ended == waits {
                tally.count("classes with the same waits", 1);
                tally.count("of these waits", waits);
                let differ = r.wait_total_ns.unwrap().abs_diff(wait_ns);
                tally.check(differ <= slack * waits + wait_ns / 100, || {
                    format!("{}: {name}: {r:?}, lock_stat {waits} {wait_ns}", file.name)
                });
            }
        }
    }
    tally.finish();
}

//! CPUs: number, model, topology, and caches.

use super::super::bytes::Bytes;
use super::{list, number, word};
use std::path::Path;

/// Number of CPUs from 0 to the last that is present; like perf, including gaps.
fn present(cpu: &Path) -> Option<u32> {
    Some(list(&word(&cpu.join("present"))?).into_iter().max()? + 1)
}

pub(super) fn count(cpu: &Path) -> Option<Bytes> {
    let online = list(&word(&cpu.join("online"))?).len();
    let mut b = Bytes::default();
    b.u32(present(cpu)?).count(online);
    Some(b)
}

/// The value of `key` in `/proc/cpuinfo`, for the first CPU.
fn field<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    let of = |line: &'a str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then_some(value.trim())
    };
    cpuinfo.lines().find_map(of)
}

/// The model's name. Its key depends on the architecture.
pub(super) fn description(cpuinfo: &str) -> Option<String> {
    const KEYS: [&str; 6] =
        ["model name", "Model Name", "cpu model", "Processor", "cpu", "vendor_id"];
    let name = KEYS.iter().find_map(|key| field(cpuinfo, key))?;
    Some(name.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The key by which perf looks up a CPU's own events: vendor, family, model and stepping, or on ARM
/// the main id register without variant and revision.
pub(super) fn id(cpuinfo: &str, cpu: &Path) -> Option<String> {
    const VARIANT_AND_REVISION: u64 = 0xf0_000f;
    let midr = word(&cpu.join("cpu0/regs/identification/midr_el1"));
    if let Some(midr) = midr.and_then(|m| u64::from_str_radix(m.trim_start_matches("0x"), 16).ok())
    {
        return Some(format!("{:#018x}", midr & !VARIANT_AND_REVISION));
    }
    let parts = ["vendor_id", "cpu family", "model", "stepping"].map(|key| field(cpuinfo, key));
    Some(parts.into_iter().collect::<Option<Vec<_>>>()?.join(","))
}

/// Which CPUs share a package, a core and a die, and the ids of these for each CPU.
pub(super) fn topology(cpu: &Path) -> Option<Bytes> {
    let online = list(&word(&cpu.join("online"))?);
    let of = |n: u32, name: &str| cpu.join(format!("cpu{n}/topology/{name}"));
    // The new names exist since Linux 5.2, the old ones before.
    let groups = |new: &str, old: Option<&str>| {
        let mut groups: Vec<String> = Vec::new();
        for &n in &online {
            let group = word(&of(n, new)).or_else(|| word(&of(n, old?)));
            groups.extend(group.filter(|g| !groups.contains(g)));
        }
        groups
    };
    // An offline CPU has no such files: perf writes -1.
    let ids = |b: &mut Bytes, names: &[&str]| {
        for n in 0..present(cpu).unwrap_or(0) {
            for name in names {
                b.u32(number::<i32>(&of(n, name)).unwrap_or(-1) as u32);
            }
        }
    };
    let mut b = Bytes::default();
    strings(&mut b, &groups("package_cpus_list", Some("core_siblings_list")));
    strings(&mut b, &groups("core_cpus_list", Some("thread_siblings_list")));
    ids(&mut b, &["core_id", "physical_package_id"]);
    let dies = groups("die_cpus_list", None);
    // perf reads dies on x86 only.
    if !dies.is_empty() && cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
        strings(&mut b, &dies);
        ids(&mut b, &["die_id"]);
    }
    Some(b)
}

fn strings(b: &mut Bytes, strings: &[String]) {
    b.count(strings.len());
    for s in strings {
        b.string(s);
    }
}

/// One cache, which several CPUs may describe.
#[derive(PartialEq, Eq)]
struct Cache {
    level: u32,
    line_size: u32,
    sets: u32,
    ways: u32,
    kind: String,
    size: String,
    shared: String,
}

impl Cache {
    fn read(folder: &Path) -> Option<Cache> {
        let number = |name: &str| number(&folder.join(name));
        let text = |name: &str| word(&folder.join(name));
        Some(Cache {
            level: number("level")?,
            line_size: number("coherency_line_size")?,
            sets: number("number_of_sets")?,
            ways: number("ways_of_associativity")?,
            kind: text("type")?,
            size: text("size")?,
            shared: text("shared_cpu_list")?,
        })
    }
}

/// The caches of all CPUs, each once, by level.
pub(super) fn caches(cpu: &Path) -> Option<Bytes> {
    /// perf reads no more levels (`MAX_CACHE_LVL`).
    const LEVELS: u32 = 4;
    const VERSION: u32 = 1;
    let mut caches: Vec<Cache> = Vec::new();
    for n in 0..present(cpu)? {
        let read = |index| Cache::read(&cpu.join(format!("cpu{n}/cache/index{index}")));
        for cache in (0..LEVELS).map_while(read) {
            if !caches.contains(&cache) {
                caches.push(cache);
            }
        }
    }
    if caches.is_empty() {
        return None;
    }
    caches.sort_by_key(|c| c.level);
    let mut b = Bytes::default();
    b.u32(VERSION).count(caches.len());
    for c in &caches {
        b.u32(c.level).u32(c.line_size).u32(c.sets).u32(c.ways);
        b.string(&c.kind).string(&c.size).string(&c.shared);
    }
    Some(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const CPUINFO: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n\
        model\t\t: 143\nmodel name\t: Intel(R)  Xeon(R) Processor\nstepping\t: 8\n\n";

    #[test]
    fn the_description_is_squeezed_and_the_id_is_of_four_parts() {
        assert_eq!(description(CPUINFO).unwrap(), "Intel(R) Xeon(R) Processor");
        assert_eq!(id(CPUINFO, Path::new("/nowhere")).unwrap(), "GenuineIntel,6,143,8");
        assert_eq!(id("processor : 0\n", Path::new("/nowhere")), None);
    }

    #[test]
    fn a_cpu_that_is_offline_has_no_place() {
        let sys = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = sys.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("online", "0\n");
        put("present", "0-1\n");
        put("cpu0/topology/core_siblings_list", "0\n");
        put("cpu0/topology/thread_siblings_list", "0\n");
        put("cpu0/topology/core_id", "3\n");
        put("cpu0/topology/physical_package_id", "1\n");
        let b = topology(sys.path()).unwrap().0;
        let words: Vec<u32> = b[b.len() - 16..]
            .chunks(4)
            .map(|w| u32::from_ne_bytes(w.try_into().unwrap()))
            .collect();
        assert_eq!(words, [3, 1, u32::MAX, u32::MAX]);
        assert!(caches(sys.path()).is_none());
    }
}

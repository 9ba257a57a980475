//! Counters that the kernel itself names: a PMU is a folder of `/sys/bus/event_source/devices`,
//! with a file for each event and one for each field that an event may set.
//!
//! ```text
//! uncore_imc_0/type                    22                  perf_event_attr::type
//! uncore_imc_0/events/cas_count_read   event=0x04,umask=0x03
//! uncore_imc_0/format/umask            config:8-15         where the number belongs
//! uncore_imc_0/cpumask                 0,18                one CPU for each socket
//! ```
//!
//! Described in the kernel's `Documentation/ABI/testing/sysfs-bus-event_source-devices-*`.

use holdup_counters::meaning;
use holdup_trace::Cpu;
use std::fs;
use std::path::Path;

/// The folder of PMUs.
pub(crate) const DEVICES: &str = "/sys/bus/event_source/devices";

/// An event of a PMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PmuEvent {
    /// Its name in perf, without modifiers: `uncore_imc_0/cas_count_read/`.
    pub(crate) name: String,
    pub(crate) kind: u32,
    /// `config`, `config1` and `config2`.
    pub(crate) config: [u64; 3],
    /// The CPUs on which it can be opened; `None` for all.
    pub(crate) cpus: Option<Vec<u32>>,
}

/// The event of this name of the PMU `pmu`, or of each of `pmu_0`, `pmu_1` and so on.
pub(crate) fn find(devices: &Path, pmu: &str, event: &str) -> Vec<PmuEvent> {
    let numbered = |name: &str| {
        let number = name.strip_prefix(pmu).and_then(|rest| rest.strip_prefix('_'));
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let named = names(devices).into_iter().filter(|name| name == pmu || numbered(name));
    named.filter_map(|name| read(devices, &name, event)).collect()
}

/// All events that measure the traffic of memory controllers.
pub(crate) fn memory(devices: &Path) -> Vec<PmuEvent> {
    let of = |pmu: String| {
        let events = names(&devices.join(&pmu).join("events")).into_iter();
        let carries = |event: &String| meaning(event).is_some_and(|m| m.counter.is_of_memory());
        events.filter(carries).filter_map(|event| read(devices, &pmu, &event)).collect::<Vec<_>>()
    };
    names(devices).into_iter().flat_map(of).collect()
}

/// The entries of a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|e| e.file_name().to_str().map(str::to_owned)).collect();
    names.sort();
    names
}

/// `None` if there is no such event, or if it sets a field that the PMU does not describe.
fn read(devices: &Path, pmu: &str, event: &str) -> Option<PmuEvent> {
    // A name is a single folder or file, never a path.
    if [pmu, event].iter().any(|name| name.contains('/') || name.starts_with('.')) {
        return None;
    }
    let folder = devices.join(pmu);
    let text = |name: &str| Some(fs::read_to_string(folder.join(name)).ok()?.trim().to_owned());
    let mut config = [0; 3];
    for term in text(&format!("events/{event}"))?.split(',') {
        let (field, value) = term.split_once('=').unwrap_or((term, "1"));
        let value = match value.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok()?,
            None => value.parse().ok()?,
        };
        let place = match field {
            "config" | "config1" | "config2" => format!("{field}:0-63"),
            _ => text(&format!("format/{field}"))?,
        };
        put(&mut config, &place, value)?;
    }
    let cpus = match text("cpumask") {
        Some(list) => Some(Cpu::parse_list(&list)?.into_iter().map(|cpu| cpu.0.into()).collect()),
        None => None,
    };
    Some(PmuEvent {
        name: format!("{pmu}/{event}/"),
        kind: text("type")?.parse().ok()?,
        config,
        cpus,
    })
}

/// Writes a value into the bits of a field: `config:0-7,32-35`, low bits first.
fn put(config: &mut [u64; 3], place: &str, mut value: u64) -> Option<()> {
    let (word, bits) = place.split_once(':')?;
    let word = &mut config[["config", "config1", "config2"].iter().position(|w| *w == word)?];
    for range in bits.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last > 63 {
            return None;
        }
        let len = last - first + 1;
        *word |= (value & (u64::MAX >> (64 - len))) << first;
        value = value.checked_shr(len).unwrap_or(0);
    }
    // Bits that are left do not fit.
    (value == 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put_files(folder: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
    }

    /// A machine with two memory controllers for each of two sockets.
    fn server() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (pmu, kind) in [("uncore_imc_0", "22"), ("uncore_imc_1", "23"), ("uncore_imc_x", "9")] {
            put_files(
                &folder.path().join(pmu),
                &[
                    ("type", kind),
                    ("cpumask", "0,18"),
                    ("events/cas_count_read", "event=0x04,umask=0x03"),
                    ("events/cas_count_read.scale", "6.103515625e-5"),
                    ("events/clockticks", "event=0xff"),
                    ("events/odd", "colour=1"),
                    ("format/event", "config:0-7,32-35"),
                    ("format/umask", "config:8-15"),
                ],
            );
        }
        folder
    }

    #[test]
    fn a_name_is_that_of_one_pmu_or_of_its_numbered_kin() {
        let folder = server();
        let found = find(folder.path(), "uncore_imc", "cas_count_read");
        let names: Vec<&str> = found.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["uncore_imc_0/cas_count_read/", "uncore_imc_1/cas_count_read/"]);
        assert_eq!((found[1].kind, found[1].config), (23, [0x304, 0, 0]));
        assert_eq!(found[0].cpus, Some(vec![0, 18]));
        assert_eq!(find(folder.path(), "uncore_imc_1", "clockticks")[0].config, [0xff, 0, 0]);
        for (pmu, event) in [
            ("uncore_imc", "odd"),
            ("uncore_imc", "none"),
            ("..", "x"),
            ("uncore_imc_0", "../type"),
        ] {
            assert_eq!(find(folder.path(), pmu, event), [], "{pmu} {event}");
        }
    }

    #[test]
    fn what_memory_controllers_carry_is_found_by_its_name() {
        let folder = server();
        assert_eq!(memory(folder.path()).len(), 3);
        assert!(memory(&folder.path().join("nowhere")).is_empty());
    }

    #[test]
    fn fields_may_lie_in_parts() {
        let mut config = [0; 3];
        assert_eq!(put(&mut config, "config:0-7,32-35", 0x6ab), Some(()));
        assert_eq!(put(&mut config, "config1:63", 1), Some(()));
        assert_eq!(put(&mut config, "config2:0-63", u64::MAX), Some(()));
        assert_eq!(config, [0x6_0000_00ab, 1 << 63, u64::MAX]);
        for (place, value) in [
            ("config:0-7", 256),
            ("config3:0-7", 1),
            ("config:7-0", 1),
            ("config:0-64", 1),
            ("", 1),
        ] {
            assert_eq!(put(&mut [0; 3], place, value), None, "{place}");
        }
    }
}

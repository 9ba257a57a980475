//! Which lock of the kernel a lock most likely is, by the functions that ask for it.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The list of known locks; its first lines explain it.
const KNOWN: &str = include_str!("known_locks.txt");

/// Lock by family and function.
static LOCKS: LazyLock<FxHashMap<(&str, &str), &str>> = LazyLock::new(|| lines().collect());

fn lines() -> impl Iterator<Item = ((&'static str, &'static str), &'static str)> {
    let lines = KNOWN.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(" = ")).flat_map(|(lock, rest)| {
        let (family, functions) = rest.split_once(' ').unwrap_or((rest, ""));
        functions.split(' ').map(move |function| ((family, function), lock))
    })
}

/// The kernel lock of this family that a function most likely asks for: `mmap_lock` for an `rwsem`
/// and `vm_mmap_pgoff+0x7a`; `None` if the function is not in the list.
pub fn known_lock(family: &str, function: &str) -> Option<&'static str> {
    let name = function.split(['+', '.']).next()?;
    LOCKS.get(&(family, name)).copied()
}

/// What a lock of `family` most likely is: the one that functions with at least half of the waiting
/// time ask for. `callers` are functions, perhaps with offsets, and times.
pub(super) fn likely<'a>(
    family: &str,
    callers: impl Iterator<Item = (&'a str, u64)>,
) -> Option<&'static str> {
    let mut all = 0_u64;
    let mut by: BTreeMap<&str, u64> = BTreeMap::new();
    for (function, ns) in callers {
        all = all.saturating_add(ns);
        if let Some(lock) = known_lock(family, function) {
            let sum = by.entry(lock).or_default();
            *sum = sum.saturating_add(ns);
        }
    }
    let (lock, ns) = by.into_iter().max_by_key(|&(_, ns)| ns)?;
    (ns >= all - all / 2).then_some(lock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::LockKind;
    use std::collections::BTreeSet;

    #[test]
    fn each_function_stands_at_one_lock_of_a_family() {
        let mut seen = BTreeSet::new();
        for (key, lock) in lines() {
            assert!(seen.insert(key), "{lock}: {key:?} is there already");
            assert!(LockKind::ALL.iter().any(|k| k.family() == key.0), "{lock}: {key:?}");
            assert!(!key.1.is_empty() && !lock.is_empty(), "{lock}: {key:?}");
        }
    }

    #[test]
    fn most_of_the_waiting_decides() {
        let likely =
            |family, callers: &[(&'static str, u64)]| likely(family, callers.iter().copied());
        assert_eq!(likely("rwsem", &[("vm_mmap_pgoff+0x7a", 1)]), Some("mmap_lock"));
        assert_eq!(likely("spinlock", &[("vm_mmap_pgoff+0x7a", 1)]), None);
        assert_eq!(likely("spinlock", &[("__release_pages.part.0+0x1", 1)]), None);
        assert_eq!(likely("spinlock", &[("release_pages.part.0+0x1", 1)]), Some("lru_lock"));
        let two = [("vm_mmap_pgoff+0x7a", 2), ("do_something+0x1", 3)];
        assert_eq!(likely("rwsem", &two), None);
        let two = [("vm_mmap_pgoff+0x7a", 2), ("do_madvise", 1), ("do_something+0x1", 3)];
        assert_eq!(likely("rwsem", &two), Some("mmap_lock"));
        assert_eq!(likely("rwsem", &[]), None);
    }
}

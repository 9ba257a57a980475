//! Control groups of the machine: their paths, their quotas, and the names of containers.
//!
//! Events carry the number of a thread's group ([`crate::attr`]). Like in perf, the paths of these
//! numbers are read from the mount of the hierarchy that perf events use: the number of a group is
//! the inode number of its folder (`kernfs`, on 64-bit machines). Groups that are created during
//! the recording come as records of the kernel.
//!
//! The kernel counts how often each group's quota was used up (`cpu.stat`). There is no event for
//! this, so it is read when the recording begins and when it ends. In version 1 of control groups
//! this is another hierarchy, where groups usually have the same paths.

mod containers;
mod limits;

use holdup_trace::{GroupLimit, GroupName, Groups};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// If a machine has more groups, some have no names.
const MOST: usize = 1 << 16;

/// The mount points of the relevant hierarchies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mounts {
    /// The hierarchy of perf events.
    perf: Option<PathBuf>,
    /// The hierarchy of quotas, and whether it is version 2.
    cpu: Option<(PathBuf, bool)>,
}

impl Mounts {
    /// Reads the mounts in `proc`.
    pub(crate) fn read(proc: &Path) -> Mounts {
        Mounts::of(&fs::read_to_string(proc.join("self/mounts")).unwrap_or_default())
    }

    /// Parses lines like `cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0`. A controller belongs to
    /// version 2 unless it is mounted separately.
    fn of(mounts: &str) -> Mounts {
        let mut second = None;
        let mut alone: [Option<PathBuf>; 2] = [None, None];
        for line in mounts.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [_, place, kind, options, ..] = words[..] else { continue };
            let place = || PathBuf::from(place.replace("\\040", " "));
            match kind {
                "cgroup2" => {
                    second.get_or_insert_with(place);
                }
                "cgroup" => {
                    for (mount, name) in alone.iter_mut().zip(["perf_event", "cpu"]) {
                        if options.split(',').any(|option| option == name) {
                            mount.get_or_insert_with(place);
                        }
                    }
                }
                _ => {}
            }
        }
        let [perf, cpu] = alone;
        let cpu = cpu.map(|mount| (mount, false)).or(second.clone().map(|mount| (mount, true)));
        Mounts { perf: perf.or(second), cpu }
    }

    /// Number and path of each group that perf events can refer to.
    pub(crate) fn known(&self) -> Vec<(u64, String)> {
        let Some(mount) = &self.perf else { return Vec::new() };
        let number =
            |(path, folder): (String, PathBuf)| Some((folder.metadata().ok()?.ino(), path));
        all(mount).into_iter().filter_map(number).collect()
    }
}

/// Path and folder of every group below `mount`, starting with the root `/`.
fn all(mount: &Path) -> Vec<(String, PathBuf)> {
    let mut found = vec![("/".to_owned(), mount.to_owned())];
    let mut next = 0;
    while let Some((path, folder)) = found.get(next).cloned() {
        next += 1;
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if let (true, Some(name)) =
                (is_folder && found.len() < MOST, entry.file_name().to_str())
            {
                found.push((format!("{}/{name}", path.trim_end_matches('/')), entry.path()));
            }
        }
    }
    found
}

/// The counts at the beginning, to be compared with those at the end.
#[derive(Debug)]
pub(crate) struct Look {
    mounts: Mounts,
    limits: BTreeMap<String, GroupLimit>,
}

impl Look {
    /// Reads the counts of all groups.
    pub(crate) fn begin() -> Look {
        let mounts = Mounts::read(Path::new("/proc"));
        Look { limits: limits::read(&mounts), mounts }
    }

    /// Reads them again: the differences as the text of a file's section. `None` if there are
    /// neither quotas nor containers.
    pub(crate) fn end(&self) -> Option<String> {
        let now = limits::read(&self.mounts);
        // All counts of a group that was created meanwhile belong to this time.
        let limits = now.into_values().map(|l| match self.limits.get(&l.path) {
            Some(then) => limits::since(l, then),
            None => l,
        });
        let paths = self.mounts.perf.as_deref().map(all).unwrap_or_default();
        let mut ids: Vec<&str> =
            paths.iter().filter_map(|(path, _)| Some(GroupName::of(path).container?.id)).collect();
        ids.sort_unstable();
        ids.dedup();
        let containers = containers::names(Path::new("/"), &ids);
        let groups = Groups { containers, limits: limits.collect() };
        (groups != Groups::default()).then(|| groups.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_that_are_mounted_alone_are_no_part_of_the_second_version() {
        let second = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev 0 0\n";
        let mounts = Mounts::of(second);
        assert_eq!(mounts.perf, Some("/sys/fs/cgroup".into()));
        assert_eq!(mounts.cpu, Some(("/sys/fs/cgroup".into(), true)));
        let both = "tmpfs /sys/fs/cgroup tmpfs ro 0 0\n\
                    cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n\
                    cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
                    cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n";
        let mounts = Mounts::of(both);
        assert_eq!(mounts.perf, Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(mounts.cpu, Some(("/sys/fs/cgroup/cpu,cpuacct".into(), false)));
        let first = format!("{both}cgroup /sys/fs/cgroup/perf_event cgroup rw,perf_event 0 0\n");
        assert_eq!(Mounts::of(&first).perf, Some("/sys/fs/cgroup/perf_event".into()));
        assert_eq!(Mounts::of(""), Mounts::default());
    }

    #[test]
    fn groups_are_found_below_the_mount() {
        let folder = tempfile::tempdir().unwrap();
        let mount = folder.path();
        fs::create_dir_all(mount.join("a.slice/b.service")).unwrap();
        fs::write(mount.join("cgroup.procs"), "").unwrap();
        let mounts = Mounts { perf: Some(mount.to_owned()), cpu: None };
        let known = mounts.known();
        let paths: Vec<&str> = known.iter().map(|(_, path)| path.as_str()).collect();
        assert_eq!(paths, ["/", "/a.slice", "/a.slice/b.service"]);
        assert_eq!(known[0].0, mount.metadata().unwrap().ino());
        assert_eq!(Mounts::default().known(), []);
    }
}

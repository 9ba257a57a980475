//! What already runs when a recording begins, from `/proc`. Like perf, as records of time 0 before
//! the first event (kernel `tools/perf/util/synthetic-events.c`).

use super::bytes::Bytes;
use super::symbols::Symbols;
use holdup_perfdata::format::record;
use std::fs;
use std::path::{Path, PathBuf};

/// Which threads are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// All threads of the machine.
    Machine,
    /// The threads of these processes.
    Processes(Vec<u32>),
}

/// Running processes, their threads, and the code they have mapped.
#[derive(Clone, Debug)]
pub struct Running {
    target: Target,
    processes: Vec<Process>,
    /// Control groups: number and path.
    groups: Vec<(u64, String)>,
}

#[derive(Clone, Debug)]
struct Process {
    pid: u32,
    parent: u32,
    /// Thread and name; the first is the process itself.
    threads: Vec<(u32, Vec<u8>)>,
    maps: Vec<Mapping>,
}

/// A range of code in a process's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    device: (u32, u32),
    inode: u64,
    /// `PROT_` and `MAP_` bits.
    protection: u32,
    flags: u32,
    name: Vec<u8>,
}

impl Running {
    /// Reads `proc`; with `maps` also the mapped code.
    ///
    /// Processes that end meanwhile are left out; if `proc` cannot be read, the result is empty.
    pub fn read(proc: &Path, target: Target, maps: bool) -> Running {
        let pids = match &target {
            Target::Machine => super::host::numbered(proc, ""),
            Target::Processes(pids) => pids.clone(),
        };
        let read = |pid: u32| Process::read(&proc.join(pid.to_string()), pid, maps);
        let processes = pids.into_iter().filter_map(read).collect();
        Running { processes, target, groups: Vec::new() }
    }

    /// Adds the paths of control groups, for events with numbers of control groups.
    pub(crate) fn with_groups(self, groups: Vec<(u64, String)>) -> Running {
        Running { groups, ..self }
    }

    /// The files that code is mapped from, each once, with a path by which they can be opened from
    /// outside the process's container.
    pub(crate) fn files(&self, proc: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let mut seen = std::collections::HashSet::new();
        let mut files = Vec::new();
        for p in &self.processes {
            let root = proc.join(p.pid.to_string()).join("root");
            for map in p.maps.iter().filter(|m| m.inode != 0) {
                let path = str::from_utf8(&map.name).ok().and_then(|n| n.strip_prefix('/'));
                let Some(path) = path.filter(|p| !p.ends_with(" (deleted)")) else { continue };
                if seen.insert((map.device, map.inode)) {
                    files.push((root.join(path), map.name.clone()));
                }
            }
        }
        files
    }

    /// The records: which threads are recorded, the kernel's code, then the running threads.
    ///
    /// `trailer` is the number of bytes that follow each record of the kernel's kind; they are 0,
    /// which means time 0 and no CPU.
    pub(crate) fn records(&self, symbols: &Symbols, proc: &Path, trailer: usize) -> Bytes {
        let mut b = Bytes::default();
        kernel(&mut b, symbols, &proc.join("modules"), trailer);
        let everybody = [u32::MAX];
        let recorded = match &self.target {
            Target::Machine => &everybody[..],
            Target::Processes(pids) => pids,
        };
        b.record(record::THREAD_MAP, 0, |b| {
            b.u64(recorded.len() as u64);
            for &pid in recorded {
                // perf's field is signed: -1 is every thread. A name follows.
                b.u64(pid as i32 as i64 as u64).zeros(16);
            }
        });
        for (number, path) in &self.groups {
            b.record(record::CGROUP, 0, |b| {
                b.u64(*number).name(path.as_bytes()).zeros(trailer);
            });
        }
        for p in &self.processes {
            p.records(&mut b, trailer);
        }
        b.record(record::FINISHED_INIT, 0, |_| {});
        b
    }
}

impl Process {
    fn read(folder: &Path, pid: u32, maps: bool) -> Option<Process> {
        let (name, parent) = stat(&fs::read(folder.join("stat")).ok()?)?;
        let mut threads = vec![(pid, name)];
        for tid in super::host::numbered(&folder.join("task"), "") {
            if tid != pid
                && let Ok(mut name) = fs::read(folder.join(format!("task/{tid}/comm")))
            {
                name.truncate(name.trim_ascii_end().len());
                threads.push((tid, name));
            }
        }
        let text = if maps { fs::read(folder.join("maps")) } else { Ok(Vec::new()) };
        let maps =
            text.unwrap_or_default().split(|&b| b == b'\n').filter_map(Mapping::parse).collect();
        Some(Process { pid, parent, threads, maps })
    }

    fn records(&self, b: &mut Bytes, trailer: usize) {
        for (tid, name) in &self.threads {
            // As if the first thread had created the others; the real creator is not recorded.
            let parent = if *tid == self.pid { self.parent } else { self.pid };
            b.record(record::FORK, record::MISC_FORK_EXEC, |b| {
                b.u32(self.pid).u32(parent).u32(*tid).u32(parent).u64(0).zeros(trailer);
            });
            b.record(record::COMM, 0, |b| {
                let name = &name[..name.len().min(COMM - 1)];
                b.u32(self.pid).u32(*tid).name(name).zeros(trailer);
            });
        }
        for map in &self.maps {
            b.record(record::MMAP2, record::MISC_USER, |b| {
                b.u32(self.pid).u32(self.pid);
                b.u64(map.start).u64(map.end - map.start).u64(map.offset);
                b.u32(map.device.0).u32(map.device.1).u64(map.inode).u64(0);
                b.u32(map.protection).u32(map.flags).name(&map.name).zeros(trailer);
            });
        }
    }
}

/// Size of a thread's name in the kernel, including the NUL. Kernel workers have longer names in
/// `/proc`.
const COMM: usize = 16;

/// Name and parent from `/proc/PID/stat`: `1 (name) S 0 …`. A name may contain anything.
fn stat(line: &[u8]) -> Option<(Vec<u8>, u32)> {
    let open = line.iter().position(|&b| b == b'(')?;
    let close = line.iter().rposition(|&b| b == b')')?;
    let name = line.get(open + 1..close)?.to_vec();
    let mut words = str::from_utf8(&line[close + 1..]).ok()?.split_ascii_whitespace();
    Some((name, words.nth(1)?.parse().ok()?))
}

impl Mapping {
    /// A line of `/proc/PID/maps`, if code is mapped:
    /// `55d0c6e4a000-55d0c6e4c000 r-xp 00002000 fe:00 1234    /usr/bin/cat`.
    fn parse(line: &[u8]) -> Option<Mapping> {
        // The rest of the line is the name: it may contain blanks.
        let mut words = line.splitn(6, |&b| b == b' ');
        let mut word = || str::from_utf8(words.next()?).ok();
        let hex = |s: &str| u64::from_str_radix(s, 16).ok();
        let (start, end) = word()?.split_once('-')?;
        let (start, end) = (hex(start)?, hex(end)?);
        let permissions = word()?.as_bytes();
        let offset = hex(word()?)?;
        let (major, minor) = word()?.split_once(':')?;
        let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
        let inode = word()?.parse().ok()?;
        if permissions.get(2) != Some(&b'x') || end < start {
            return None;
        }
        let name = words.next().unwrap_or_default().trim_ascii_start();
        let bits = [b'r', b'w', b'x'].iter().zip(permissions).enumerate();
        Some(Mapping {
            start,
            end,
            offset,
            device,
            inode,
            protection: bits.map(|(i, (bit, have))| ((bit == have) as u32) << i).sum(),
            // MAP_SHARED or MAP_PRIVATE.
            flags: if permissions.get(3) == Some(&b's') { 1 } else { 2 },
            name: if name.is_empty() { b"//anon".to_vec() } else { name.to_vec() },
        })
    }
}

/// The code of the kernel and of its modules, in perf's form.
fn kernel(b: &mut Bytes, symbols: &Symbols, modules: &Path, trailer: usize) {
    let mut map = |start: u64, size: u64, offset: u64, name: &str| {
        b.record(record::MMAP, record::MISC_KERNEL, |b| {
            b.u32(u32::MAX).u32(0).u64(start).u64(size).u64(offset);
            b.name(name.as_bytes()).zeros(trailer);
        });
    };
    if let Some((start, end)) = symbols.code() {
        // The offset of the kernel's mapping is the address of the symbol in its name: perf
        // computes from it how far the kernel was moved by KASLR.
        map(start, end - start, start, "[kernel.kallsyms]_text");
    }
    // `ext4 811008 1 - Live 0xffffffffc0000000`; a hidden address is 0.
    for line in fs::read_to_string(modules).unwrap_or_default().lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if let [name, size, _, _, _, address, ..] = words[..]
            && let Ok(size) = size.parse()
            && let Ok(start) = u64::from_str_radix(address.trim_start_matches("0x"), 16)
            && start != 0
        {
            map(start, size, 0, &format!("[{name}]"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_what_else_separates() {
        assert_eq!(stat(b"7 (a) S 1 (b)) R 3 4 5"), Some((b"a) S 1 (b)".to_vec(), 3)));
        assert_eq!(stat(b"7 (a) S"), None);
        assert_eq!(stat(b") ("), None);
    }

    #[test]
    fn only_code_is_mapped() {
        let m = Mapping::parse(b"7f00-8f00 r-xp 00002000 fe:01 12    /opt/a b").unwrap();
        assert_eq!(
            (m.start, m.end, m.offset, m.device, m.inode),
            (0x7f00, 0x8f00, 0x2000, (254, 1), 12)
        );
        assert_eq!((m.protection, m.flags, &m.name[..]), (5, 2, &b"/opt/a b"[..]));
        assert_eq!(Mapping::parse(b"7f00-8f00 rwxs 0 00:00 0").unwrap().name, b"//anon");
        assert_eq!(Mapping::parse(b"7f00-8f00 rw-p 0 00:00 0 [heap]"), None);
        assert_eq!(Mapping::parse(b"9f00-8f00 r-xp 0 00:00 0 x"), None);
        assert_eq!(Mapping::parse(b""), None);
    }

    #[test]
    fn this_process_runs_and_has_code_mapped() {
        let pid = std::process::id();
        let proc = Path::new("/proc");
        let me = Running::read(proc, Target::Processes(vec![pid, u32::MAX - 1]), true);
        assert_eq!(me.processes.len(), 1, "a process that is not there is left out");
        let exe = std::env::current_exe().unwrap();
        let exe = exe.to_str().unwrap().as_bytes();
        assert!(me.files(proc).iter().any(|(path, name)| path.exists() && name == exe));
        assert!(Running::read(proc, Target::Machine, false).files(proc).is_empty());
    }
}

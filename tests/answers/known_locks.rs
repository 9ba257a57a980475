//! Locks of the kernel that are known by the functions that ask for them, against what lock_stat of
//! a kernel with lockdep says of the same functions.

use holdup_lockstat::LockStat;
use holdup_passes::known_lock;
use holdup_testkit::{corpus, needs};
use std::collections::BTreeMap;

/// Classes of lockdep, their families and what they are called here. Directories and files of
/// several file systems have classes of several numbers.
const CLASSES: &[(&str, &str, &str)] = &[
    ("&mm->mmap_lock", "rwsem", "mmap_lock"),
    ("&newf->file_lock", "spinlock", "files_struct.file_lock"),
    ("&n->list_lock", "spinlock", "slab list_lock of a node"),
    ("&type->i_mutex_dir_key", "rwsem", "i_rwsem of a directory"),
    ("&sb->s_type->i_mutex_key", "rwsem", "i_rwsem of a file"),
    ("&vma->vm_lock->lock", "rwsem", "lock of a memory area (vm_lock)"),
    ("&rq->__lock", "spinlock", "run queue lock"),
    ("&p->pi_lock", "spinlock", "pi_lock of a thread"),
    ("ptlock_ptr(ptdesc)", "spinlock", "page table lock"),
    ("tasklist_lock", "rwlock", "tasklist_lock"),
    ("&dentry->d_lock", "spinlock", "dentry d_lock"),
    ("&base->lock", "spinlock", "timer base lock"),
    ("&lruvec->lru_lock", "spinlock", "lru_lock"),
    ("&sma->sems[i].lock", "spinlock", "semaphore of System V"),
    ("&zone->lock", "spinlock", "zone lock"),
    ("jiffies_lock", "spinlock", "jiffies_lock"),
    ("&f->f_pos_lock", "mutex", "f_pos_lock of an open file"),
    ("&sbinfo->stat_lock", "spinlock", "stat_lock of tmpfs"),
    ("&sighand->siglock", "spinlock", "siglock of a process"),
    ("&anon_vma->rwsem", "rwsem", "anon_vma lock"),
    ("&futex_queues[i].lock", "spinlock", "futex hash bucket"),
    ("css_set_lock", "spinlock", "css_set_lock"),
    ("hrtimer_bases.lock", "spinlock", "hrtimer base lock"),
    ("&s->s_inode_list_lock", "spinlock", "s_inode_list_lock"),
    ("&pool->lock", "spinlock", "lock of a workqueue pool"),
    ("rcu_node", "spinlock", "rcu_node lock"),
];

/// Of a dump's class, family and name here.
fn class(name: &str) -> Option<(&'static str, &'static str)> {
    let name = name.strip_suffix("-R").or(name.strip_suffix("-W")).unwrap_or(name);
    let same = |class: &&(&str, &str, &str)| match name.strip_prefix(class.0) {
        Some(rest) => rest.is_empty() || rest.starts_with(['#', '/', '_']),
        None => false,
    };
    CLASSES.iter().find(same).map(|&(_, family, lock)| (family, lock))
}

#[needs(corpus)]
#[test]
fn known_locks_are_those_of_lock_stat() {
    let folder = corpus().join("vm/lockstat612");
    let mut points: BTreeMap<(&str, String), BTreeMap<&str, u64>> = BTreeMap::new();
    let mut waits = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_str().unwrap().ends_with("lock_stat.after.txt") {
            continue;
        }
        let stat = LockStat::parse(&std::fs::read(&path).unwrap()).unwrap();
        for of in &stat.classes {
            for point in &of.waiters {
                waits.1 += point.count;
                let Some((family, lock)) = class(&of.name) else { continue };
                waits.0 += point.count;
                let function = point.caller.split(['+', '.']).next().unwrap().to_owned();
                *points.entry((family, function)).or_default().entry(lock).or_default() +=
                    point.count;
            }
        }
    }
    let (mut known, mut all) = (0, 0);
    for ((family, function), locks) in &points {
        let (lock, count) = locks.iter().max_by_key(|(_, n)| **n).unwrap();
        all += locks.values().sum::<u64>();
        if let Some(said) = known_lock(family, function) {
            assert_eq!(said, *lock, "{function}, a {family}: {locks:?}");
            known += count;
        }
    }
    assert!(points.len() > 40, "{points:?}");
    // Of what these dumps saw waiting at locks with a name here, nearly all is known.
    assert!(known * 100 >= all * 95, "{known} of {all}");
    // The other classes are wait queues and completions, for the most part: no locks one waits for.
    assert!(waits.0 * 100 >= waits.1 * 75, "{waits:?}");
}

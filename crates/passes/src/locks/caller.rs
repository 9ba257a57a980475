//! The code that asked for a lock: the innermost frame of a call chain outside locking code.
//!
//! With kernel symbols the rule is perf's: code in the kernel's `.sched.text` and `.lock.text`
//! sections is locking code; for symbol tables without these sections' bounds, names decide. perf
//! 6.1 first skips three frames, and so often names the caller's caller; holdup does not.
//!
//! Without symbols: a function of locking code calls others of its section, and sections are tens
//! of kilobytes long. Frames within [`NEAR`] of the innermost frame, which certainly is locking
//! code, count as locking code.

use holdup_trace::SymbolTable;

/// Half the length of the sections on common kernels.
const NEAR: u64 = 16 << 10;

/// Prefixes of names of locking functions, for tables without section bounds.
const PREFIXES: &[&str] = &[
    "mutex_lock",
    "__mutex",
    "ww_mutex",
    "__ww_mutex",
    "rt_mutex",
    "__rt_mutex",
    "rtlock_",
    "rt_spin_lock",
    "rt_read_lock",
    "rt_write_lock",
    "rwbase_",
    "down_read",
    "down_write",
    "down_killable",
    "down_interruptible",
    "down_timeout",
    "__down",
    "rwsem_",
    "percpu_down_",
    "__percpu_down",
    "percpu_rwsem_",
    "_raw_spin_",
    "_raw_read_",
    "_raw_write_",
    "__raw_spin_",
    "do_raw_",
    "queued_",
    "native_queued_spin_lock",
    "__pv_queued_spin_lock",
    "__traceiter_contention",
    "trace_contention",
];

/// Whether the function of this name takes locks.
pub(crate) fn is_locking(name: &str) -> bool {
    name == "down" || PREFIXES.iter().any(|p| name.starts_with(p))
}

/// The locking code of the recorded kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct LockCode {
    /// Start and end of each range of addresses, ascending and disjoint. Empty without symbols.
    ranges: Vec<(u64, u64)>,
}

impl LockCode {
    pub(crate) fn new(symbols: &SymbolTable) -> LockCode {
        // Symbols at the bounds of the sections.
        let mut bounds = [(None, None); 2];
        for (address, name) in symbols.functions() {
            match name {
                "__sched_text_start" => bounds[0].0 = Some(address),
                "__sched_text_end" => bounds[0].1 = Some(address),
                "__lock_text_start" => bounds[1].0 = Some(address),
                "__lock_text_end" => bounds[1].1 = Some(address),
                _ => {}
            }
        }
        let sections: Vec<(u64, u64)> = bounds
            .into_iter()
            .filter_map(|(start, end)| start.zip(end))
            .filter(|(start, end)| start < end)
            .collect();
        let mut ranges = if sections.is_empty() { symbols.ranges(is_locking) } else { sections };
        ranges.sort();
        LockCode { ranges }
    }

    pub(super) fn contains(&self, address: u64) -> bool {
        match self.ranges.partition_point(|r| r.0 <= address).checked_sub(1) {
            Some(i) => address < self.ranges[i].1,
            None => false,
        }
    }

    /// The return address in the function that asked for the lock; 0 without a call chain.
    pub(crate) fn caller(&self, chain: &[u64]) -> u64 {
        let Some(&innermost) = chain.first() else { return 0 };
        let known = !self.ranges.is_empty();
        let outside =
            |a: &u64| if known { !self.contains(*a) } else { a.abs_diff(innermost) > NEAR };
        chain.iter().copied().find(|a| outside(a)).unwrap_or(innermost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAIN: [u64; 4] = [
        0xffff_ffff_81a5_6314,
        0xffff_ffff_81a5_65f0,
        0xffff_ffff_812a_d4a3,
        0xffff_ffff_81a4_3e1d,
    ];

    #[test]
    fn sections_bound_the_locking_code() {
        let code = LockCode::new(&SymbolTable::from_kallsyms(
            b"ffffffff81a52350 T __sched_text_start\nffffffff81a5917a T __sched_text_end\n\
               ffffffff812ad400 T vm_mmap_pgoff\n",
        ));
        assert_eq!(code.caller(&CHAIN), CHAIN[2]);
        assert_eq!(code.caller(&CHAIN[1..]), CHAIN[2]);
        assert_eq!(code.caller(&CHAIN[..2]), CHAIN[0], "nothing but locking code");
        assert_eq!(code.caller(&[]), 0);
    }

    #[test]
    fn names_bound_it_where_sections_are_not_known() {
        let code = LockCode::new(&SymbolTable::from_kallsyms(
            b"ffffffff81a56000 t rwsem_down_write_slowpath\n\
               ffffffff81a56500 T down_write_killable\nffffffff81a56700 T schedule\n",
        ));
        assert_eq!(code.caller(&CHAIN), CHAIN[2]);
    }

    #[test]
    fn without_symbols_the_neighbourhood_does() {
        assert_eq!(LockCode::default().caller(&CHAIN), CHAIN[2]);
    }
}

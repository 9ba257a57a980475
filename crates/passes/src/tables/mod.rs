//! The tables of an [`Analysis`], one file each. This one turns threads into rows.

mod calls;
mod cpus;
mod facts;
mod groups;
mod holders;
mod irqs;
mod lanes;
mod procs;
mod steps;
mod switches;

pub use calls::errno_word;
pub use holders::{HolderFunction, HolderObject, HolderTime, add_holder_times, tell_functions};

use crate::analysis::Analysis;
use crate::rows::Group;
use crate::slot::Slot;
use crate::threads::{Thread, pid_of};

impl Analysis {
    pub(crate) fn sees_switches(&self) -> bool {
        self.capabilities.switches
    }

    fn group_key(&self, by: Group, slot: Slot, t: &Thread) -> GroupKey {
        match by {
            Group::System => GroupKey::All,
            Group::Command => GroupKey::Comm(self.comm(t), t.is_kthread()),
            // Without a process id the thread stands for its process.
            Group::Process => GroupKey::Pid(pid_of(t).unwrap_or(t.tid.0)),
            Group::Thread => GroupKey::Slot(slot),
            Group::Cgroup => GroupKey::Cgroup(self.path_of(self.group(t)).to_owned()),
        }
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum GroupKey {
    All,
    Comm(String, bool),
    Pid(u32),
    Slot(Slot),
    /// By path, because interned ids must not decide the order.
    Cgroup(String),
}

//! Decodes records to events by their plans.

use super::{LockdepKind, Plan, SoftirqKind, WakeKind};
use crate::Endian;
use holdup_trace::{ArgsRef, Batch, LocalNames, NameId, StackRef, What, in_irq};

/// Where a [`Plan::SysEnter64`] has its arguments.
pub(super) const ARGS: usize = 16;
/// Arguments of `raw_syscalls`, and the most that a system call has.
pub(super) const ALL_ARGS: u8 = 6;
/// Bytes of a [`Plan::SysEnter64`] with all arguments.
const SYS_ENTER_64: usize = ARGS + 8 * ALL_ARGS as usize;
/// Bytes of a [`Plan::SysExit64`].
const SYS_EXIT_64: usize = 24;

/// The type of a system call's number in a payload, which is at 8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallNumber {
    /// In `raw_syscalls`, 8 bytes.
    Long,
    /// In `syscalls`, 4 bytes; the 4 bytes after it may contain anything.
    Int,
}

impl CallNumber {
    #[inline(always)]
    fn get<E: Endian>(self, raw: &[u8]) -> u32 {
        E::u32(raw, if E::BIG && self == CallNumber::Long { 12 } else { 8 })
    }
}

/// Decodes a [`Plan::SysEnter64`]: number and arguments.
#[inline(always)]
pub fn sys_enter_64<E: Endian>(
    raw: &[u8],
    nr: CallNumber,
    args: u8,
    batch: &mut Batch,
) -> Option<(u32, ArgsRef)> {
    // The arguments do not go through this function's result, to avoid a copy of what was just
    // stored (see the reader of perf.data).
    if args == ALL_ARGS {
        let raw = raw.first_chunk::<SYS_ENTER_64>()?;
        let args = batch.push_args(std::array::from_fn(|i| E::u64(raw, ARGS + 8 * i)));
        return Some((nr.get::<E>(raw), args));
    }
    some_args::<E>(raw, nr, args, batch)
}

/// On its own, so that it takes no registers from the loop over calls with all arguments.
#[inline(never)]
fn some_args<E: Endian>(
    raw: &[u8],
    nr: CallNumber,
    args: u8,
    batch: &mut Batch,
) -> Option<(u32, ArgsRef)> {
    let (head, rest) = raw.split_first_chunk::<ARGS>()?;
    let rest = rest.get(..8 * args as usize)?;
    let args = batch.push_args(std::array::from_fn(|i| E::u64(rest, 8 * i)));
    Some((nr.get::<E>(head), args))
}

/// Decodes a [`Plan::SysExit64`]: number and result.
#[inline(always)]
pub fn sys_exit_64<E: Endian>(raw: &[u8], nr: CallNumber) -> Option<(u32, i64)> {
    let raw = raw.first_chunk::<SYS_EXIT_64>()?;
    Some((nr.get::<E>(raw), E::u64(raw, 16) as i64))
}

impl Plan {
    /// Shortest record this plan can decode.
    pub fn min_len(&self) -> usize {
        match *self {
            Plan::Other | Plan::Incomplete(_) => 0,
            Plan::SysEnter64 { args, .. } => ARGS + 8 * args as usize,
            Plan::SysExit64 { .. } => SYS_EXIT_64,
            Plan::Switch { min, .. }
            | Plan::Wake { min, .. }
            | Plan::Migrate { min, .. }
            | Plan::Fork { min, .. }
            | Plan::Exec { min, .. }
            | Plan::Exit { min, .. }
            | Plan::StatRuntime { min, .. }
            | Plan::StatDelay { min, .. }
            | Plan::BlockedReason { min, .. }
            | Plan::AttachTask { min, .. }
            | Plan::PiSetPrio { min, .. }
            | Plan::SysEnter { min, .. }
            | Plan::SysEnterNamed { min, .. }
            | Plan::SysExit { min, .. }
            | Plan::IrqEntry { min, .. }
            | Plan::IrqExit { min, .. }
            | Plan::VectorEntry { min, .. }
            | Plan::VectorExit { min, .. }
            | Plan::Softirq { min, .. }
            | Plan::WorkQueue { min, .. }
            | Plan::WorkStart { min, .. }
            | Plan::WorkEnd { min, .. }
            | Plan::PageFault { min, .. }
            | Plan::ContentionBegin { min, .. }
            | Plan::ContentionEnd { min, .. }
            | Plan::ContendedRelease { min, .. }
            | Plan::Lockdep { min, .. }
            | Plan::CpuIdle { min, .. } => min as usize,
        }
    }

    /// Decodes one raw record (starting at `common_type`). `None` if it is too short for its
    /// format. Contention events come with [`StackRef::NONE`]: the chain is not in the payload, and
    /// the container's reader adds it.
    #[inline(always)]
    pub fn decode<E: Endian>(
        &self,
        raw: &[u8],
        names: &mut LocalNames,
        batch: &mut Batch,
    ) -> Option<What> {
        match *self {
            Plan::SysEnter64 { nr, args } => sys_enter_64::<E>(raw, nr, args, batch)
                .map(|(nr, args)| What::SysEnter { nr, args }),
            Plan::SysExit64 { nr } => {
                sys_exit_64::<E>(raw, nr).map(|(nr, ret)| What::SysExit { nr, ret })
            }
            _ => self.decode_any::<E>(raw, names, batch),
        }
    }

    #[inline(never)]
    fn decode_any<E: Endian>(
        &self,
        raw: &[u8],
        names: &mut LocalNames,
        batch: &mut Batch,
    ) -> Option<What> {
        if raw.len() < self.min_len() {
            return None;
        }
        Some(match *self {
            // The last two are decoded above.
            Plan::Other
            | Plan::Incomplete(_)
            | Plan::SysEnter64 { .. }
            | Plan::SysExit64 { .. } => What::Other,
            Plan::SysEnter { id, args, arg_size, .. } => {
                let (at, size) = (args as usize, arg_size as usize);
                let arg = |i| {
                    if size == 8 { E::u64(raw, at + 8 * i) } else { E::u32(raw, at + 4 * i) as u64 }
                };
                What::SysEnter {
                    nr: id.u32::<E>(raw),
                    args: batch.push_args(std::array::from_fn(arg)),
                }
            }
            Plan::SysExit { id, ret, .. } => {
                What::SysExit { nr: id.u32::<E>(raw), ret: ret.get::<E>(raw) as i64 }
            }
            Plan::Switch {
                prev_comm,
                prev_pid,
                prev_prio,
                prev_state,
                ref states,
                next_comm,
                next_pid,
                next_prio,
                ..
            } => {
                let (prev, next) = (prev_pid.tid::<E>(raw), next_pid.tid::<E>(raw));
                What::Switch {
                    prev,
                    next,
                    prev_state: states.state(prev_state.get::<E>(raw)),
                    prev_comm: prev_comm.name::<E>(raw, prev.0, names),
                    next_comm: next_comm.name::<E>(raw, next.0, names),
                    prev_prio: prev_prio.prio::<E>(raw),
                    next_prio: next_prio.prio::<E>(raw),
                }
            }
            Plan::Wake { kind, comm, pid, prio, target_cpu, flags, .. } => {
                let tid = pid.tid::<E>(raw);
                let comm = comm.name::<E>(raw, tid.0, names);
                let prio = prio.prio::<E>(raw);
                let target = target_cpu.cpu::<E>(raw);
                match kind {
                    WakeKind::Waking => {
                        let flags = flags.map_or(0, |flags| flags.get::<E>(raw));
                        let in_irq = in_irq(flags);
                        What::Waking { tid, comm, prio, target, in_irq }
                    }
                    WakeKind::Wakeup => What::Wakeup { tid, comm, prio, target },
                    WakeKind::WakeupNew => What::WakeupNew { tid, comm, prio, target },
                }
            }
            Plan::Migrate { pid, orig_cpu, dest_cpu, .. } => What::Migrate {
                tid: pid.tid::<E>(raw),
                from: orig_cpu.cpu::<E>(raw),
                to: dest_cpu.cpu::<E>(raw),
            },
            Plan::Fork { parent_pid, child_pid, child_comm, .. } => {
                let child = child_pid.tid::<E>(raw);
                What::Fork {
                    parent: parent_pid.tid::<E>(raw),
                    child,
                    child_comm: child_comm.name::<E>(raw, child.0, names),
                }
            }
            Plan::Exec { pid, old_pid, filename, .. } => {
                let tid = pid.tid::<E>(raw);
                What::Exec {
                    tid,
                    old: old_pid.tid::<E>(raw),
                    filename: filename.name::<E>(raw, tid.0, names),
                }
            }
            Plan::Exit { pid, comm, .. } => {
                let tid = pid.tid::<E>(raw);
                What::Exit { tid, comm: comm.name::<E>(raw, tid.0, names) }
            }
            Plan::StatRuntime { pid, runtime, .. } => {
                What::StatRuntime { tid: pid.tid::<E>(raw), runtime: runtime.get::<E>(raw) }
            }
            Plan::StatDelay { kind, pid, delay, .. } => {
                What::StatDelay { kind, tid: pid.tid::<E>(raw), delay: delay.get::<E>(raw) }
            }
            Plan::BlockedReason { pid, io_wait, caller, .. } => What::BlockedReason {
                tid: pid.tid::<E>(raw),
                io_wait: io_wait.get::<E>(raw) != 0,
                caller: caller.get::<E>(raw),
                name: NameId::NONE,
            },
            Plan::AttachTask { pid, dst_root, dst_path, .. } => {
                let tid = pid.tid::<E>(raw);
                What::AttachTask {
                    tid,
                    root: dst_root.get::<E>(raw) as u32,
                    path: dst_path.name::<E>(raw, tid.0, names),
                }
            }
            Plan::PiSetPrio { pid, oldprio, newprio, .. } => What::PiSetPrio {
                tid: pid.tid::<E>(raw),
                old: oldprio.prio::<E>(raw),
                new: newprio.prio::<E>(raw),
            },
            Plan::SysEnterNamed { nr, ref args, .. } => {
                let args: [u64; 6] =
                    std::array::from_fn(|i| args[i].map_or(0, |a| a.get::<E>(raw)));
                What::SysEnter { nr: nr.u32::<E>(raw), args: batch.push_args(args) }
            }
            Plan::IrqEntry { irq, name, .. } => {
                let irq = irq.u32::<E>(raw);
                What::IrqEntry { irq, name: name.name::<E>(raw, irq, names) }
            }
            Plan::IrqExit { irq, .. } => What::IrqExit { irq: irq.u32::<E>(raw) },
            Plan::VectorEntry { vector, ref name, .. } => {
                let vector = vector.u32::<E>(raw);
                What::VectorEntry { vector, name: names.name(vector, name.as_bytes()) }
            }
            Plan::VectorExit { vector, .. } => What::VectorExit { vector: vector.u32::<E>(raw) },
            Plan::Softirq { kind, vec, .. } => {
                let vec = vec.u32::<E>(raw);
                match kind {
                    SoftirqKind::Raise => What::SoftirqRaise { vec },
                    SoftirqKind::Entry => What::SoftirqEntry { vec },
                    SoftirqKind::Exit => What::SoftirqExit { vec },
                }
            }
            Plan::WorkQueue { work, function, .. } => What::WorkQueue {
                work: work.get::<E>(raw),
                function: function.get::<E>(raw),
                name: NameId::NONE,
            },
            Plan::WorkStart { work, function, .. } => What::WorkStart {
                work: work.get::<E>(raw),
                function: function.get::<E>(raw),
                name: NameId::NONE,
            },
            Plan::WorkEnd { work, .. } => What::WorkEnd { work: work.get::<E>(raw) },
            Plan::PageFault { user, address, ip, .. } => {
                What::PageFault { user, address: address.get::<E>(raw), ip: ip.get::<E>(raw) }
            }
            Plan::ContentionBegin { lock_addr, flags, .. } => What::ContentionBegin {
                lock: lock_addr.get::<E>(raw),
                flags: flags.u32::<E>(raw),
                stack: StackRef::NONE,
            },
            Plan::ContentionEnd { lock_addr, ret, .. } => {
                What::ContentionEnd { lock: lock_addr.get::<E>(raw), ret: ret.get::<E>(raw) as i32 }
            }
            Plan::ContendedRelease { lock_addr, .. } => {
                What::ContendedRelease { lock: lock_addr.get::<E>(raw) }
            }
            Plan::Lockdep { kind, lock, name, flags, .. } => {
                let lock = lock.get::<E>(raw);
                let name = name.name::<E>(raw, (lock >> 4) as u32, names);
                match kind {
                    LockdepKind::Acquire => What::LockAcquire {
                        lock,
                        name,
                        flags: flags.map_or(0, |f| f.u32::<E>(raw)),
                    },
                    LockdepKind::Contended => What::LockContended { lock, name },
                    LockdepKind::Acquired => What::LockAcquired { lock, name },
                    LockdepKind::Release => What::LockRelease { lock, name },
                }
            }
            Plan::CpuIdle { state, cpu_id, .. } => {
                What::CpuIdle { state: state.u32::<E>(raw), cpu: cpu_id.cpu::<E>(raw) }
            }
        })
    }
}

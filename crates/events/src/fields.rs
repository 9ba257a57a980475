//! The content of an event as JSON members. Keys are the kernel's field names, with `pid` spelled
//! `tid` if it means a thread; addresses are hexadecimal strings, which no JSON reader rounds.

use crate::Tracker;
use crate::describe::{Describe, errno, lock_flags, stat_name};
use crate::names::Spelled;
use crate::put::{Number, Out};
use holdup_trace::{Batch, Cpu, Event, NameId, Tid, What, softirq_name};

/// A thread or process id, `null` if unknown.
pub(crate) fn json_id(out: &mut Out, id: u32) {
    if id == u32::MAX { out.str("null") } else { out.int(id) }
}

/// A name, `null` if there is none.
pub(crate) fn json_comm(out: &mut Out, comms: &mut Spelled, tid: Tid, comm: NameId) {
    match comm {
        _ if tid == Tid::IDLE => out.str("\"<idle>\""),
        NameId::NONE => out.str("null"),
        comm => out.word(comms.get(comm)),
    }
}

/// Writes members, with commas between.
struct Members<'a> {
    out: &'a mut Out,
    names: &'a mut Spelled,
    first: bool,
}

impl Members<'_> {
    fn key(&mut self, key: &str) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        self.out.push(b'"');
        self.out.str(key);
        self.out.str("\":");
    }

    fn int(&mut self, key: &str, n: impl Number) {
        self.key(key);
        self.out.int(n);
    }

    fn hex(&mut self, key: &str, n: u64) {
        self.key(key);
        self.out.push(b'"');
        self.out.hex(n);
        self.out.push(b'"');
    }

    /// A constant word, which needs no escaping.
    fn word(&mut self, key: &str, word: &str) {
        self.key(key);
        self.out.push(b'"');
        self.out.str(word);
        self.out.push(b'"');
    }

    fn name(&mut self, key: &str, id: NameId) {
        self.key(key);
        match id {
            NameId::NONE => self.out.str("null"),
            id => self.out.word(self.names.get(id)),
        }
    }

    fn tid(&mut self, key: &str, tid: Tid) {
        self.key(key);
        json_id(self.out, tid.0);
    }

    fn comm(&mut self, key: &str, tid: Tid, comm: NameId) {
        self.key(key);
        json_comm(self.out, self.names, tid, comm);
    }

    fn cpu(&mut self, key: &str, cpu: Cpu) {
        self.key(key);
        match cpu {
            Cpu::UNKNOWN => self.out.str("null"),
            cpu => self.out.int(cpu.0),
        }
    }

    fn function(&mut self, describe: &Describe<'_>, function: u64, name: NameId) {
        self.code("function", describe, function, name)
    }

    /// A place in the kernel: its name if known, else its address.
    fn code(&mut self, key: &str, describe: &Describe<'_>, function: u64, name: NameId) {
        if name != NameId::NONE {
            return self.name(key, name);
        }
        match describe.symbol(function) {
            Some((symbol, 0)) => {
                let symbol = serde_json::Value::from(symbol).to_string();
                self.key(key);
                self.out.str(&symbol);
            }
            _ => self.hex(key, function),
        }
    }

    fn call(&mut self, describe: &Describe<'_>, e: &Event, nr: u32) {
        self.int("nr", nr as i32);
        match describe.call(e, nr) {
            Some(name) => {
                self.key("name");
                self.out.push(b'"');
                self.out.word(name);
                self.out.push(b'"');
            }
            None => {
                self.key("name");
                self.out.str("null");
            }
        }
    }
}

/// The members of `fields`.
pub(crate) fn fields(
    out: &mut Out,
    names: &mut Spelled,
    describe: &Describe<'_>,
    e: &Event,
    batch: &Batch,
    tracker: &Tracker,
) {
    let mut m = Members { out, names, first: true };
    match e.what {
        What::Other => {}
        What::Switch { prev, next, prev_state, prev_comm, next_comm, prev_prio, next_prio } => {
            m.comm("prev_comm", prev, prev_comm);
            m.tid("prev_tid", prev);
            m.int("prev_prio", prev_prio);
            m.key("prev_state");
            m.out.push(b'"');
            prev_state.spell(|letter| m.out.push(letter));
            m.out.push(b'"');
            m.comm("next_comm", next, next_comm);
            m.tid("next_tid", next);
            m.int("next_prio", next_prio);
        }
        What::Waking { tid, comm, prio, target, .. }
        | What::Wakeup { tid, comm, prio, target }
        | What::WakeupNew { tid, comm, prio, target } => {
            m.comm("comm", tid, comm);
            m.tid("tid", tid);
            m.int("prio", prio);
            m.cpu("target_cpu", target);
        }
        What::Migrate { tid, from, to } => {
            m.comm("comm", tid, tracker.comm_of(tid));
            m.tid("tid", tid);
            m.cpu("orig_cpu", from);
            m.cpu("dest_cpu", to);
        }
        What::Fork { parent, child, child_comm } => {
            m.tid("parent_tid", parent);
            m.comm("child_comm", child, child_comm);
            m.tid("child_tid", child);
        }
        What::Exec { tid, old, filename } => {
            m.name("filename", filename);
            m.tid("tid", tid);
            m.tid("old_tid", old);
        }
        What::Exit { tid, comm } => {
            m.comm("comm", tid, comm);
            m.tid("tid", tid);
        }
        What::StatRuntime { tid, runtime } => {
            m.comm("comm", tid, tracker.comm_of(tid));
            m.tid("tid", tid);
            m.int("runtime_ns", runtime);
        }
        What::StatDelay { kind, tid, delay } => {
            m.comm("comm", tid, tracker.comm_of(tid));
            m.tid("tid", tid);
            m.word("kind", stat_name(kind));
            m.int("delay_ns", delay);
        }
        What::BlockedReason { tid, io_wait, caller, name } => {
            m.tid("tid", tid);
            m.key("io_wait");
            m.out.str(if io_wait { "true" } else { "false" });
            m.code("caller", describe, caller, name);
        }
        What::TaskParks { task, on, why } => {
            m.hex("task", task);
            m.word("why", why.name());
            m.hex("on", on);
        }
        What::Runtime { does, with } => {
            m.word("does", does.name());
            m.hex("with", with);
        }
        What::PiSetPrio { tid, old, new } => {
            m.tid("tid", tid);
            m.int("oldprio", old);
            m.int("newprio", new);
        }
        What::SysEnter { nr, args } => {
            m.call(describe, e, nr);
            if let Some(args) = batch.args(args) {
                m.key("args");
                for (i, &arg) in args.iter().enumerate() {
                    m.out.push(if i == 0 { b'[' } else { b',' });
                    m.out.push(b'"');
                    m.out.hex(arg);
                    m.out.push(b'"');
                }
                m.out.push(b']');
            }
        }
        What::SysExit { nr, ret } => {
            m.call(describe, e, nr);
            m.int("ret", ret);
            if let Some(name) = errno(ret) {
                m.word("errno", name);
            }
        }
        What::IrqEntry { irq, name } => {
            m.int("irq", irq);
            m.name("name", name);
        }
        What::IrqExit { irq } => m.int("irq", irq),
        What::VectorEntry { vector, name } => {
            m.int("vector", vector);
            m.name("name", name);
        }
        What::VectorExit { vector } => m.int("vector", vector),
        What::SoftirqRaise { vec } | What::SoftirqEntry { vec } | What::SoftirqExit { vec } => {
            m.int("vec", vec);
            if let Some(name) = softirq_name(vec) {
                m.word("action", name);
            }
        }
        What::WorkQueue { work, function, name } | What::WorkStart { work, function, name } => {
            m.hex("work", work);
            m.function(describe, function, name);
        }
        What::WorkEnd { work } => m.hex("work", work),
        What::PageFault { user, address, ip } => {
            m.key("user");
            m.out.str(if user { "true" } else { "false" });
            m.hex("address", address);
            m.hex("ip", ip);
        }
        What::ContentionBegin { lock, flags, stack } => {
            m.hex("lock_addr", lock);
            m.key("flags");
            m.out.push(b'"');
            lock_flags(m.out, flags);
            m.out.push(b'"');
            if let Some(&caller) = batch.stack(stack).first() {
                m.hex("ip", caller);
            }
        }
        What::ContentionEnd { lock, ret } => {
            m.hex("lock_addr", lock);
            m.int("ret", ret);
        }
        What::ContendedRelease { lock } => m.hex("lock_addr", lock),
        What::LockAcquire { lock, name, flags } => {
            m.hex("lockdep_addr", lock);
            m.name("name", name);
            m.int("flags", flags);
        }
        What::LockContended { lock, name }
        | What::LockAcquired { lock, name }
        | What::LockRelease { lock, name } => {
            m.hex("lockdep_addr", lock);
            m.name("name", name);
        }
        What::CpuIdle { state, cpu } => {
            m.int("state", state as i32);
            m.cpu("cpu_id", cpu);
        }
        What::Sample { period, stack } => {
            m.int("period", period);
            if let Some(&ip) = batch.stack(stack).first() {
                m.hex("ip", ip);
            }
        }
        What::Readings { of, .. } => {
            m.key("readings");
            for (i, r) in batch.readings(of).iter().enumerate() {
                let name = serde_json::Value::from(describe.event_name(r.event));
                m.out.str(if i == 0 { "{" } else { "," });
                m.out.str(&name.to_string());
                m.out.str(":");
                m.out.int(r.value);
            }
            m.out.str("}");
        }
        What::Stack { of } | What::Leaves { of, .. } => {
            if let Some(&ip) = batch.stack(of).first() {
                m.hex("ip", ip);
            }
        }
        What::Mapped { pid, mapping } => {
            let Some(map) = batch.mapping(mapping) else { return };
            m.tid("pid", Tid(pid.0));
            m.hex("addr", map.start);
            m.hex("len", map.len);
            m.hex("pgoff", map.offset);
            m.name("filename", map.file);
        }
        What::InGroup { tid, group } => {
            m.tid("tid", tid);
            m.name("cgroup", group);
        }
        What::AttachTask { tid, root, path } => {
            m.tid("pid", tid);
            m.int("dst_root", root);
            m.name("dst_path", path);
        }
        What::Comm { tid, pid, comm, exec } => {
            m.comm("comm", tid, comm);
            m.tid("tid", tid);
            m.tid("pid", Tid(pid.0));
            m.key("exec");
            m.out.str(if exec { "true" } else { "false" });
        }
        What::TaskNew { tid, pid, parent_tid, parent_pid } => {
            m.tid("tid", tid);
            m.tid("pid", Tid(pid.0));
            m.tid("parent_tid", parent_tid);
            m.tid("parent_pid", Tid(parent_pid.0));
        }
        What::TaskEnd { tid, pid } => {
            m.tid("tid", tid);
            m.tid("pid", Tid(pid.0));
        }
        What::ContextSwitch { out: leaves, preempt, other } => {
            m.word("direction", if leaves { "out" } else { "in" });
            m.key("preempt");
            m.out.str(if preempt { "true" } else { "false" });
            m.tid("other_tid", other);
        }
        What::Lost { count } => m.int("lost", count),
    }
}

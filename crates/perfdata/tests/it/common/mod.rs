//! Builds small perf.data files byte by byte, in either byte order and any container.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

use holdup_perfdata::{PerfData, open_stream};
use holdup_trace::{Batch, Event, EventId, Quality, Reader};
use std::path::Path;

/// IP, TID, TIME, CPU, PERIOD, RAW, IDENTIFIER: what perf asks for with tracepoints.
pub const TRACEPOINT: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 16;
/// [`TRACEPOINT`] with CALLCHAIN.
pub const WITH_CHAIN: u64 = TRACEPOINT | 1 << 5;
/// IP, TID, TIME, CPU, PERIOD, IDENTIFIER: what perf asks for with counters in addition to
/// tracepoints.
const COUNTER: u64 = TRACEPOINT & !(1 << 10);
const SAMPLE_ID_ALL: u64 = 1 << 18;

pub const SWITCH_ID: u16 = 5;
pub const CONTENTION_ID: u16 = 6;

/// Ids of the two attrs every built file has: a sched_switch and a lock:contention_begin.
pub const ID_SWITCH: u64 = 100;
pub const ID_CONTENTION: u64 = 200;
/// Ids of a group on CPU 0: `sched_switch` read with `cycles:u` and `instructions:u`, in files with
/// [`Builder::group`].
pub const ID_GROUP: [u64; 3] = [400, 401, 402];
/// Id of `cycles:u`, in files with [`Builder::counters`].
pub const ID_CYCLES: u64 = 300;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Container {
    File,
    Pipe,
    Compressed,
    Compressed2,
}

pub struct Builder {
    pub big: bool,
    pub records: Vec<u8>,
    pub tracing: bool,
    /// `cycles:u` was recorded too.
    pub counters: bool,
    /// A group was recorded too.
    pub group: bool,
    /// Switches have call chains ([`Builder::switch_from`]).
    pub chains: bool,
    /// Switches show the system call that the thread is in ([`Builder::switch_in`]).
    pub calls: bool,
    /// Switches carry the thread's control group ([`Builder::switch_of`]).
    pub cgroups: bool,
}

impl Builder {
    pub fn new(big: bool) -> Builder {
        Builder {
            big,
            records: Vec::new(),
            tracing: true,
            counters: false,
            group: false,
            chains: false,
            calls: false,
            cgroups: false,
        }
    }

    pub fn u16(&self, v: u16) -> [u8; 2] {
        if self.big { v.to_be_bytes() } else { v.to_le_bytes() }
    }
    pub fn u32(&self, v: u32) -> [u8; 4] {
        if self.big { v.to_be_bytes() } else { v.to_le_bytes() }
    }
    pub fn u64(&self, v: u64) -> [u8; 8] {
        if self.big { v.to_be_bytes() } else { v.to_le_bytes() }
    }

    pub fn record(&self, kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let mut r = Vec::from(self.u32(kind));
        r.extend(self.u16(misc));
        r.extend(self.u16(8 + body.len() as u16));
        r.extend(body);
        r
    }

    pub fn push(&mut self, kind: u32, misc: u16, body: &[u8]) {
        let r = self.record(kind, misc, body);
        self.records.extend(r);
    }

    fn sample(&mut self, id: u64, ts: u64, cpu: u32, tid: u32, chain: Option<&[u64]>, raw: &[u8]) {
        let mut b = Vec::new();
        b.extend(self.u64(id));
        b.extend(self.u64(0xffff_ffff_8100_0000));
        b.extend(self.u32(tid)); // pid
        b.extend(self.u32(tid));
        b.extend(self.u64(ts));
        b.extend(self.u32(cpu));
        b.extend(self.u32(0));
        b.extend(self.u64(1));
        if let Some(chain) = chain {
            b.extend(self.u64(chain.len() as u64));
            chain.iter().for_each(|&f| b.extend(self.u64(f)));
        }
        // The kernel pads so that size word and payload together fill whole words.
        let padded = (raw.len() + 4).next_multiple_of(8) - 4;
        b.extend(self.u32(padded as u32));
        b.extend(raw);
        b.resize(b.len() + padded - raw.len(), 0);
        self.push(9, 1, &b);
    }

    /// A sched_switch of `tid` to `next`; `extra` bytes follow the payload itself.
    pub fn switch_with(&mut self, ts: u64, cpu: u32, tid: u32, next: u32, extra: &[u8]) {
        let mut raw = self.switch_payload(tid, next);
        raw.extend(extra);
        self.sample(ID_SWITCH, ts, cpu, tid, None, &raw);
    }

    /// A sched_switch with a call chain, in files with `chains`.
    pub fn switch_from(&mut self, ts: u64, cpu: u32, tid: u32, next: u32, chain: &[u64]) {
        let raw = self.switch_payload(tid, next);
        self.sample(ID_SWITCH, ts, cpu, tid, Some(chain), &raw);
    }

    /// A sched_switch of a thread in the control group with this id, in files with `cgroups`.
    pub fn switch_of(&mut self, ts: u64, cpu: u32, (tid, next): (u32, u32), group: u64) {
        let at = self.records.len();
        self.switch(ts, cpu, tid, next);
        let size = self.records.len() - at + 8;
        let size = self.u16(size as u16);
        self.records[at + 6..at + 8].copy_from_slice(&size);
        let id = self.u64(group);
        self.records.extend(id);
    }

    /// PERF_RECORD_CGROUP.
    pub fn cgroup(&mut self, ts: u64, id: u64, path: &str) {
        let mut b = self.u64(id).to_vec();
        b.extend(path.bytes());
        b.resize((b.len() + 1).next_multiple_of(8), 0);
        self.side(19, 0, &b, ts, 0, 0);
    }

    /// A sched_switch with the kernel's part of a call chain and one register, in files with
    /// `calls`; a kernel thread has no registers.
    pub fn switch_in(&mut self, ts: u64, tid: u32, chain: &[u64], register: Option<u64>) {
        let mut raw = self.switch_payload(tid, 0);
        raw.resize((raw.len() + 4).next_multiple_of(8) - 4, 0);
        let words = match register {
            Some(register) => vec![2, register],
            None => vec![0],
        };
        let mut b = Vec::new();
        for word in [ID_SWITCH, 0xffff_ffff_8100_0000] {
            b.extend(self.u64(word));
        }
        b.extend(self.words(&[tid, tid]));
        b.extend(self.u64(ts));
        b.extend(self.words(&[0, 0]));
        for word in [1, chain.len() as u64].iter().chain(chain) {
            b.extend(self.u64(*word));
        }
        b.extend(self.u32(raw.len() as u32));
        b.extend(raw);
        words.iter().for_each(|&word| b.extend(self.u64(word)));
        self.push(9, 1, &b);
    }

    /// PERF_RECORD_MMAP2 of executable memory: identified by an inode, or by a build id.
    pub fn mmap2(&mut self, ts: u64, pid: u32, at: [u64; 3], build: Option<&[u8]>, file: &str) {
        let mut b = self.words(&[pid, pid]);
        at.iter().for_each(|&v| b.extend(self.u64(v)));
        match build {
            Some(id) => {
                b.extend([id.len() as u8, 0, 0, 0]);
                b.extend(id);
                b.resize(b.len() + 20 - id.len(), 0);
            }
            None => b.extend(self.words(&[8, 1, 4711, 0, 0, 0])),
        }
        b.extend(self.words(&[5, 2]));
        b.extend(file.bytes());
        b.resize((b.len() + 1).next_multiple_of(8), 0);
        let misc = 2 | if build.is_some() { 1 << 14 } else { 0 };
        self.side(10, misc, &b, ts, 0, pid);
    }

    /// PERF_RECORD_MMAP.
    pub fn mmap(&mut self, ts: u64, misc: u16, pid: u32, at: [u64; 3], file: &str) {
        let mut b = self.words(&[pid, pid]);
        at.iter().for_each(|&v| b.extend(self.u64(v)));
        b.extend(file.bytes());
        b.resize((b.len() + 1).next_multiple_of(8), 0);
        self.side(1, misc, &b, ts, 0, pid);
    }

    /// PERF_RECORD_KSYMBOL of a BPF program, which is loaded or unloaded.
    pub fn ksymbol(&mut self, ts: u64, (start, len): (u64, u32), gone: bool, name: &str) {
        let mut b = self.u64(start).to_vec();
        b.extend(self.u32(len));
        b.extend(self.u16(1));
        b.extend(self.u16(gone.into()));
        b.extend(name.bytes());
        b.resize((b.len() + 1).next_multiple_of(8), 0);
        self.side(17, 0, &b, ts, 0, 0);
    }

    fn switch_payload(&self, tid: u32, next: u32) -> Vec<u8> {
        let mut raw = Vec::from(self.u16(SWITCH_ID));
        raw.resize(8, 0);
        raw.extend(*b"prev\0\0\0\0\0\0\0\0\0\0\0\0");
        raw.extend(self.u32(tid));
        raw.extend(self.u32(120));
        raw.extend(self.u64(1));
        raw.extend(*b"next\0\0\0\0\0\0\0\0\0\0\0\0");
        raw.extend(self.u32(next));
        raw.extend(self.u32(120));
        raw
    }

    pub fn switch(&mut self, ts: u64, cpu: u32, tid: u32, next: u32) {
        self.switch_with(ts, cpu, tid, next, &[]);
    }

    pub fn contention(&mut self, ts: u64, cpu: u32, tid: u32, chain: &[u64]) {
        let mut raw = Vec::from(self.u16(CONTENTION_ID));
        raw.resize(8, 0);
        raw.extend(self.u64(0xffff_8880_0000_1000));
        raw.extend(self.u32(32));
        self.sample(ID_CONTENTION, ts, cpu, tid, Some(chain), &raw);
    }

    /// The trailer of `sample_id_all`.
    pub fn trailer(&self, ts: u64, cpu: u32, tid: u32) -> Vec<u8> {
        let mut b = Vec::new();
        b.extend(self.u32(tid));
        b.extend(self.u32(tid));
        b.extend(self.u64(ts));
        b.extend(self.u32(cpu));
        b.extend(self.u32(0));
        b.extend(self.u64(ID_SWITCH));
        b
    }

    /// A side-band record: words, then the trailer.
    pub fn side(&mut self, kind: u32, misc: u16, body: &[u8], ts: u64, cpu: u32, tid: u32) {
        let mut b = body.to_vec();
        b.extend(self.trailer(ts, cpu, tid));
        self.push(kind, misc, &b);
    }

    pub fn words(&self, words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|&w| self.u32(w)).collect()
    }

    pub fn comm(&mut self, ts: u64, tid: u32, name: &[u8; 8]) {
        let mut b = self.words(&[tid, tid]);
        b.extend(name);
        self.side(3, 0, &b, ts, 0, tid);
    }

    pub fn fork(&mut self, ts: u64, parent: u32, tid: u32) {
        let mut b = self.words(&[tid, parent, tid, parent]);
        b.extend(self.u64(ts));
        self.side(7, 0, &b, ts, 0, parent);
    }

    pub fn round(&mut self) {
        self.push(68, 0, &[]);
    }

    fn attr(&self, config: u16, sample_type: u64) -> Vec<u8> {
        let mut a = Vec::from(self.u32(2));
        a.extend(self.u32(136));
        a.extend(self.u64(config as u64));
        a.extend(self.u64(1));
        a.extend(self.u64(sample_type));
        a.extend(self.u64(1 << 2 | 1 << 4));
        a.extend(self.u64(if self.big { SAMPLE_ID_ALL.reverse_bits() } else { SAMPLE_ID_ALL }));
        a.resize(136, 0);
        a
    }

    fn switch_attr(&self) -> Vec<u8> {
        const REGS_USER: u64 = 1 << 12;
        const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
        const CGROUP: u64 = 1 << 21;
        if self.cgroups {
            return self.attr(SWITCH_ID, TRACEPOINT | CGROUP);
        }
        if !self.calls {
            return self.attr(SWITCH_ID, if self.chains { WITH_CHAIN } else { TRACEPOINT });
        }
        let mut a = self.attr(SWITCH_ID, WITH_CHAIN | REGS_USER);
        let flags = SAMPLE_ID_ALL | EXCLUDE_CALLCHAIN_USER;
        a[40..48].copy_from_slice(&self.u64(if self.big { flags.reverse_bits() } else { flags }));
        a[80..88].copy_from_slice(&self.u64(1 << 5));
        a
    }

    fn attrs(&self) -> Vec<(Vec<u8>, u64)> {
        let mut attrs = vec![
            (self.switch_attr(), ID_SWITCH),
            (
                self.attr(CONTENTION_ID, if self.calls { TRACEPOINT } else { WITH_CHAIN }),
                ID_CONTENTION,
            ),
        ];
        if self.counters {
            attrs.push((self.cycles_attr(), ID_CYCLES));
        }
        if self.group {
            attrs.push((self.group_attr(2, SWITCH_ID, 1), ID_GROUP[0]));
            attrs.push((self.group_attr(0, 0, 0), ID_GROUP[1]));
            attrs.push((self.group_attr(0, 1, 0), ID_GROUP[2]));
        }
        attrs
    }

    /// A member of a group that reads the times too; with period 0 it takes no samples.
    fn group_attr(&self, kind: u32, config: u16, period: u64) -> Vec<u8> {
        const READ: u64 = 1 << 4;
        /// Both times, ids, the whole group, samples lost.
        const FORMAT: u64 = 0b1_1111;
        let flags = SAMPLE_ID_ALL | if kind == 0 { 1 << 5 | 1 << 6 } else { 0 };
        let mut a = self.attr(config, TRACEPOINT | READ);
        a[..4].copy_from_slice(&self.u32(kind));
        a[16..24].copy_from_slice(&self.u64(period));
        a[32..40].copy_from_slice(&self.u64(FORMAT));
        a[40..48].copy_from_slice(&self.u64(if self.big { flags.reverse_bits() } else { flags }));
        a
    }

    /// A switch of the group's leader, with the values of its members after `times` (enabled,
    /// running).
    pub fn group_switch(
        &mut self,
        ts: u64,
        cpu: u32,
        (tid, next): (u32, u32),
        times: (u64, u64),
        members: &[(u64, u64)],
    ) {
        let mut b = [self.u64(ID_GROUP[0]), self.u64(0xffff_ffff_8100_0000)].concat();
        b.extend(self.words(&[tid, tid]));
        b.extend(self.u64(ts));
        b.extend(self.words(&[cpu, 0]));
        b.extend(self.u64(1));
        for v in [1 + members.len() as u64, times.0, times.1, 1, ID_GROUP[0], 0] {
            b.extend(self.u64(v));
        }
        for &(id, value) in members {
            [value, id, 0].iter().for_each(|&v| b.extend(self.u64(v)));
        }
        let raw = self.switch_payload(tid, next);
        b.extend(self.u32(raw.len() as u32 + 4));
        b.extend(raw);
        b.extend([0; 4]);
        self.push(9, 1, &b);
    }

    /// PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 4000 samples a second, without kernel and
    /// hypervisor.
    fn cycles_attr(&self) -> Vec<u8> {
        const FREQ: u64 = 1 << 10;
        let flags = SAMPLE_ID_ALL | FREQ | 1 << 5 | 1 << 6;
        let mut a = self.attr(0, COUNTER);
        a[..4].copy_from_slice(&self.u32(0));
        a[16..24].copy_from_slice(&self.u64(4000));
        a[40..48].copy_from_slice(&self.u64(if self.big { flags.reverse_bits() } else { flags }));
        a
    }

    /// A sample of `cycles:u`: `period` counts after the previous one.
    pub fn cycles(&mut self, ts: u64, cpu: u32, tid: u32, ip: u64, period: u64) {
        let mut b = [self.u64(ID_CYCLES), self.u64(ip)].concat();
        b.extend(self.words(&[tid, tid]));
        b.extend(self.u64(ts));
        b.extend(self.words(&[cpu, 0]));
        b.extend(self.u64(period));
        self.push(9, 2, &b);
    }

    pub fn tracing_data(&self) -> Vec<u8> {
        const SWITCH: &str = "name: sched_switch\nID: 5\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
            \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
            \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
            \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
            \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
            \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
            \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n";
        const CONTENTION: &str = "name: contention_begin\nID: 6\nformat:\n\
            \tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n\
            \tfield:unsigned int flags;\toffset:16;\tsize:4;\tsigned:0;\n";
        let mut b = Vec::from(*b"\x17\x08\x44tracing0.6\0");
        b.extend([self.big as u8, 8]);
        b.extend(self.u32(4096));
        for name in [&b"header_page\0"[..], b"header_event\0"] {
            b.extend(name);
            b.extend(self.u64(0));
        }
        b.extend(self.u32(0));
        b.extend(self.u32(2));
        for (system, format) in [(&b"sched\0"[..], SWITCH), (b"lock\0", CONTENTION)] {
            b.extend(system);
            b.extend(self.u32(1));
            b.extend(self.u64(format.len() as u64));
            b.extend(format.as_bytes());
        }
        b.extend(self.u32(0));
        b.extend(self.u32(0));
        b.extend(self.u64(0));
        b
    }

    /// A finished file around the records.
    pub fn build(&self, container: Container) -> Vec<u8> {
        match container {
            Container::File => self.file(&self.records),
            Container::Pipe => self.pipe(),
            Container::Compressed => self.file(&self.compress(81)),
            Container::Compressed2 => self.file(&self.compress(83)),
        }
    }

    fn magic(&self) -> [u8; 8] {
        if self.big { *b"2ELIFREP" } else { *b"PERFILE2" }
    }

    /// Data first, then the attrs: the header has their offsets.
    fn file(&self, records: &[u8]) -> Vec<u8> {
        let mut f = Vec::from(self.magic());
        let attrs = self.attrs();
        let data = 104u64;
        let table = data + records.len() as u64;
        let tracing = if self.tracing { self.tracing_data() } else { Vec::new() };
        let hostname: Vec<u8> = [&self.u32(8)[..], b"machine\0"].concat();
        let sections = [tracing, hostname];
        let attrs_at = table + 32 + sections.iter().map(|s| s.len() as u64).sum::<u64>();
        for v in [
            104,
            152,
            attrs_at,
            152 * attrs.len() as u64,
            data,
            records.len() as u64,
            0,
            0,
            1 << 1 | 1 << 3,
            0,
            0,
            0,
        ] {
            f.extend(self.u64(v));
        }
        f.extend(records);
        let mut at = table + 32;
        for s in &sections {
            f.extend(self.u64(at));
            f.extend(self.u64(s.len() as u64));
            at += s.len() as u64;
        }
        sections.iter().for_each(|s| f.extend(s));
        let ids_at = attrs_at + 152 * attrs.len() as u64;
        for (i, (attr, _)) in attrs.iter().enumerate() {
            f.extend(attr);
            f.extend(self.u64(ids_at + 8 * i as u64));
            f.extend(self.u64(8));
        }
        attrs.iter().for_each(|(_, id)| f.extend(self.u64(*id)));
        f
    }

    fn pipe(&self) -> Vec<u8> {
        let mut f = Vec::from(self.magic());
        f.extend(self.u64(16));
        for (attr, id) in self.attrs() {
            let body = [&attr[..], &self.u64(id)].concat();
            f.extend(self.record(64, 0, &body));
        }
        if self.tracing {
            let mut tracing = self.tracing_data();
            tracing.resize(tracing.len().next_multiple_of(8), 0);
            f.extend(self.record(66, 0, &self.u32(tracing.len() as u32)));
            f.extend(tracing);
        }
        f.extend(&self.records);
        f
    }

    /// One zstd stream, flushed every 1000 bytes wherever that is in a record.
    fn compress(&self, kind: u32) -> Vec<u8> {
        use std::io::Write;
        let mut out = Vec::new();
        let mut stream = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        for chunk in self.records.chunks(1000) {
            stream.write_all(chunk).unwrap();
            stream.flush().unwrap();
            let mut data = std::mem::take(stream.get_mut());
            if kind == 83 {
                let n = data.len() as u64;
                data.resize(data.len().next_multiple_of(8), 0);
                data.splice(0..0, self.u64(n));
            }
            out.extend(self.record(kind, 0, &data));
            // perf's own records lie between the compressed ones.
            out.extend(self.record(82, 0, &[]));
        }
        out
    }
}

/// Everything a reader yields, runs in file order.
pub fn drain(file: &PerfData) -> (Vec<Event>, Quality) {
    let mut quality = file.quality().clone();
    let (mut all, mut batch) = (Vec::new(), Batch::new());
    for run in 0..file.runs().len() {
        let mut decoder = file.decoder(run);
        let mut last = file.runs()[run].first_ts;
        loop {
            batch.clear();
            let more = decoder.fill(&mut batch).unwrap();
            quality.absorb(&batch.quality);
            for e in &batch.events {
                assert!(e.ts >= last, "run {run} steps back from {last} to {}", e.ts);
                last = e.ts;
            }
            all.append(&mut batch.events);
            if !more {
                break;
            }
        }
    }
    (all, quality)
}

/// What a merge of the runs yields: a stable sort.
pub fn merged(file: &PerfData) -> Vec<Event> {
    let mut all = drain(file).0;
    all.sort_by_key(|e| e.ts);
    all
}

pub fn open_bytes(bytes: &[u8]) -> holdup_trace::Result<PerfData> {
    open_stream(Path::new("-"), bytes)
}

/// (time, cpu, tid, event) of what perf script would print.
pub fn printed(events: &[Event]) -> Vec<(u64, u16, u32, u16)> {
    events
        .iter()
        .filter(|e| e.id != EventId::SIDEBAND)
        .map(|e| (e.ts, e.cpu.0, e.tid.0, e.id.0))
        .collect()
}

/// All files below `folder` whose name passes, in a fixed order.
pub fn files_below(folder: &Path, pass: &dyn Fn(&str) -> bool) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().and_then(|n| n.to_str()).is_some_and(pass) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

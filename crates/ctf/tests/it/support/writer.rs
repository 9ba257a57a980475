//! Writes traces as LTTng does: metadata, and packets of events, in either byte order, with either
//! header, with and without context.

/// The properties of the trace.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Spec {
    pub(crate) big: bool,
    /// `event_header_large`, not `compact`.
    pub(crate) large: bool,
    /// The thread, its process and name with every event.
    pub(crate) context: bool,
    /// Metadata in packets, not as text.
    pub(crate) packets: bool,
}

/// Every layout.
pub(crate) const SPECS: [Spec; 4] = [
    Spec { big: false, large: false, context: false, packets: true },
    Spec { big: true, large: true, context: false, packets: true },
    Spec { big: false, large: true, context: true, packets: false },
    Spec { big: true, large: false, context: true, packets: false },
];

pub(crate) const UUID: [u8; 16] = *b"holdup-ctf-tests";

/// A sequence of bits.
#[derive(Clone)]
pub(crate) struct Bits {
    big: bool,
    pub(crate) bytes: Vec<u8>,
    at: usize,
}

impl Bits {
    fn new(big: bool) -> Bits {
        Bits { big, bytes: Vec::new(), at: 0 }
    }

    pub(crate) fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
        self.bytes.resize(self.at.div_ceil(8), 0);
    }

    pub(crate) fn int(&mut self, size: usize, value: u64) {
        self.bytes.resize((self.at + size).div_ceil(8), 0);
        for n in 0..size {
            let bit = if self.big { size - 1 - n } else { n };
            if value >> bit & 1 == 1 {
                let at = self.at + n;
                self.bytes[at / 8] |= if self.big { 0x80 >> (at % 8) } else { 1 << (at % 8) };
            }
        }
        self.at += size;
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.align(8);
        self.int(32, u64::from(value));
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.align(8);
        self.int(64, value);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.align(8);
        self.bytes.extend(text.bytes().chain([0]));
        self.at = self.bytes.len() * 8;
    }

    pub(crate) fn comm(&mut self, text: &str) {
        self.align(8);
        let mut comm = [0; 16];
        comm[..text.len()].copy_from_slice(text.as_bytes());
        self.bytes.extend(comm);
        self.at = self.bytes.len() * 8;
    }
}

/// A packet that grows. The methods add an event each.
pub(crate) struct Packet {
    spec: Spec,
    bits: Bits,
    cpu: u32,
    begin: u64,
    end: u64,
    seq: u64,
    discarded: u64,
    /// Where the packet's context begins.
    context: usize,
}

impl Packet {
    pub(crate) fn new(spec: Spec, cpu: u32, seq: u64, begin: u64) -> Packet {
        let mut bits = Bits::new(spec.big);
        bits.u32(0xc1fc_1fc1);
        bits.bytes.extend(UUID);
        bits.at += 128;
        bits.u32(0);
        bits.u64(u64::from(cpu));
        let context = bits.bytes.len();
        for _ in 0..6 {
            bits.u64(0);
        }
        bits.u32(0);
        Packet { spec, bits, cpu, begin, end: begin, seq, discarded: 0, context }
    }

    /// `count` events were discarded since the stream began.
    pub(crate) fn discarded(mut self, count: u64) -> Packet {
        self.discarded = count;
        self
    }

    /// An event's header and context, then what `fields` writes.
    pub(crate) fn event(
        mut self,
        ts: u64,
        id: u32,
        tid: u32,
        fields: impl FnOnce(&mut Bits),
    ) -> Packet {
        let bits = &mut self.bits;
        self.end = ts;
        bits.align(8);
        // A short time stamp is enough for events soon after the last one.
        match self.spec.large {
            false if id < 31 => {
                bits.int(5, u64::from(id));
                bits.int(27, ts & 0x7ff_ffff);
            }
            false => {
                bits.int(5, 31);
                bits.align(8);
                bits.u32(id);
                bits.u64(ts);
            }
            true => {
                bits.int(16, u64::from(id));
                bits.u32(ts as u32);
            }
        }
        bits.align(8);
        if self.spec.context {
            bits.u32(tid);
            bits.u32(tid / 10 * 10);
            bits.comm(&format!("thread{tid}"));
        }
        fields(bits);
        self
    }

    pub(crate) fn switch(self, ts: u64, prev: u32, next: u32, state: u64) -> Packet {
        self.event(ts, 0, prev, |b| {
            b.comm(&format!("thread{prev}"));
            b.u32(prev);
            b.u32(20);
            b.u64(state);
            b.comm(&format!("thread{next}"));
            b.u32(next);
            b.u32(20);
        })
    }

    pub(crate) fn waking(self, ts: u64, current: u32, tid: u32, cpu: u32) -> Packet {
        self.event(ts, 1, current, |b| {
            b.comm(&format!("thread{tid}"));
            b.u32(tid);
            b.u32(20);
            b.u32(cpu);
        })
    }

    pub(crate) fn irq(self, ts: u64, current: u32, irq: u32, name: &str) -> Packet {
        self.event(ts, 2, current, |b| {
            b.u32(irq);
            b.text(name);
        })
    }

    pub(crate) fn softirq(self, ts: u64, current: u32, vec: u32) -> Packet {
        self.event(ts, 3, current, |b| b.u32(vec))
    }

    pub(crate) fn futex(self, ts: u64, tid: u32, uaddr: u64, op: u32) -> Packet {
        self.event(ts, 4, tid, |b| {
            b.u64(uaddr);
            b.u32(op);
            b.u32(1);
            b.u64(0);
            b.u64(uaddr + 64);
            b.u32(0);
        })
    }

    pub(crate) fn futex_exit(self, ts: u64, tid: u32, ret: i64) -> Packet {
        self.event(ts, 5, tid, |b| {
            b.u64(ret as u64);
            b.u64(0);
        })
    }

    pub(crate) fn fork(self, ts: u64, parent: u32, child: u32, vtids: &[u32]) -> Packet {
        self.event(ts, 6, parent, |b| {
            b.comm("parent");
            b.u32(parent);
            b.u32(parent / 10 * 10);
            b.comm("child");
            b.u32(child);
            b.align(8);
            b.int(8, vtids.len() as u64);
            vtids.iter().for_each(|&v| b.u32(v));
            b.u32(child / 10 * 10);
        })
    }

    pub(crate) fn openat(self, ts: u64, tid: u32, name: &str) -> Packet {
        self.event(ts, 41, tid, |b| {
            b.u32(-100i32 as u32);
            b.text(name);
            b.u32(0x8000);
            b.u32(0o644);
        })
    }

    pub(crate) fn read(self, ts: u64, tid: u32, fd: u32) -> Packet {
        self.event(ts, 42, tid, |b| {
            b.u32(fd);
            b.u64(4096);
        })
    }

    /// `clone3` is newer than the LTTng that wrote this.
    pub(crate) fn unknown_call(self, ts: u64, tid: u32, nr: u32, args: [u64; 6]) -> Packet {
        self.event(ts, 44, tid, |b| {
            b.u32(nr);
            args.into_iter().for_each(|a| b.u64(a));
        })
    }

    pub(crate) fn process(self, ts: u64, current: u32, tid: u32, ppid: u32, name: &str) -> Packet {
        self.event(ts, 43, current, |b| {
            b.u32(tid);
            b.u32(tid / 10 * 10);
            b.u32(ppid);
            b.comm(name);
            b.u32(u32::from(ppid == 2));
        })
    }

    /// An event with every kind of field, nested.
    pub(crate) fn motley(self, ts: u64, current: u32, choice: u64) -> Packet {
        self.event(ts, 50, current, |b| {
            b.align(32);
            b.int(3, choice);
            b.int(13, 0x1234);
            match choice {
                1 => b.text("one"),
                2 => {
                    b.align(32);
                    b.int(32, 7);
                }
                _ => {
                    b.align(8);
                    b.int(8, 2);
                    for n in 0..2 {
                        b.align(8);
                        b.int(8, n);
                        b.text("x");
                    }
                }
            }
            b.align(32);
            b.int(32, 0x3f80_0000);
            b.align(1);
            for n in 0..5 {
                b.int(7, n);
            }
        })
    }

    /// The finished packet, `size` bytes long or as long as it must be.
    pub(crate) fn build(mut self, size: usize) -> Vec<u8> {
        let content = self.bits.at;
        let mut bytes = self.bits.bytes;
        bytes.resize(size.max(bytes.len()), 0);
        let mut context = Bits::new(self.spec.big);
        for value in
            [self.begin, self.end, content as u64, bytes.len() as u64 * 8, self.seq, self.discarded]
        {
            context.u64(value);
        }
        context.u32(self.cpu);
        self.bits = context;
        bytes[self.context..self.context + self.bits.bytes.len()].copy_from_slice(&self.bits.bytes);
        bytes
    }
}

/// The file `metadata`.
pub(crate) fn metadata(spec: Spec) -> Vec<u8> {
    let text = text(spec);
    if !spec.packets {
        return format!("/* CTF 1.8 */\n\n{text}").into_bytes();
    }
    let mut out = Vec::new();
    for part in text.as_bytes().chunks(1500) {
        let mut bits = Bits::new(spec.big);
        bits.u32(0x75d1_1d57);
        bits.bytes.extend(UUID);
        bits.at += 128;
        bits.u32(0);
        bits.u32((37 + part.len() as u32) * 8);
        bits.u32(2048 * 8);
        bits.bytes.extend([0, 0, 0, 1, 8]);
        bits.bytes.extend(part);
        bits.bytes.resize(2048, 0);
        out.extend(bits.bytes);
    }
    out
}

fn text(spec: Spec) -> String {
    let uuid: String = UUID
        .iter()
        .enumerate()
        .map(|(i, b)| format!("{}{b:02x}", if [4, 6, 8, 10].contains(&i) { "-" } else { "" }))
        .collect();
    let order = if spec.big { "be" } else { "le" };
    let header = if spec.large { "large" } else { "compact" };
    let context = if spec.context {
        "event.context := struct { i32 _tid; i32 _pid; text _procname[16]; };"
    } else {
        ""
    };
    let head = format!(
        r#"
typealias integer {{ size = 8; align = 8; signed = false; }} := uint8_t;
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := unsigned long;
typealias integer {{ size = 5; align = 1; signed = false; }} := uint5_t;
typealias integer {{ size = 16; align = 8; signed = false; }} := uint16_t;
typealias integer {{ size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; }} := text;
typealias integer {{ size = 32; align = 8; signed = 1; encoding = none; base = 10; }} := i32;
typealias integer {{ size = 64; align = 8; signed = 1; encoding = none; base = 10; }} := i64;
trace {{
	major = 1; minor = 8; uuid = "{uuid}"; byte_order = {order};
	packet.header := struct {{
		uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint64_t stream_instance_id;
	}};
}};
env {{
	hostname = "host"; domain = "kernel"; sysname = "Linux"; kernel_release = "6.1.0-amd64";
	tracer_name = "lttng-modules"; tracer_major = 2; tracer_minor = 13; tracer_patchlevel = 9;
}};
clock {{
	name = "monotonic"; uuid = "25210548-98b9-4ab3-a9de-7d865e4ad32c";
	freq = 1000000000; /* Hz */
	offset = 1571238431155326264;
}};
typealias integer {{
	size = 27; align = 1; signed = false; map = clock.monotonic.value;
}} := clock27;
typealias integer {{
	size = 32; align = 8; signed = false; map = clock.monotonic.value;
}} := clock32;
typealias integer {{
	size = 64; align = 8; signed = false; map = clock.monotonic.value;
}} := clock64;
struct packet_context {{
	clock64 timestamp_begin; clock64 timestamp_end;
	uint64_t content_size; uint64_t packet_size; uint64_t packet_seq_num;
	unsigned long events_discarded; uint32_t cpu_id;
}};
struct event_header_compact {{
	enum : uint5_t {{ compact = 0 ... 30, extended = 31 }} id;
	variant <id> {{
		struct {{ clock27 timestamp; }} compact;
		struct {{ uint32_t id; clock64 timestamp; }} extended;
	}} v;
}} align(8);
struct event_header_large {{
	enum : uint16_t {{ compact = 0 ... 65534, extended = 65535 }} id;
	variant <id> {{
		struct {{ clock32 timestamp; }} compact;
		struct {{ uint32_t id; clock64 timestamp; }} extended;
	}} v;
}} align(8);
stream {{
	id = 0; event.header := struct event_header_{header};
	packet.context := struct packet_context; {context}
}};
"#
    );
    EVENTS.iter().fold(head, |all, (id, name, fields)| {
        all + &format!(
            "event {{ name = \"{name}\"; id = {id}; stream_id = 0; \
                fields := struct {{ {fields} }}; }};\n"
        )
    })
}

const EVENTS: [(u32, &str, &str); 12] = [
    (
        0,
        "sched_switch",
        "text _prev_comm[16]; i32 _prev_tid; i32 _prev_prio; i64 _prev_state; \
            text _next_comm[16]; i32 _next_tid; i32 _next_prio;",
    ),
    (1, "sched_waking", "text _comm[16]; i32 _tid; i32 _prio; i32 _target_cpu;"),
    (2, "irq_handler_entry", "i32 _irq; string _name;"),
    (3, "irq_softirq_entry", "uint32_t _vec;"),
    (
        4,
        "syscall_entry_futex",
        "uint64_t _uaddr; i32 _op; uint32_t _val; uint64_t _utime; uint64_t _uaddr2; \
            uint32_t _val3;",
    ),
    (5, "syscall_exit_futex", "i64 _ret; uint64_t _uaddr;"),
    (
        6,
        "sched_process_fork",
        "text _parent_comm[16]; i32 _parent_tid; i32 _parent_pid; text _child_comm[16]; \
            i32 _child_tid; uint8_t __vtids_length; i32 _vtids[ __vtids_length ]; i32 _child_pid;",
    ),
    (41, "syscall_entry_openat", "i32 _dfd; string _filename; i32 _flags; uint32_t _mode;"),
    (42, "syscall_entry_read", "uint32_t _fd; uint64_t _count;"),
    (
        43,
        "lttng_statedump_process_state",
        "i32 _tid; i32 _pid; i32 _ppid; text _name[16]; i32 _type;",
    ),
    (44, "syscall_entry_unknown", "i32 _id; uint64_t _args[6];"),
    (
        50,
        "motley",
        "enum : integer { size = 3; align = 1; } { _a = 1, _b = 2, _c = 3 ... 7 } _choice; \
            integer { size = 13; align = 1; } _bits; \
            variant <_choice> { string _a; integer { size = 32; align = 32; } _b; \
                struct { uint8_t n; struct { uint8_t k; string s; } list[n]; } _c; } _v; \
            floating_point { exp_dig = 8; mant_dig = 24; align = 32; } _f; \
            integer { size = 7; align = 1; } _sevens[5];",
    ),
];

/// A small trace of two CPUs with everything in it; the second one lost events and a packet.
pub(crate) fn sample(spec: Spec) -> Vec<(String, Vec<u8>)> {
    let start = 1_000_000_000;
    let first = Packet::new(spec, 0, 0, start)
        .process(start + 5, 100, 1, 0, "init")
        .process(start + 6, 100, 7, 2, "kworker/0:1")
        .futex(start + 10, 100, 0x7f00_1000, 128)
        .switch(start + 20, 100, 0, 1)
        .irq(start + 1_000, 0, 24, "virtio0")
        .waking(start + 1_010, 0, 100, 0)
        .softirq(start + 1_020, 0, 3)
        .switch(start + 1_030, 0, 100, 0)
        .futex_exit(start + 1_040, 100, -110)
        .fork(start + 1_100, 100, 101, &[101, 1])
        .motley(start + 1_200, 100, 1)
        .motley(start + 1_201, 100, 2)
        .motley(start + 1_202, 100, 5)
        .openat(start + 1_300, 100, "/etc/passwd")
        .read(start + 1_400, 100, 3)
        .unknown_call(start + 1_500, 100, 435, [11, 12, 13, 14, 15, 16])
        .build(4096);
    // Later than the 27 bits of a time stamp can express: the packet's begin time resolves it.
    let late = start + 700_000_000;
    let second = Packet::new(spec, 0, 1, late).switch(late + 1, 100, 101, 0x100).build(512);
    let other = Packet::new(spec, 1, 0, start + 3)
        .softirq(start + 50, 200, 1)
        .switch(start + 60, 200, 0, 2)
        .build(512);
    let gap = Packet::new(spec, 1, 2, start + 500)
        .discarded(17)
        .softirq(start + 600, 201, 1)
        .switch(start + 700, 201, 0, 0x20)
        .build(512);
    let empty = Packet::new(spec, 1, 3, start + 900).discarded(17).build(256);
    vec![
        ("metadata".into(), metadata(spec)),
        ("chan_0".into(), [first, second].concat()),
        ("chan_1".into(), [other, gap, empty].concat()),
    ]
}

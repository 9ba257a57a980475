//! Writes trace.dat files of every shape trace-cmd has had that the corpus lacks: instances,
//! big-endian and 32-bit machines, large pages, zlib, clocks, and bugs of old recorders.

use std::io::Write;

/// Ids of the events [`FileSpec::formats`] describes.
pub(crate) const WAKEUP: u16 = 70;
pub(crate) const SYS_ENTER: u16 = 20;
pub(crate) const KERNEL_STACK: u16 = 4;
pub(crate) const USER_STACK: u16 = 12;

/// The fields of every event.
const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

/// One ring buffer.
pub(crate) struct BufferSpec {
    pub(crate) name: &'static str,
    /// (CPU, whole pages).
    pub(crate) cpus: Vec<(u32, Vec<u8>)>,
}

/// A file to be written.
pub(crate) struct FileSpec {
    pub(crate) version: u8,
    pub(crate) big: bool,
    /// Bytes of a long.
    pub(crate) long: usize,
    /// Bytes of a page of the ring buffer.
    pub(crate) page: usize,
    /// Bytes of a page as the file states them.
    pub(crate) stated_page: u32,
    /// `none`, `zstd` or `zlib`; version 7 only.
    pub(crate) codec: &'static str,
    pub(crate) clock: &'static str,
    pub(crate) options: Vec<(u16, Vec<u8>)>,
    pub(crate) buffers: Vec<BufferSpec>,
    /// (system, text) in place of the two built-in events.
    pub(crate) formats: Option<Vec<(String, String)>>,
    /// The text of a latency tracer in place of the buffers' data.
    pub(crate) latency: Option<&'static str>,
    /// Write sizes of compressed data four bytes short, as trace-cmd did for a while.
    pub(crate) short_sizes: bool,
}

impl FileSpec {
    pub(crate) fn new(version: u8) -> FileSpec {
        FileSpec {
            version,
            big: false,
            long: 8,
            page: 4096,
            stated_page: 4096,
            codec: "none",
            clock: "local",
            options: Vec::new(),
            buffers: Vec::new(),
            formats: None,
            latency: None,
            short_sizes: false,
        }
    }

    pub(crate) fn u16(&self, v: u16) -> Vec<u8> {
        if self.big { v.to_be_bytes() } else { v.to_le_bytes() }.to_vec()
    }

    pub(crate) fn u32(&self, v: u32) -> Vec<u8> {
        if self.big { v.to_be_bytes() } else { v.to_le_bytes() }.to_vec()
    }

    pub(crate) fn u64(&self, v: u64) -> Vec<u8> {
        if self.big { v.to_be_bytes() } else { v.to_le_bytes() }.to_vec()
    }

    fn long(&self, v: u64) -> Vec<u8> {
        if self.long == 8 { self.u64(v) } else { self.u32(v as u32) }
    }

    /// An empty page to add records to.
    pub(crate) fn page(&self, time: u64) -> Page<'_> {
        Page { spec: self, time, data: Vec::new(), missed: None }
    }

    fn text(&self, text: &str) -> Vec<u8> {
        [self.u64(text.len() as u64), text.as_bytes().to_vec()].concat()
    }

    /// Add the call-chain events to the built-in ones, as kernels describe them.
    pub(crate) fn with_stacks(mut self) -> FileSpec {
        let l = self.long;
        let stack = |name: &str, id: u16, first: &str| {
            format!(
                "name: {name}\nID: {id}\nformat:\n{COMMON}\
                    \tfield:{first};\toffset:8;\tsize:4;\tsigned:1;\n\
                    \tfield:unsigned long caller[8];\toffset:{};\tsize:{};\tsigned:0;\n\n\
                    print fmt: \"\\t=> %ps\\n\", (void *)REC->caller[0]\n",
                8 + l,
                8 * l
            )
        };
        let stacks = [
            stack("kernel_stack", KERNEL_STACK, "int size"),
            stack("user_stack", USER_STACK, "unsigned int tgid"),
        ];
        let stacks = stacks.map(|text| ("ftrace".to_owned(), text));
        self.formats = Some([self.formats(), stacks.into()].concat());
        self
    }

    /// Size and offset of the two longs of `sys_enter`, and the description of the events.
    fn formats(&self) -> Vec<(String, String)> {
        if let Some(formats) = &self.formats {
            return formats.clone();
        }
        let l = self.long;
        let builtin = [
            (
                "sched",
                format!(
                    "name: sched_wakeup\nID: {WAKEUP}\nformat:\n\
                        {COMMON}\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
                        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
                        \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\
                        \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\n\
                        print fmt: \"comm=%s pid=%d\", REC->comm, REC->pid\n"
                ),
            ),
            (
                "raw_syscalls",
                format!(
                    "name: sys_enter\nID: {SYS_ENTER}\nformat:\n\
                        {COMMON}\tfield:long id;\toffset:8;\tsize:{l};\tsigned:1;\n\
                        \tfield:unsigned long args[6];\toffset:{};\tsize:{};\tsigned:0;\n\n\
                        print fmt: \"NR %ld\", REC->id\n",
                    8 + l,
                    6 * l
                ),
            ),
        ];
        builtin.map(|(system, text)| (system.to_owned(), text)).into()
    }

    fn header_page(&self) -> String {
        let l = self.long;
        format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                \tfield: local_t commit;\toffset:8;\tsize:{l};\tsigned:1;\n\
                \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                \tfield: char data;\toffset:{};\tsize:{};\tsigned:1;\n",
            8 + l,
            self.page - 8 - l
        )
    }

    /// Header info, ftrace formats, event formats, kallsyms, printk formats, command lines.
    fn metadata(&self) -> [(u16, Vec<u8>); 6] {
        let header = [
            b"header_page\0".to_vec(),
            self.text(&self.header_page()),
            b"header_event\0".to_vec(),
            self.text(""),
        ]
        .concat();
        let formats = self.formats();
        let mut events = self.u32(formats.len() as u32);
        for (system, text) in &formats {
            events.extend([system.as_bytes(), b"\0", &self.u32(1), &self.text(text)].concat());
        }
        let symbols = "ffffffff81000000 T startup_64\n\
            ffffffff81001000 t trace_event_raw_event_sched_wakeup\n\
            ffffffff81002000 T try_to_wake_up\n";
        let kallsyms = [self.u32(symbols.len() as u32), symbols.into()].concat();
        [
            (16, header),
            (17, self.u32(0)),
            (18, events),
            (19, kallsyms),
            (20, self.u32(0)),
            (21, self.text("42 a task\n")),
        ]
    }

    fn clocks(&self) -> String {
        let all = ["local", "global", "counter", "mono", "x86-tsc"];
        all.map(|c| if c == self.clock { format!("[{c}]") } else { c.to_owned() }).join(" ")
    }

    pub(crate) fn build(&self) -> Vec<u8> {
        let mut out = b"\x17\x08\x44tracing".to_vec();
        out.extend(format!("{}\0", self.version).bytes());
        out.extend([self.big as u8, self.long as u8]);
        out.extend(self.u32(self.stated_page));
        if self.version == 6 { self.build6(out) } else { self.build7(out) }
    }

    fn build6(&self, mut out: Vec<u8>) -> Vec<u8> {
        for (_, part) in self.metadata() {
            out.extend(part);
        }
        let cpus = self.buffers.first().map_or(2, |b| b.cpus.len());
        out.extend(self.u32(cpus as u32));
        out.extend(b"options  \0");
        // TRACECLOCK without content: the clock follows the table of CPU data.
        let mut options = self.options.clone();
        if self.latency.is_none() {
            options.push((4, Vec::new()));
        }
        let mut at_instance = Vec::new();
        for b in self.buffers.iter().skip(1) {
            options.push((3, [self.u64(0), b.name.into(), vec![0]].concat()));
        }
        for (id, data) in &options {
            out.extend([self.u16(*id), self.u32(data.len() as u32)].concat());
            if *id == 3 {
                at_instance.push(out.len());
            }
            out.extend(data);
        }
        out.extend(self.u16(0));
        if let Some(text) = self.latency {
            out.extend(b"latency  \0");
            out.extend(text.bytes());
            return out;
        }
        for (n, b) in self.buffers.iter().enumerate() {
            if n > 0 {
                let here = self.u64(out.len() as u64);
                out[at_instance[n - 1]..][..8].copy_from_slice(&here);
            }
            out.extend(b"flyrecord\0");
            let table = out.len();
            out.extend(vec![0; 16 * cpus]);
            out.extend(self.text(&self.clocks()));
            for (i, (_, pages)) in b.cpus.iter().enumerate() {
                out.resize(out.len().next_multiple_of(self.page), 0);
                let entry = [self.u64(out.len() as u64), self.u64(pages.len() as u64)].concat();
                out[table + 16 * i..][..16].copy_from_slice(&entry);
                out.extend(pages);
            }
        }
        out
    }

    fn packed(&self, data: &[u8]) -> Vec<u8> {
        match self.codec {
            "zstd" => zstd::bulk::compress(data, 1).unwrap(),
            "zlib" => {
                let mut z =
                    flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
                z.write_all(data).unwrap();
                z.finish().unwrap()
            }
            _ => data.to_vec(),
        }
    }

    fn section(&self, out: &mut Vec<u8>, id: u16, body: &[u8]) -> u64 {
        let at = out.len() as u64;
        let compress = self.codec != "none" && id != 0;
        let body = if compress {
            let packed = self.packed(body);
            [self.u32(packed.len() as u32), self.u32(body.len() as u32), packed].concat()
        } else {
            body.to_vec()
        };
        let size = body.len() as u64 - if self.short_sizes { 4 } else { 0 };
        out.extend([self.u16(id), self.u16(compress as u16), self.u32(0), self.u64(size)].concat());
        out.extend(body);
        at
    }

    fn build7(&self, mut out: Vec<u8>) -> Vec<u8> {
        out.extend(format!("{}\01.0\0", self.codec).bytes());
        let first = out.len();
        out.extend(self.u64(0));
        let mut options = Vec::new();
        for (id, part) in self.metadata() {
            let at = self.section(&mut out, id, &part);
            options.push((id, self.u64(at)));
        }
        options.push((4, format!("{}\0", self.clocks()).into_bytes()));
        options.push((8, self.u32(self.buffers.first().map_or(2, |b| b.cpus.len()) as u32)));
        options.extend(self.options.iter().cloned());
        let mut buffers = Vec::new();
        for b in &self.buffers {
            let at = out.len() as u64;
            out.extend(
                [self.u16(3), self.u16((self.codec != "none") as u16), self.u32(0), self.u64(0)]
                    .concat(),
            );
            let mut option = [
                self.u64(at),
                format!("{}\0{}\0", b.name, self.clock).into_bytes(),
                self.u32(self.stated_page),
            ]
            .concat();
            option.extend(self.u32(b.cpus.len() as u32));
            for (cpu, pages) in &b.cpus {
                out.resize(out.len().next_multiple_of(self.page), 0);
                let start = out.len() as u64;
                let mut size = pages.len() as u64;
                if self.codec == "none" {
                    out.extend(pages);
                } else {
                    let chunks: Vec<&[u8]> = pages.chunks(3 * self.page).collect();
                    out.extend(self.u32(chunks.len() as u32));
                    for chunk in chunks {
                        let packed = self.packed(chunk);
                        out.extend(
                            [self.u32(packed.len() as u32), self.u32(chunk.len() as u32), packed]
                                .concat(),
                        );
                    }
                    size = out.len() as u64 - start - if self.short_sizes { 4 } else { 0 };
                }
                option.extend([self.u32(*cpu), self.u64(start), self.u64(size)].concat());
            }
            buffers.push((3, option));
        }
        if let Some(text) = self.latency {
            let at = out.len() as u64;
            let body = if self.codec == "none" {
                text.as_bytes().to_vec()
            } else {
                let chunks: Vec<&[u8]> = text.as_bytes().chunks(100).collect();
                let packed = |chunk: &[u8]| {
                    [
                        self.u32(self.packed(chunk).len() as u32),
                        self.u32(chunk.len() as u32),
                        self.packed(chunk),
                    ]
                };
                [
                    self.u32(chunks.len() as u32),
                    chunks.iter().flat_map(|c| packed(c).concat()).collect(),
                ]
                .concat()
            };
            out.extend(
                [
                    self.u16(22),
                    self.u16((self.codec != "none") as u16),
                    self.u32(0),
                    self.u64(body.len() as u64),
                ]
                .concat(),
            );
            out.extend(body);
            buffers.push((22, [self.u64(at), format!("\0{}\0", self.clock).into_bytes()].concat()));
        }
        // Two options sections, as trace-cmd writes them: one before the data, one after.
        let put = |out: &mut Vec<u8>, options: &[(u16, Vec<u8>)]| -> (u64, usize) {
            let mut body = Vec::new();
            for (id, data) in options {
                body.extend([self.u16(*id), self.u32(data.len() as u32), data.clone()].concat());
            }
            body.extend([self.u16(0), self.u32(8), self.u64(0)].concat());
            let at = self.section(out, 0, &body);
            (at, out.len() - 8)
        };
        let (one, next) = put(&mut out, &options);
        let (two, _) = put(&mut out, &buffers);
        out[first..][..8].copy_from_slice(&self.u64(one));
        out[next..][..8].copy_from_slice(&self.u64(two));
        out
    }
}

/// A page under construction.
pub(crate) struct Page<'a> {
    spec: &'a FileSpec,
    time: u64,
    data: Vec<u8>,
    missed: Option<Option<u64>>,
}

impl Page<'_> {
    fn header(&self, kind: u32, delta: u32) -> Vec<u8> {
        self.spec.u32(if self.spec.big { kind << 27 | delta } else { kind | delta << 5 })
    }

    /// Any record: kind, delta and the words after the header.
    pub(crate) fn record(mut self, kind: u32, delta: u32, words: &[u32]) -> Self {
        self.data.extend(self.header(kind, delta));
        self.data.extend(words.iter().flat_map(|&w| self.spec.u32(w)));
        self
    }

    fn event(mut self, delta: u32, mut payload: Vec<u8>) -> Self {
        payload.resize(payload.len().next_multiple_of(4), 0);
        let words = payload.len() as u32 / 4;
        if words <= 28 {
            self.data.extend(self.header(words, delta));
        } else {
            self.data.extend(self.header(0, delta));
            self.data.extend(self.spec.u32(4 + payload.len() as u32));
        }
        self.data.extend(payload);
        self
    }

    fn common(&self, id: u16, tid: u32) -> Vec<u8> {
        [self.spec.u16(id), vec![0, 0], self.spec.u32(tid)].concat()
    }

    /// `sched_wakeup` of `woken` by `tid`.
    pub(crate) fn wakeup(self, delta: u32, tid: u32, woken: u32) -> Self {
        let mut comm = format!("task-{woken}").into_bytes();
        comm.resize(16, 0);
        let p = [
            self.common(WAKEUP, tid),
            comm,
            self.spec.u32(woken),
            self.spec.u32(120),
            self.spec.u32(1),
        ]
        .concat();
        self.event(delta, p)
    }

    /// `sys_enter` of call `nr` with arguments 1 to 6.
    pub(crate) fn sys_enter(self, delta: u32, tid: u32, nr: u64) -> Self {
        let mut p = [self.common(SYS_ENTER, tid), self.spec.long(nr)].concat();
        (1..=6).for_each(|a| p.extend(self.spec.long(a)));
        self.event(delta, p)
    }

    /// `kernel_stack` of `tid`, whose record claims `size` addresses.
    pub(crate) fn kernel_stack(self, delta: u32, tid: u32, size: u32, frames: &[u64]) -> Self {
        self.stack(delta, (KERNEL_STACK, tid), size, frames)
    }

    /// `user_stack` of `tid`.
    pub(crate) fn user_stack(self, delta: u32, tid: u32, frames: &[u64]) -> Self {
        self.stack(delta, (USER_STACK, tid), tid, frames)
    }

    fn stack(self, delta: u32, (id, tid): (u16, u32), first: u32, frames: &[u64]) -> Self {
        let mut p = [self.common(id, tid), self.spec.u32(first)].concat();
        p.resize(8 + self.spec.long, 0);
        frames.iter().for_each(|&frame| p.extend(self.spec.long(frame)));
        self.event(delta, p)
    }

    /// An event the file does not describe.
    pub(crate) fn stranger(self, delta: u32, tid: u32, id: u16) -> Self {
        let p = self.common(id, tid);
        self.event(delta, p)
    }

    /// Events were lost before this page, `count` of them if that is known.
    pub(crate) fn after_loss(mut self, count: Option<u64>) -> Self {
        self.missed = Some(count);
        self
    }

    pub(crate) fn build(self) -> Vec<u8> {
        let mut commit = self.data.len() as u64;
        let mut data = self.data.clone();
        if let Some(count) = self.missed {
            commit |= 1 << 31;
            if let Some(n) = count {
                commit |= 1 << 30;
                data.extend(self.spec.long(n));
            }
        }
        let mut page = [self.spec.u64(self.time), self.spec.long(commit), data].concat();
        assert!(page.len() <= self.spec.page, "the records fit the page");
        page.resize(self.spec.page, 0);
        page
    }
}

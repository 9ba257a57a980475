//! The opened trace.

use crate::decode::Decoder;
use crate::files::{Content, Folder};
use crate::lane::{Channel, Lane, LaneInfo, Store};
use crate::packet::{Packet, index};
use crate::parse::{Metadata, parse};
use crate::scan::{Scan, scan};
use crate::schema::{Events, Setting, TraceClass, compile, is_kernel};
use crate::{metadata, time};
use holdup_map::IN_MEMORY;
use holdup_syscalls::Arch;
use holdup_trace::{
    Capabilities, Clock, Cpu, ErrorKind, EventDesc, EventKind, Extras, LocalNames, Names, Nanos,
    Opened, Presence, Quality, QualityCode, Reader, Result, Run, RunDecoder, TraceInfo, progress,
};
use std::collections::BTreeMap;
use std::path::Path;

/// An opened CTF trace, or several of one recording: the kernel's and those of user space.
///
/// One [`Run`] is one CPU, CPUs ascending.
pub struct CtfTrace {
    opened: Opened,
    lanes: Vec<LaneInfo>,
    store: Store,
}

/// Which stream a packet belongs to: trace, kind, instance, CPU. The same trace may be in several
/// folders, as parts of a recording or as snapshots.
type StreamKey = ([u8; 16], u32, u64, u64);

impl CtfTrace {
    /// Open what was found in `path`.
    pub(crate) fn assemble(path: &Path, folders: Vec<Folder>) -> Result<CtfTrace> {
        CtfTrace::build(path, folders).map_err(|(file, kind)| {
            let file = if file.is_empty() { path.to_owned() } else { path.join(file) };
            kind.in_file(&file)
        })
    }

    fn build(path: &Path, folders: Vec<Folder>) -> Result<CtfTrace, (String, ErrorKind)> {
        let mut quality = Quality::default();
        let (_, metadatas) = declarations(&folders, &mut quality)?;
        one_machine(&metadatas).map_err(|kind| (String::new(), kind))?;

        let mut info = TraceInfo::new(path.to_owned(), format_name(&metadatas));
        let since_1970 = !share_clock(&metadatas);
        describe(&mut info, &metadatas, since_1970);
        let mut events = Events::default();
        let names = info.names.clone();
        let traces = compiled(&metadatas, &mut events, &names, since_1970, false);

        let kernel: Vec<bool> = metadatas.iter().map(is_kernel).collect();
        let (files, lanes) = sort_out(folders, &traces, &mut quality);
        // Count the machine's CPUs in the kernel's trace, if there is one.
        let whole = |p: &Packet| kernel[p.class.0 as usize] || !kernel.contains(&true);
        let cpus = lanes.iter().filter(|lane| {
            lane.cpu != Cpu::UNKNOWN && lane.channels.iter().flat_map(|c| &c.packets).any(whole)
        });
        // LTTng writes at least an empty packet for each CPU that exists.
        info.cpus_online = u32::try_from(cpus.count()).ok().filter(|&n| n > 0);

        let size = files.iter().map(|f| f.bytes().len() as u64).sum();
        let store = Store { traces, files, large: size > IN_MEMORY };
        progress::indexing(size);
        let scans = scan(&store, &lanes, events.descs.len(), &names);
        let mut all = Scan::new(events.descs.len());
        let mut runs = Vec::new();
        let mut infos = Vec::new();
        for (lane, mut scan) in lanes.into_iter().zip(scans) {
            all.absorb(&scan);
            match scan.reach {
                Some((first, _)) => {
                    runs.push(Run { first_ts: first });
                    infos.push(LaneInfo { lane, hints: std::mem::take(&mut scan.hints) });
                }
                None => quality.absorb(&scan.quality),
            }
        }
        info.span = all.span;
        info.recorded_ns = recorded(&metadatas, since_1970, all.span);
        presence(&mut events.descs, &store.traces, &kernel, &all);
        info.capabilities = Capabilities::of(&events.descs, Extras::default());
        info.tasks = all.tasks;
        info.events = events.descs;
        Ok(CtfTrace { opened: Opened { info, quality, runs }, lanes: infos, store })
    }
}

impl Reader for CtfTrace {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn opened_mut(&mut self) -> &mut Opened {
        &mut self.opened
    }

    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        let names = LocalNames::new(self.info().names.clone());
        Box::new(Decoder::new(&self.store, &self.lanes[run], names))
    }
}

/// The text of each trace's metadata, and what it declares.
type Declared = (Vec<Vec<u8>>, Vec<Metadata>);

/// The declarations and the text of each trace's metadata; or which file could not be read, and
/// why.
pub(crate) fn declarations(
    folders: &[Folder],
    quality: &mut Quality,
) -> Result<Declared, (String, ErrorKind)> {
    let (mut texts, mut metadatas) = (Vec::new(), Vec::new());
    for folder in folders {
        let file = format!("{}/metadata", folder.name);
        let file = file.trim_start_matches('/').to_owned();
        let fail = |kind| (file.clone(), kind);
        let (text, cut) = metadata::text(folder.metadata.bytes()).map_err(fail)?;
        let metadata = parse(&text).map_err(fail)?;
        quality.add(QualityCode::Truncated, u64::from(cut || metadata.cut));
        metadatas.push(metadata);
        texts.push(text);
    }
    Ok((texts, metadatas))
}

/// Plans of all traces; adds the kinds of their events to `events`.
pub(crate) fn compiled(
    metadatas: &[Metadata],
    events: &mut Events,
    names: &Names,
    since_1970: bool,
    noting: bool,
) -> Vec<TraceClass> {
    let arch = Arch::from_uname(arch(metadatas).as_deref().unwrap_or("x86_64"));
    let mut setting = Setting { events, names, arch, since_1970, noting };
    metadatas.iter().map(|m| compile(m, &mut setting)).collect()
}

/// The files, and the packets in them by CPU and stream.
pub(crate) fn sort_out(
    folders: Vec<Folder>,
    traces: &[TraceClass],
    quality: &mut Quality,
) -> (Vec<Content>, Vec<Lane>) {
    let mut files: Vec<Content> = Vec::new();
    let mut streams: BTreeMap<(u16, StreamKey), Vec<Packet>> = BTreeMap::new();
    for (number, (folder, trace)) in folders.into_iter().zip(traces).enumerate() {
        let mut uuid = [0xff; 16];
        uuid[..8].copy_from_slice(&(number as u64).to_be_bytes());
        let uuid = trace.uuid.unwrap_or(uuid);
        for (_, bytes) in folder.streams {
            let file = files.len() as u32;
            for packet in index(bytes.bytes(), file, number as u32, trace, quality) {
                let id = trace.streams[packet.class.1 as usize].id;
                let key = (uuid, number as u32, id, packet.instance);
                // Parts of one recording share the trace's uuid.
                let key = if trace.uuid.is_some() { (key.0, 0, key.2, key.3) } else { key };
                // Nothing shows that two files are parts of one stream.
                let apart = packet.cpu == Cpu::UNKNOWN && !trace.header.has_instance;
                let key = if apart { (key.0, key.1, key.2, u64::from(file)) } else { key };
                streams.entry((packet.cpu.0, key)).or_default().push(packet);
            }
            files.push(bytes);
        }
    }
    let mut lanes: Vec<Lane> = Vec::new();
    for ((cpu, _), mut packets) in streams {
        sort(&mut packets);
        match lanes.last_mut().filter(|lane| lane.cpu.0 == cpu) {
            Some(lane) => lane.channels.push(Channel { packets }),
            None => lanes.push(Lane { cpu: Cpu(cpu), channels: vec![Channel { packets }] }),
        }
    }
    (files, lanes)
}

/// Sort by time and remove duplicates: snapshots of one recording repeat what was still in the
/// buffers. Of two copies of a packet the longer one was taken later.
fn sort(packets: &mut Vec<Packet>) {
    packets.sort_by_key(|p| (p.begin, p.seq, p.file, p.start));
    packets.dedup_by(|later, earlier| {
        let same = later.seq.is_some() && later.seq == earlier.seq && later.begin == earlier.begin;
        if same && later.content > earlier.content {
            std::mem::swap(later, earlier);
        }
        same
    });
}

/// Traces of several machines share no CPUs and no threads.
fn one_machine(metadatas: &[Metadata]) -> Result<(), ErrorKind> {
    let mut hosts: Vec<&str> = metadatas.iter().filter_map(|m| m.env("hostname")).collect();
    hosts.sort_unstable();
    hosts.dedup();
    if hosts.len() > 1 {
        return Err(ErrorKind::Unsupported {
            what: format!("a folder with traces of several machines ({})", hosts.join(", ")),
            way_out: "name the folder of one of them".into(),
        });
    }
    Ok(())
}

/// Whether all time stamps are values of one clock; then times may count from its own 0.
pub(crate) fn share_clock(metadatas: &[Metadata]) -> bool {
    let mut clocks = metadatas
        .iter()
        .flat_map(|m| &m.clocks)
        .map(|c| (c.uuid.as_deref(), c.name.as_str(), c.freq));
    match clocks.next() {
        None => true,
        // One trace with several clocks has no common time either.
        Some(first) => clocks.all(|c| c == first && (c.0.is_some() || metadatas.len() == 1)),
    }
}

fn format_name(metadatas: &[Metadata]) -> String {
    let mut tracers: Vec<&str> = metadatas.iter().filter_map(|m| m.env("tracer_name")).collect();
    tracers.sort_unstable();
    tracers.dedup();
    match tracers.is_empty() {
        true => "CTF 1.8".into(),
        false => format!("CTF 1.8 ({})", tracers.join(", ")),
    }
}

/// Facts about the machine and the recorder.
fn describe(info: &mut TraceInfo, metadatas: &[Metadata], since_1970: bool) {
    let env = |key: &str| metadatas.iter().find_map(|m| m.env(key)).map(str::to_owned);
    info.hostname = env("hostname");
    if let Some(cut) = env("holdup_cut") {
        info.is_cut(&cut);
    }
    info.os_release = env("kernel_release");
    info.arch = arch(metadatas);
    info.recorder = metadatas.iter().find_map(|m| {
        let version: Vec<&str> = ["tracer_major", "tracer_minor", "tracer_patchlevel"]
            .into_iter()
            .filter_map(|key| m.env(key))
            .collect();
        Some(format!("{} {}", m.env("tracer_name")?, version.join(".")))
    });
    let clocks: Vec<_> = metadatas.iter().flat_map(|m| &m.clocks).collect();
    if let Some(clock) = clocks.first() {
        let name = if since_1970 { "time of day".to_owned() } else { clock.name.clone() };
        let resolution_ns = (1_000_000_000 / clock.freq.max(1)).max(1);
        info.clock = Clock { name, resolution_ns };
        let ns = time::offset(clock);
        if !since_1970 && ns != 0 {
            let text = format!("{}.{:09} s since 1970", ns / 1_000_000_000, ns % 1_000_000_000);
            info.extra.push(("clock's 0".into(), text));
        }
    }
    for (label, key) in [("session", "trace_name"), ("recorded", "trace_creation_datetime")] {
        if let Some(value) = env(key) {
            info.extra.push((label.into(), value));
        }
    }
    if metadatas.len() > 1 {
        info.extra.push(("traces".into(), metadatas.len().to_string()));
    }
}

/// Wall-clock time at which the recording began: the time of the first event.
fn recorded(
    metadatas: &[Metadata],
    since_1970: bool,
    span: Option<(Nanos, Nanos)>,
) -> Option<Nanos> {
    let clock = metadatas.iter().find_map(|m| m.clocks.first())?;
    let offset = time::offset(clock);
    let zero = if since_1970 { 0 } else { offset };
    // A clock without an offset counts from an arbitrary time.
    let (first, _) = span.filter(|_| offset != 0)?;
    u64::try_from(zero + i128::from(first)).ok()
}

/// The machine's architecture. LTTng does not record it, but the kernel's name often reveals it,
/// and so does an event that only x86 has.
fn arch(metadatas: &[Metadata]) -> Option<String> {
    let release = metadatas.iter().find_map(|m| m.env("kernel_release")).unwrap_or_default();
    let machine = metadatas.iter().find_map(|m| m.env("machine").or(m.env("architecture")));
    let named = ["x86_64", "aarch64", "arm64", "amd64", "i686", "armv7l", "armhf"]
        .into_iter()
        .find(|name| release.contains(name));
    let bits = metadatas.iter().find_map(|m| m.env("architecture_bit_width"));
    let x86 = metadatas.iter().flat_map(|m| &m.events).any(|e| e.name.starts_with("x86_"));
    Some(match (machine, named) {
        (Some(machine), _) => machine.to_owned(),
        (None, Some("amd64")) => "x86_64".into(),
        (None, Some("arm64")) => "aarch64".into(),
        (None, Some(name)) => name.to_owned(),
        (None, None) if x86 && bits == Some("32") => "i686".into(),
        (None, None) if x86 => "x86_64".into(),
        (None, None) => return None,
    })
}

/// How the files know of each event. The metadata lists only the events that were enabled, so an
/// enabled event that never occurs did not happen. An event that lacks a field without which it is
/// useless counts only as described, and so does a user-space event with a kernel event's name.
fn presence(descs: &mut [EventDesc], traces: &[TraceClass], kernel: &[bool], all: &Scan) {
    for (trace, &kernel) in traces.iter().zip(kernel) {
        for class in trace.streams.iter().flat_map(|s| &s.events).filter(|c| !c.incomplete) {
            let Some(desc) = descs.get_mut(usize::from(class.event.0)) else { continue };
            if !kernel && EventKind::of(&desc.system, desc.short_name()).is_some() {
                continue;
            }
            let presence = match (all.occurs(class.event), kernel && all.events > 0) {
                (true, _) => Presence::Seen,
                (false, true) => Presence::Enabled,
                (false, false) => Presence::Described,
            };
            desc.presence = desc.presence.max(presence);
        }
    }
}

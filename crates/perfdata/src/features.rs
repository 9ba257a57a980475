//! The feature sections: what perf knew about the machine (kernel `tools/perf/util/header.c`,
//! `tools/perf/Documentation/perf.data-file-format.txt`).

use crate::attr::Attr;
use crate::cursor::{Cursor, Order};
use crate::format::{self, feature};
use crate::mapped;
use holdup_trace::{Descriptors, Groups, Runtimes, Spins, TraceInfo};
use std::sync::Arc;

/// An event's name and ids, from EVENT_DESC.
#[derive(Debug)]
pub(crate) struct EventName {
    pub(crate) name: String,
    pub(crate) ids: Vec<u64>,
}

/// What the sections say beyond [`TraceInfo`].
#[derive(Default, Debug)]
pub(crate) struct Features {
    pub(crate) names: Vec<EventName>,
    pub(crate) clock: Option<String>,
    /// Time of the first and last sample according to perf, if the file has it.
    pub(crate) sample_span: Option<(u64, u64)>,
}

impl Features {
    /// Take in one section. Returns false if it does not hold what it should.
    pub(crate) fn take(
        &mut self,
        number: u32,
        bytes: &[u8],
        order: Order,
        info: &mut TraceInfo,
    ) -> bool {
        self.parse(number, bytes, order, info).is_some()
    }

    fn parse(
        &mut self,
        number: u32,
        bytes: &[u8],
        order: Order,
        info: &mut TraceInfo,
    ) -> Option<()> {
        let mut c = Cursor::new(bytes, order);
        match number {
            feature::DESCRIPTORS => info.descriptors = Descriptors::parse(bytes)?,
            feature::CONTROL_GROUPS => info.groups = Groups::parse(bytes)?,
            feature::RUNTIMES => info.runtimes = Runtimes::parse(bytes)?,
            feature::SPINS => info.spins = Arc::new(Spins::parse(bytes)?),
            feature::BUILD_ID => info.built.extend(mapped::builds(bytes, order)),
            feature::HOSTNAME => info.hostname = Some(c.string()?),
            feature::OSRELEASE => info.os_release = Some(c.string()?),
            feature::VERSION => info.recorder = Some(recorder(&c.string()?)),
            feature::ARCH => info.arch = Some(c.string()?),
            feature::CPUDESC => info.cpu_desc = Some(c.string()?),
            feature::NRCPUS => {
                let (available, online) = (c.u32()?, c.u32()?);
                info.cpus_online = Some(online);
                if available != online {
                    info.extra.push(("CPUs present".into(), available.to_string()));
                }
            }
            feature::TOTAL_MEM => info.total_mem = Some(c.u64()?.saturating_mul(1024)),
            feature::CMDLINE => {
                let n = c.u32()?;
                let words: Vec<String> = (0..n).map_while(|_| c.string()).collect();
                let line = words.join(" ");
                info.is_cut(&line);
                info.cmdline = Some(line);
                (words.len() == n as usize).then_some(())?;
            }
            feature::EVENT_DESC => self.event_desc(&mut c)?,
            feature::CPU_TOPOLOGY => {
                let cores = strings(&mut c)?;
                info.extra.push(("sibling cores".into(), cores.join(" ")));
                let threads = strings(&mut c)?;
                info.extra.push(("sibling threads".into(), threads.join(" ")));
            }
            feature::NUMA_TOPOLOGY => {
                for _ in 0..c.u32()? {
                    let node = c.u32()?;
                    c.bytes(16)?; // total and free memory
                    info.numa.push((node, c.string()?));
                }
            }
            feature::SAMPLE_TIME => {
                let (first, last) = (c.u64()?, c.u64()?);
                // In pipe mode perf writes this section before the times are known.
                if last > 0 {
                    self.sample_span = Some((first, last));
                    info.extra
                        .push(("perf's sample span (ns)".into(), format!("{first} to {last}")));
                }
            }
            feature::CLOCKID => {
                info.extra.push(("clock resolution (ns)".into(), c.u64()?.to_string()))
            }
            feature::CLOCK_DATA => {
                c.u32()?; // version
                let id = c.u32()?;
                let (wall, clock) = (c.u64()?, c.u64()?);
                self.clock = Some(clock_name(id as i32));
                info.recorded_ns = Some(wall).filter(|&ns| ns > 0);
                info.extra.push((
                    "wall clock (ns since 1970) at trace time".into(),
                    format!("{wall} at {clock}"),
                ));
            }
            feature::COMPRESSED => {
                let (_version, kind, level, ratio) = (c.u32()?, c.u32()?, c.u32()?, c.u32()?);
                let kind = if kind == format::COMPRESSED_ZSTD {
                    "zstd".to_owned()
                } else {
                    format!("type {kind}")
                };
                info.extra
                    .push(("compression".into(), format!("{kind} level {level}, ratio {ratio}")));
            }
            _ => {}
        }
        Some(())
    }

    fn event_desc(&mut self, c: &mut Cursor<'_>) -> Option<()> {
        let (n, attr_size) = (c.u32()?, c.u32()? as usize);
        for _ in 0..n {
            c.bytes(attr_size)?;
            let ids = c.u32()?;
            let name = c.string()?;
            let ids: Vec<u64> = (0..ids).map_while(|_| c.u64()).collect();
            self.names.push(EventName { name, ids });
        }
        Some(())
    }

    /// Give `attrs` the names of EVENT_DESC: by id, or by position where there are no ids.
    pub(crate) fn name(&self, attrs: &mut [Attr]) {
        let by_id: rustc_hash::FxHashMap<u64, &str> =
            self.names.iter().flat_map(|n| n.ids.iter().map(|&id| (id, &*n.name))).collect();
        for (i, attr) in attrs.iter_mut().enumerate().filter(|(_, a)| a.name.is_none()) {
            let name = match attr.ids.first() {
                Some(id) if !by_id.is_empty() => by_id.get(id).copied(),
                _ => self.names.get(i).map(|n| &*n.name),
            };
            attr.name = name.filter(|n| !n.is_empty()).map(str::to_owned);
        }
    }
}

/// perf writes its bare version, other recorders (holdup) put their name before it.
fn recorder(version: &str) -> String {
    match version.split_once(' ') {
        Some((name, _)) if name.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            version.to_owned()
        }
        _ => format!("perf {version}"),
    }
}

fn strings(c: &mut Cursor<'_>) -> Option<Vec<String>> {
    let n = c.u32()?;
    let all: Vec<String> = (0..n).map_while(|_| c.string()).collect();
    (all.len() == n as usize).then_some(all)
}

/// Name of a POSIX clock (`include/uapi/linux/time.h`).
pub(crate) fn clock_name(id: i32) -> String {
    match id {
        0 => "CLOCK_REALTIME",
        1 => "CLOCK_MONOTONIC",
        2 => "CLOCK_PROCESS_CPUTIME_ID",
        3 => "CLOCK_THREAD_CPUTIME_ID",
        4 => "CLOCK_MONOTONIC_RAW",
        7 => "CLOCK_BOOTTIME",
        11 => "CLOCK_TAI",
        _ => return format!("clock {id}"),
    }
    .to_owned()
}

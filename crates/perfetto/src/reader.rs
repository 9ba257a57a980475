//! The opened trace.

use crate::decode::{Decoder, Shared};
use crate::index::{Index, Lined, index};
use crate::packets::{Packets, Step};
use crate::samples::{Sampled, Samples};
use crate::source::Source;
use crate::survey::Survey;
use crate::table::Table;
use crate::unpack::unpack;
use holdup_map::Bytes;
use holdup_trace::{
    Capabilities, ErrorKind, Extras, Opened, Quality, QualityCode, Reader, Result, Run, RunDecoder,
    StateTable, Task, TraceInfo, union,
};
use std::path::Path;

/// An opened Perfetto trace.
///
/// One [`Run`] is one CPU, or a part of it if its bundles overlap in time. The last run holds the
/// samples, if there are any.
pub struct Perfetto {
    opened: Opened,
    lined: Vec<Lined>,
    shared: Shared,
    /// Samples of all CPUs: the run after those of the CPUs.
    sampled: Sampled,
}

impl Perfetto {
    pub(crate) fn from_bytes(path: &Path, file: Bytes) -> Result<Perfetto> {
        Perfetto::read(path, file).map_err(|kind| kind.in_file(path))
    }

    fn read(path: &Path, file: Bytes) -> Result<Perfetto, ErrorKind> {
        let mut info = TraceInfo::new(path.to_owned(), "Perfetto");
        let mut quality = Quality::default();
        let unpacked = unpack(file.all(), &mut quality)?;
        if unpacked.stretches.is_empty() {
            return Err(ErrorKind::malformed(
                0,
                None,
                "packets of a Perfetto trace",
                format!("{} bytes without a packet", file.all().len()),
            ));
        }
        let source = Source::new(file, unpacked.bytes);
        let mut survey = Survey::new(info.names.clone());
        for stretch in &unpacked.stretches {
            for step in Packets::of(source.get(*stretch)) {
                match step {
                    Step::Packet { start, end, .. } => {
                        let content = &source.get(*stretch)[start..end];
                        survey.packet(stretch.part, stretch.start + start, content);
                    }
                    // In unpacked data only: skipped bytes of the file itself were counted before.
                    Step::Skipped(n) => quality.add(QualityCode::SkippedBytes, n as u64),
                    Step::Cut(_) => quality.add(QualityCode::Truncated, 1),
                }
            }
        }
        if survey.machines.len() > 1 {
            return Err(ErrorKind::Unsupported {
                what: format!("a Perfetto trace of {} machines", survey.machines.len()),
                way_out: "their CPUs have the same numbers; record each machine on its own \
                    (trace_all_machines: false)"
                    .to_owned(),
            });
        }
        quality.add(QualityCode::BadRecords, survey.broken);
        let Index { runs: lined, seen, quality: more, clock } =
            index(&source, &survey.bundles, survey.raw_to_boot())?;
        quality.absorb(&more);
        let lost = survey.lost.values().map(|c| c.lost()).fold(0, u64::saturating_add);
        quality.add(QualityCode::LostEvents, lost);

        let table = Table::new(&seen, &info.names);
        quality.add(QualityCode::MissingFormat, table.undescribed);
        quality.add(QualityCode::MissingField, table.incomplete);
        let mut samples = std::mem::take(&mut survey.samples);
        let mut sampled = samples.finish(&info.names, |clock| survey.to_boot(clock));
        let lost = samples.lost.saturating_add(samples.skipped);
        quality.add(QualityCode::LostSamples, lost);
        quality.add(QualityCode::BadRecords, samples.untimed);
        info.events = table.descs.clone();
        info.events.extend(sampled.describe(table.descs.len()));
        let (stacks, counters) = (sampled.has_chains(), sampled.has_counters());
        let extras = Extras { stacks, counters, ..Extras::default() };
        info.capabilities = Capabilities::of(&info.events, extras);
        info.span = lined.iter().fold(sampled.span(), |all, l| union(all, Some(l.span())));
        info.clock.name = clock.name().to_owned();
        if clock.shifted {
            let shifted = "shifted to the boot clock's".to_owned();
            info.extra.push(("times".to_owned(), shifted));
        }
        describe(&mut info, &mut survey, seen.events, unpacked.packed);
        describe_samples(&mut info, &sampled, &samples);
        let states = StateTable::of_kernel(info.os_release.as_deref());
        info.extra.extend(states.note().filter(|_| info.capabilities.switches));
        let mut runs: Vec<Run> = lined.iter().map(|l| Run { first_ts: l.span().0 }).collect();
        runs.extend(sampled.span().map(|(first_ts, _)| Run { first_ts }));
        let (symbols, names) = (survey.symbols, info.names.clone());
        let shared = Shared { source, table, symbols, names, states };
        Ok(Perfetto { opened: Opened { info, quality, runs }, lined, shared, sampled })
    }
}

/// Facts about the machine, the recorder and the threads.
fn describe(info: &mut TraceInfo, survey: &mut Survey, events: u64, packed: u64) {
    let system = &mut survey.system;
    info.os_release = system.release.take();
    info.cut = survey.cut.take();
    info.arch = system.machine.take();
    info.recorder = system.recorder.take();
    info.total_mem = system.memory;
    // The kernel's counters have an entry for every CPU, even without events.
    let counted = u32::try_from(survey.lost.len()).ok().filter(|&n| n > 0);
    info.cpus_online = system.cpus.filter(|&n| n > 0).or(counted);
    if survey.some_threads {
        info.system_wide = Some(false);
    }
    info.tasks = std::mem::take(&mut survey.tasks);
    info.tasks.sort_by_key(|t: &Task| t.tid);
    let mut note = |label: &str, value: String| info.extra.push((label.to_owned(), value));
    if let Some(build) = system.build.take() {
        note("Android build", build);
    }
    note("packets", survey.packets.to_string());
    note("events recorded", events.to_string());
    if survey.bundles.is_empty() && info.span.is_none() {
        note(
            "ftrace",
            "this trace has no ftrace events; record with the data source linux.ftrace".to_owned(),
        );
    }
    if packed > 0 {
        note("packed", format!("{packed} bytes"));
    }
    if !survey.enabled.is_empty() {
        note("events enabled", survey.enabled.len().to_string());
    }
    if !survey.failed.is_empty() {
        let failed: Vec<&str> = survey.failed.iter().map(String::as_str).collect();
        note("events that could not be enabled", failed.join(", "));
    }
    if survey.overwritten > 0 {
        note("blocks overwritten by later ones", survey.overwritten.to_string());
    }
    if survey.discarded > 0 {
        note("blocks dropped by a full buffer", survey.discarded.to_string());
    }
}

/// Facts about the recording of the data source `linux.perf`.
fn describe_samples(info: &mut TraceInfo, sampled: &Sampled, samples: &Samples) {
    let mut note = |label: &str, value: String| info.extra.push((label.to_owned(), value));
    if sampled.len() > 0 {
        note("samples of linux.perf", sampled.len().to_string());
    }
    for (n, what) in [
        (samples.partial, "without a whole call chain"),
        (samples.lost, "lost by the kernel"),
        (samples.skipped, "skipped by the recorder"),
        (samples.untimed, "of an unknown clock, not read"),
    ] {
        if n > 0 {
            note(&format!("samples {what}"), n.to_string());
        }
    }
}

impl Reader for Perfetto {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn opened_mut(&mut self) -> &mut Opened {
        &mut self.opened
    }

    /// Decoding is slow because every number is a varint and every event a nested message.
    fn is_slow_to_decode(&self) -> bool {
        true
    }

    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        if run >= self.lined.len() {
            return self.sampled.decoder();
        }
        let first = self.runs()[run].first_ts;
        Box::new(Decoder::new(&self.shared, first, &self.lined[run].bundles))
    }
}

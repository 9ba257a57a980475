//! What a recorder says on standard error.

use crate::exit;
use holdup_record::choice::Calls;
use holdup_record::collect::Collected;
use holdup_record::recorder::Recorder;
use holdup_record::usage::cpu_time;
use holdup_render::text::escape;
use std::io::Write;
use std::path::Path;

/// A line. That nobody reads it is no reason to stop.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "holdup: {}", escape(text));
}

/// What is different from what was asked for.
pub(crate) fn opened(recorder: &Recorder, asked: Option<usize>) {
    let choice = &recorder.choice;
    if !choice.missing.is_empty() {
        line(&format!("this kernel does not have {}", choice.missing.join(", ")));
    }
    if choice.calls == Calls::AllForLack {
        line(
            "this kernel has no tracepoints of single system calls (CONFIG_FTRACE_SYSCALLS): all \
             are recorded, which makes each slower by more than 1 us",
        );
    }
    let counted = &recorder.counted;
    if !counted.read.is_empty() {
        line(&format!("counters read at every switch: {}", counted.read.join(", ")));
    }
    for (name, why) in &counted.lacking {
        line(&format!("{name} is not counted: {why}"));
    }
    let size = recorder.ring_size();
    if asked.is_some_and(|asked| size < asked) {
        line(&format!(
            "the buffer of each CPU has {}: this user may not lock more memory (ulimit -l, \
             kernel.perf_event_mlock_kb)",
            bytes(size as u64)
        ));
    }
}

/// What was recorded, and what it cost.
pub(crate) fn collected(collected: &Collected, recorder: &Recorder, output: &Path) {
    for cpu in &collected.gone {
        line(&format!("CPU {cpu} was taken offline; its events end there"));
    }
    let tally = collected.written.tally;
    let seconds = collected.took.as_secs_f64();
    let lost = match tally.lost {
        0 => "none lost".to_owned(),
        lost => format!("{lost} lost (a larger -m loses fewer)"),
    };
    line(&format!(
        "{}: {} events in {seconds:.3} s ({:.0} a second), {lost}, {}",
        output.display(),
        tally.samples,
        tally.samples as f64 / seconds.max(1e-9),
        bytes(collected.written.bytes),
    ));
    let cpu_seconds = cpu_time().as_secs_f64();
    let capacity = seconds * recorder.cpus() as f64;
    line(&format!(
        "the recorder took {cpu_seconds:.3} s of CPU time, {:.2} % of {} CPUs",
        100.0 * cpu_seconds / capacity.max(1e-9),
        recorder.cpus()
    ));
}

/// What to type now.
pub(crate) fn next_step(output: &Path) {
    if output.as_os_str() != "-" {
        line(&format!("to see what it shows: holdup diagnose {}", output.display()));
    }
}

fn bytes(n: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB"];
    let unit = units.iter().enumerate().rev().find(|(i, _)| n >> (10 * i) > 0);
    match unit {
        None | Some((0, _)) => format!("{n} bytes"),
        Some((i, unit)) => format!("{:.1} {unit}", n as f64 / (1u64 << (10 * i)) as f64),
    }
}

//! Messages of a recorder on standard error.

use holdup_record::choice::Calls;
use holdup_record::collect::Collected;
use holdup_record::counters::When;
use holdup_record::file::{Name, Written};
use holdup_record::recorder::Recorder;
use holdup_render::text::escape;
use holdup_trace::shell_word;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Print a line. A closed standard error is no reason to stop.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "holdup: {}", escape(text));
}

/// Report differences between the recording and the request.
pub(crate) fn opened(recorder: &Recorder, asked: Option<usize>) {
    let choice = &recorder.choice;
    if !choice.missing.is_empty() {
        line(&format!("this kernel does not have {}", choice.missing.join(", ")));
    }
    if choice.calls == Calls::AllForLack {
        line(
            "this kernel has no tracepoints for single system calls (CONFIG_FTRACE_SYSCALLS), so \
             all system calls are recorded, which makes each of them over 1 us slower",
        );
    }
    if let Some(why) = recorder.unsampled() {
        line(&format!(
            "the running code is not sampled, so the recording does not show spinning: {why}"
        ));
    }
    let counted = &recorder.counted;
    let when = match counted.when {
        When::Switches => "at every switch".to_owned(),
        When::Every(interval) => format!("every {interval:?} on each CPU"),
    };
    for group in &counted.groups {
        line(&format!("counters read {when}: {}", group.join(", ")));
    }
    for (name, why) in &counted.lacking {
        line(&format!("{name} is not counted: {why}"));
    }
    for (file, what) in &recorder.found.files {
        line(&format!("probes in {}: {what}", file.display()));
    }
    for file in &recorder.found.unprobed {
        line(&format!(
            "{} is a Go program: --runtime-locks also records what its goroutines wait for",
            file.display()
        ));
    }
    for (file, why) in &recorder.found.refused {
        line(&format!("no probes in {}: it {why}", file.display()));
    }
    let size = recorder.ring_size();
    if asked.is_some_and(|asked| size < asked) {
        line(&format!(
            "the buffer of each CPU is only {}: this user may not lock more memory (ulimit -l, \
             kernel.perf_event_mlock_kb)",
            bytes(size as u64)
        ));
    }
}

/// Report what was recorded on `cpus` CPUs, and its cost.
pub(crate) fn collected(collected: &Collected, cpus: usize, output: &Path) {
    for cpu in &collected.gone {
        line(&format!("CPU {cpu} was taken offline; its events end at that time"));
    }
    what_and_cost(collected, cpus, output, collected.took);
}

/// Report that another recorder took the name `path`.
pub(crate) fn taken(name: Name, path: &Path) {
    let what = match name {
        Name::Own => return,
        Name::Old => format!("the recording is now called {}", name.of(path).display()),
        Name::Unknown => "this recording no longer exists".to_owned(),
    };
    let path = path.display();
    line(&format!("meanwhile, another recording replaced {path}, or the file was moved: {what}"));
}

/// Report what a flight recorder kept from `cpus` CPUs, and its cost.
pub(crate) fn kept(collected: &Collected, cpus: usize, output: &Path) {
    let span = collected.written.tally.span.unwrap_or_default();
    what_and_cost(collected, cpus, output, Duration::from_nanos(span.1 - span.0));
}

/// Content and cost of a file that covers the time `holds`.
fn what_and_cost(collected: &Collected, cpus: usize, output: &Path, holds: Duration) {
    let tally = collected.written.tally;
    let seconds = holds.as_secs_f64();
    let lost = match tally.lost {
        0 => "none lost".to_owned(),
        lost => format!("{lost} lost (a larger buffer, option -m, loses fewer)"),
    };
    line(&format!(
        "{}: {} events in {seconds:.3} s ({:.0} a second), {lost}, {}",
        output.display(),
        tally.samples,
        tally.samples as f64 / seconds.max(1e-9),
        bytes(collected.written.bytes),
    ));
    let cost = collected.cost.as_secs_f64();
    let capacity = collected.took.as_secs_f64() * cpus as f64;
    // For a very short recording the figures would only show its start and end.
    let share = match collected.took.as_millis() {
        ..100 => String::new(),
        _ => format!(", {:.2} % of {cpus} CPUs", 100.0 * cost / capacity),
    };
    let each = match tally.samples {
        ..1000 => String::new(),
        events => format!(", {:.0} ns an event", 1e9 * cost / events as f64),
    };
    line(&format!("the recorder took {cost:.3} s of CPU time{share}{each}"));
}

/// Show the progress of a recording on the terminal's last line.
pub(crate) fn so_far(elapsed: Duration, written: &Written) {
    let text = format!(
        "\r\x1b[Kholdup: {} s, {} events, {}; Ctrl-C ends it\r",
        elapsed.as_secs(),
        written.tally.samples,
        bytes(written.bytes)
    );
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Print the next command to type.
pub(crate) fn next_step(output: &Path) {
    let path = shell_word(&output.to_string_lossy());
    line(&format!("to see what the recording shows: holdup diagnose {path}"));
}

/// Print what to do with several recordings, and how long each took.
pub(crate) fn runs(files: &[PathBuf], times: &[Duration]) {
    if let Some(words) = scatter(times) {
        line(&words);
    }
    let (Some(first), Some(last)) = (files.first(), files.last()) else { return };
    let folder = first.parent().unwrap_or(Path::new("."));
    line(&format!("the recordings are {} to {}", first.display(), last.display()));
    line(&format!(
        "to compare other recordings with them: holdup baseline -o baseline.json {}/run-*.data",
        shell_word(&folder.to_string_lossy())
    ));
}

/// Mean and scatter of several runs; `None` for fewer than two.
fn scatter(times: &[Duration]) -> Option<String> {
    let seconds: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    let (n, sum) = (seconds.len(), seconds.iter().sum::<f64>());
    let (least, most) = (times.iter().min()?, times.iter().max()?);
    if n < 2 {
        return None;
    }
    let mean = sum / n as f64;
    let squares: f64 = seconds.iter().map(|s| (s - mean).powi(2)).sum();
    let deviation = (squares / (n - 1) as f64).sqrt();
    Some(format!(
        "{n} runs took {mean:.3} s on average, standard deviation {deviation:.3} s ({:.1} %), from \
         {:.3} to {:.3} s",
        100.0 * deviation / mean.max(1e-9),
        least.as_secs_f64(),
        most.as_secs_f64()
    ))
}

/// A number of bytes as text.
pub(crate) fn bytes(n: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB"];
    let unit = units.iter().enumerate().rev().find(|(i, _)| n >> (10 * i) > 0);
    match unit {
        None | Some((0, _)) => format!("{n} bytes"),
        Some((i, unit)) => format!("{:.1} {unit}", n as f64 / (1u64 << (10 * i)) as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_a_mean_and_a_scatter() {
        let runs = [1.0, 2.0, 3.0].map(Duration::from_secs_f64);
        let words = scatter(&runs).unwrap();
        let begins = "3 runs took 2.000 s on average, standard deviation 1.000 s (50";
        assert!(words.starts_with(begins), "{words}");
        assert!(words.ends_with("from 1.000 to 3.000 s"), "{words}");
        assert_eq!((scatter(&runs[..1]), scatter(&[])), (None, None));
    }
}

//! Text that lacks columns, lines or its end: missing parts are counted, and no capability is
//! claimed that depends on them.

use crate::common::all;
use holdup_ftracetext::{TextTrace, open_stream};
use holdup_trace::{Capabilities, Presence, QualityCode, Reader};
use std::path::Path;

fn open(text: &str) -> Result<TextTrace, String> {
    open_stream(Path::new("t.txt"), text.as_bytes()).map_err(|e| e.to_string())
}

fn trace(text: &str) -> TextTrace {
    open(text).unwrap_or_else(|e| panic!("{e}"))
}

/// Output of `perf script` with the chosen columns.
struct Columns {
    thread: bool,
    cpu: bool,
    fields: bool,
}

const ALL: Columns = Columns { thread: true, cpu: true, fields: true };

impl Columns {
    fn line(&self, tid: i32, us: u32, event: &str, fields: &str) -> String {
        let thread = if self.thread { format!(" {tid:>5}") } else { String::new() };
        let cpu = if self.cpu { " [001]" } else { "" };
        let fields = if self.fields { fields } else { "" };
        format!("{:>16}{thread}{cpu} {:>5}.{us:06}: {event:>30}: {fields}\n", "w l", 7)
    }

    /// A switch, a wake-up, the begin and end of a system call, and a counter.
    fn text(&self) -> String {
        [
            self.line(
                42,
                1,
                "sched:sched_switch",
                "prev_comm=w l prev_pid=42 prev_prio=120 prev_state=S ==> next_comm=c next_pid=43 \
                 next_prio=120",
            ),
            self.line(43, 2, "sched:sched_wakeup", "comm=w l pid=42 prio=120 target_cpu=001"),
            self.line(43, 3, "raw_syscalls:sys_enter", "NR 0 (3, 7ff, 400, 0, 0, 0)"),
            self.line(43, 3, "raw_syscalls:sys_exit", "NR 0 = 5"),
            self.line(43, 4, "cycles", ""),
        ]
        .concat()
    }
}

/// Number of events without CPU, without thread, without fields.
fn lacks(t: &TextTrace) -> [u64; 3] {
    [QualityCode::NoCpu, QualityCode::NoThread, QualityCode::NoFields]
        .map(|code| t.quality().count(code))
}

#[test]
fn switches_without_their_cpu_are_counted_and_prove_nothing() {
    let whole = trace(&ALL.text());
    assert_eq!(lacks(&whole), [0; 3]);
    let caps = &whole.info().capabilities;
    assert!(caps.switches && caps.wakeups && caps.syscalls.are_all());

    let t = trace(&Columns { cpu: false, ..ALL }.text());
    assert_eq!((t.event_count(), lacks(&t)), (5, [4, 0, 0]));
    // A counter counts for a thread, wherever it ran.
    assert_eq!(t.info().capabilities, Capabilities::default());
    // The events are shown nevertheless.
    let (rows, _) = all(&t, &crate::common::row);
    assert!(rows[0].contains("Switch 42"), "{rows:?}");
}

#[test]
fn events_without_their_thread_are_counted_where_they_need_it() {
    let t = trace(&Columns { thread: false, ..ALL }.text());
    assert_eq!(lacks(&t), [0, 3, 0]);
    let caps = &t.info().capabilities;
    // A switch names its threads in its fields.
    assert!(caps.switches && caps.wakeups && !caps.syscalls.are_any() && !caps.counters);
}

#[test]
fn a_thread_that_has_ended_is_no_missing_column() {
    let mut text = ALL.text();
    text += &ALL.line(-1, 5, "raw_syscalls:sys_enter", "NR 0 (3, 7ff, 400, 0, 0, 0)");
    let t = trace(&text);
    assert_eq!((t.event_count(), lacks(&t)), (6, [0; 3]));
}

#[test]
fn events_without_their_fields_are_counted_once_and_prove_nothing() {
    let t = trace(&Columns { fields: false, ..ALL }.text());
    let (_, quality) = all(&t, &crate::common::row);
    assert_eq!((lacks(&t), quality.count(QualityCode::MissingField)), ([0, 0, 4], 0));
    assert_eq!(t.info().capabilities, Capabilities::default());
    // A call without arguments has no fields: `sys_enter_getpid: `.
    let t = trace(&ALL.line(42, 1, "syscalls:sys_enter_getpid", ""));
    assert_eq!((lacks(&t), t.info().events[0].presence), ([0; 3], Presence::Seen));
}

#[test]
fn names_that_have_the_column_prove_what_those_without_do_not() {
    let no_cpu = Columns { cpu: false, ..ALL };
    let text = ALL.text() + &no_cpu.line(1, 9, "irq:softirq_entry", "vec=1 [action=TIMER]");
    for chunk in [1 << 20, 64] {
        let options = holdup_ftracetext::TextOptions { run_bytes: chunk, ..Default::default() };
        let t = options.open_stream(Path::new("t.txt"), text.as_bytes()).unwrap();
        assert_eq!(lacks(&t), [1, 0, 0], "{chunk}");
        assert!(t.info().capabilities.switches && !t.info().capabilities.softirqs, "{chunk}");
    }
}

#[test]
fn text_without_time_stamps_or_event_names_is_told_how_to_get_them() {
    let header = "# ========\n# captured on    : Sat\n# ========\n#\n";
    for (line, flag) in [
        ("            perf   200/200   [000]     sched:sched_stat_wait: comm=perf\n", "+time"),
        ("            perf   200/200   [000]    16.595270: comm=perf pid=200\n", "+event"),
    ] {
        let refusal = open(&format!("{header}{line}{line}")).err().expect("is refused");
        assert!(refusal.contains(&format!("perf script -F {flag}")), "{refusal}");
    }
}

#[test]
fn differences_of_time_are_no_times() {
    let text = |us: &[u32]| -> String {
        us.iter()
            .map(|us| format!("    perf   200 [000]     0.{us:06}: sched:sched_stat_wait: x\n"))
            .collect()
    };
    let refusal = open(&text(&[0, 4, 2, 9, 3, 1])).err().expect("is refused");
    assert!(refusal.contains("--deltatime"), "{refusal}");
    assert!(open(&text(&[0, 1, 2, 4, 9, 11])).is_ok(), "relative to the start");
}

#[test]
fn a_text_that_ends_inside_a_line_is_cut() {
    let truncated = |text: &str| {
        let t = trace(text);
        let (_, quality) = all(&t, &crate::common::row);
        assert_eq!(quality.count(QualityCode::UnreadableLines), 0, "{:?}", t.info().extra);
        quality.count(QualityCode::Truncated)
    };
    let whole = ALL.text();
    let (switch, _) = whole.split_once('\n').unwrap();
    let kernel = "              sh-42      [001] d..2.     7.000001: sched_wakeup: comm=c pid=43 \
                  prio=120 target_cpu=001";
    for (line, cuts) in [(switch, &[20, 30, 50, 90, 120][..]), (kernel, &[20, 30, 50, 70])] {
        assert_eq!(truncated(&format!("{line}\n")), 0);
        assert_eq!(truncated(&format!("{line}\n{line}")), 0, "only the end of line is missing");
        for &cut in cuts {
            assert_eq!(truncated(&format!("{line}\n{}", &line[..cut])), 1, "{}", &line[..cut]);
        }
    }
    // A call chain and a comment may end anywhere.
    assert_eq!(truncated(&format!("{whole}\tffffffff813af60a update_se+0x13a ([ker")), 0);
    assert_eq!(truncated(&format!("{whole}# end")), 0);
}

#[test]
fn a_systrace_page_that_was_cut_says_so() {
    let line = "          <idle>-0       [001] d..2.     7.000001: irq_handler_exit: irq=1 ret=0\n";
    let page = format!(
        "<!DOCTYPE html>\n<script class=\"trace-data\" type=\"application/text\">\n\
         # tracer: nop\n{line}{line}"
    );
    assert_eq!(trace(&page).quality().count(QualityCode::Truncated), 1);
    let whole = format!("{page}  </script>\n</html>\n");
    assert_eq!(trace(&whole).quality().count(QualityCode::Truncated), 0);
}

#[test]
fn what_perf_says_on_standard_error_is_no_damage() {
    let text = format!(
        "'trace' not valid for hardware events. Ignoring.\nWarning:\n\
         Processed 1740 events and lost 3 chunks!\n\nCheck IO/CPU overload!\n\n{}",
        ALL.text()
    );
    let (_, quality) = all(&trace(&text), &crate::common::row);
    assert_eq!(quality.count(QualityCode::UnreadableLines), 0);
    assert_eq!(quality.count(QualityCode::LostChunks), 1);
}

#[test]
fn errors_of_a_hardware_trace_are_noted_and_harm_nothing() {
    let text = format!(
        "{} instruction trace error type 1 time 12.345678901 cpu 0 pid 1 tid 1 ip 0 code 8: Lost \
         trace data\n",
        ALL.text()
    );
    let t = trace(&text);
    assert_eq!(t.quality().count(QualityCode::AuxErrors), 1);
    assert_eq!((t.event_count(), t.info().capabilities.stacks), (5, false));
}

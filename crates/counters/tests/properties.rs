//! No input makes the reader of `perf stat` panic, and all output of perf is read back.

use holdup_counters::{Counter, Value, stat};
use proptest::prelude::*;

/// Values, names, units and marks as they occur in such files.
fn field() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[0-9]{1,12}(\\.[0-9]{1,6})?",
        prop::sample::select(vec![
            "<not counted>",
            "<not supported>",
            "msec",
            "MiB",
            "CPU0",
            "S0",
            "cycles",
            "cycles:u",
            "cpu_core/cycles/u",
            "cpu/event=0x3c",
            "umask=1/",
            "CPUs utilized",
            "nan",
            "6.34%",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,8}",
    ]
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = stat::parse(&bytes);
    }

    #[test]
    fn no_fields_make_it_panic(
        lines in prop::collection::vec(prop::collection::vec(field(), 0..12), 0..6),
        separator in prop::sample::select(vec![",", ";", "\t", "|"]),
    ) {
        let text: Vec<String> = lines.iter().map(|l| l.join(separator)).collect();
        if let Ok(found) = stat::parse(text.join("\n").as_bytes()) {
            for m in &found.measurements {
                prop_assert!(!m.counts.is_empty());
                let _ = (m.cycles_per_instruction(), m.stalled_pct(), m.bandwidth());
            }
        }
    }

    #[test]
    fn both_forms_say_the_same(
        counts in prop::collection::vec((0u64..1 << 50, 0u32..=100), 1..8),
        cpus in 1usize..5,
    ) {
        let (mut csv, mut json) = (String::new(), String::new());
        for (i, (count, pct)) in counts.iter().enumerate() {
            for cpu in 0..cpus {
                csv += &format!("CPU{cpu},{count},,e{i},1000,{pct}.00,,\n");
                json += &format!(
                    "{{\"cpu\" : \"{cpu}\", \"counter-value\" : \"{count}.000000\", \
                     \"unit\" : \"\", \"event\" : \"e{i}\", \"event-runtime\" : 1000, \
                     \"pcnt-running\" : {pct}.00, \"metric-value\" : 0.0, \
                     \"metric-unit\" : \"\"}}\n"
                );
            }
        }
        let (csv, json) = (stat::parse(csv.as_bytes()), stat::parse(json.as_bytes()));
        prop_assert_eq!(&csv, &json);
        let found = csv.unwrap();
        prop_assert_eq!(found.measurements.len(), 1);
        for (c, (count, pct)) in found.measurements[0].counts.iter().zip(&counts) {
            let value = (0..cpus).map(|_| *count as f64).sum::<f64>();
            prop_assert_eq!(c.value, Value::Counted { value, running_pct: f64::from(*pct) });
        }
    }
}

#[test]
fn runs_and_intervals_are_told_apart() {
    let appended = "# started on Sun\n\n0.5,msec,task-clock,500000,100.00,0.250,CPUs utilized\n\
        7,,cycles,0,100.00,,\n# started on Mon\n\n8,,cycles,0,100.00,,\n";
    let found = stat::parse(appended.as_bytes()).unwrap();
    assert_eq!(found.measurements.len(), 2);
    assert_eq!(found.measurements[0].cpus_busy, Some(0.25));
    assert_eq!(found.measurements[0].length_ns, Some(2_000_000));
    let intervals = "  0.100,3,,cycles,1,100.00,,\n  0.100,1,,instructions,1,100.00,,\n\
        hello from the program\n  0.250,5,,cycles,1,100.00,,\n";
    let found = stat::parse(intervals.as_bytes()).unwrap();
    assert_eq!(found.left_out, 1);
    let lengths: Vec<_> = found.measurements.iter().map(|m| m.length_ns).collect();
    assert_eq!(lengths, [Some(100_000_000), Some(150_000_000)]);
    assert_eq!(found.measurements[0].cycles_per_instruction(), Some(3.0));
}

#[test]
fn a_machine_that_is_measured_does_not_say_how_many_cpus_were_busy() {
    let text = "CPU0;51.32;msec;task-clock;51318183;100.00;0.996;CPUs utilized\n\
        CPU1;51.54;msec;task-clock;51543016;100.00;1.000;CPUs utilized\n\
        CPU0;<not supported>;;cycles;0;100.00;;\nCPU1;<not supported>;;cycles;0;100.00;;\n";
    let found = stat::parse(text.as_bytes()).unwrap();
    let m = &found.measurements[0];
    assert_eq!(m.cpus_busy, None);
    assert!(m.length_ns.is_some_and(|ns| (51_000_000..52_000_000).contains(&ns)));
    let why = m.missing(Counter::Cycles).expect("there is no count").to_string();
    assert_eq!(why, "not supported by this machine's PMU");
    assert_eq!(m.missing(Counter::Instructions), None, "nobody asked for it");
}

#[test]
fn what_is_for_people_is_refused_with_the_way_out() {
    let text = "\n Performance counter stats for 'true':\n\n       0.53 msec task-clock\n";
    let why = stat::parse(text.as_bytes()).unwrap_err().to_string();
    assert!(why.contains("perf stat -j") && why.contains("line 2"), "{why}");
    let text = "#           time             counts unit events\n  0.05  0.72 msec task-clock\n";
    assert!(matches!(stat::parse(text.as_bytes()), Err(stat::Error::NotJson { line: 1 })));
    assert!(matches!(stat::parse(b"PERFILE2....."), Err(stat::Error::Record)));
    let why = stat::parse(b"").unwrap_err().to_string();
    assert!(why.contains("found nothing"), "{why}");
}

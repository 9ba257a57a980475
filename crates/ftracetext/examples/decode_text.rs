//! Opens and decodes a text trace, and prints its properties and the speed.
//!
//! `cargo run --release -p holdup-ftracetext --example decode_text -- FILE [WORKERS]`

use holdup_ftracetext::TextOptions;
use holdup_trace::{Batch, Event, Reader, What};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

fn variant(what: &What) -> String {
    format!("{what:?}").split([' ', '{']).next().unwrap_or("").to_owned()
}

/// CPU time of this thread, ns. Wall-clock time would include other threads on a busy machine.
fn on_cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0.0) / 1e9
}

fn main() {
    let mut args = std::env::args().skip(1);
    let Some(file) = args.next() else {
        eprintln!("usage: decode FILE [WORKERS]");
        std::process::exit(2);
    };
    let workers = args.next().and_then(|w| w.parse().ok()).unwrap_or(1);
    let bytes = std::fs::metadata(&file).map_or(0, |m| m.len()) as f64 / 1e6;
    let t = Instant::now();
    let trace = match TextOptions::default().open(Path::new(&file)) {
        Ok(trace) => trace,
        Err(e) => {
            println!("{e}");
            std::process::exit(3);
        }
    };
    let opened = t.elapsed().as_secs_f64();

    // Decoding alone, one core, no merge.
    let cpu = on_cpu();
    let mut batch = Batch::new();
    let mut decoded = 0;
    for run in 0..trace.runs().len() {
        let mut decoder = trace.decoder(run);
        loop {
            batch.clear();
            let more = decoder.fill(&mut batch).expect("readable");
            decoded += batch.events.len();
            if !more {
                break;
            }
        }
    }
    let alone = on_cpu() - cpu;

    let t = Instant::now();
    let (mut merged, mut late) = (0u64, 0u64);
    let mut last = 0;
    let quality =
        holdup_trace::merge::drive(&trace, workers, &mut |events: &[Event], _: &Batch| {
            merged += events.len() as u64;
            for e in events {
                if e.ts < last {
                    late += 1;
                }
                last = e.ts;
            }
            ControlFlow::Continue(())
        })
        .expect("readable");
    let drive = t.elapsed().as_secs_f64();

    // The properties of the trace.
    let info = trace.info();
    println!("{}: {} (late {late})", file, trace.dialect());
    println!(
        "  events {} span {:?} runs {} cpus {:?} clock {:?}",
        trace.event_count(),
        info.span,
        trace.runs().len(),
        info.cpus_online,
        info.clock
    );
    for (label, value) in &info.extra {
        println!("  {label}: {value}");
    }
    for q in quality.entries() {
        println!("  {} {}", q.code, q.count);
    }
    let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
    for run in 0..trace.runs().len() {
        let mut decoder = trace.decoder(run);
        let mut more = true;
        while more {
            batch.clear();
            more = decoder.fill(&mut batch).expect("readable");
            for e in &batch.events {
                let name = info
                    .events
                    .get(e.id.0 as usize)
                    .map_or("(sideband)".to_owned(), |d| d.name.clone());
                *counts.entry((name, variant(&e.what))).or_default() += 1;
            }
        }
    }
    for ((name, what), n) in counts {
        println!("  {n:>9} {name} -> {what}");
    }
    println!(
        "  index {opened:.3} s {:.0} MB/s | decode {alone:.3} s {:.0} MB/s {:.2} M events/s | \
            merged, {workers} workers {drive:.3} s {:.0} MB/s ({merged} of {decoded})",
        bytes / opened,
        bytes / alone,
        decoded as f64 / alone / 1e6,
        bytes / drive
    );
}

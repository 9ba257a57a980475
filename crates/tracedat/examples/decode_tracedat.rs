//! Measures how fast a trace.dat is opened, decoded and merged: `decode FILE [ROUNDS]`.

use holdup_trace::{Batch, Event, Reader, merge};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let path = PathBuf::from(args.next().ok_or("usage: decode FILE [ROUNDS]")?);
    let rounds: usize = args.next().and_then(|a| a.to_str()?.parse().ok()).unwrap_or(3);
    let bytes = if path.is_dir() { 0 } else { std::fs::metadata(&path)?.len() };
    let open = || {
        if path.is_dir() {
            holdup_tracedat::open_raw_dir(&path)
        } else {
            holdup_tracedat::open(&path)
        }
    };
    for _ in 0..rounds {
        let start = Instant::now();
        let dat = open()?;
        report("open (parallel)", bytes, 0, start);

        let start = Instant::now();
        let mut events = 0;
        let mut batch = Batch::new();
        for run in 0..dat.runs().len() {
            let mut decoder = dat.decoder(run);
            loop {
                batch.clear();
                let more = decoder.fill(&mut batch)?;
                events += batch.events.len() as u64;
                if !more {
                    break;
                }
            }
        }
        report("decode (one core)", bytes, events, start);

        let start = Instant::now();
        let mut merged = 0;
        let mut sink = |e: &[Event], _: &Batch| {
            merged += e.len() as u64;
            ControlFlow::Continue(())
        };
        let quality = merge::drive(&dat, 0, &mut sink)?;
        report("decode + merge", bytes, merged, start);
        for q in quality.entries() {
            println!("  {} {}", q.code, q.count);
        }
    }
    let dat = open()?;
    let info = dat.info();
    println!(
        "{} clock={:?} cpus={:?} span={:?} runs={}",
        info.format,
        info.clock.name,
        info.cpus_online,
        info.span,
        dat.runs().len()
    );
    println!(
        "{:?} {:?} {:?} {:?} tasks={}",
        info.hostname,
        info.os_release,
        info.arch,
        info.recorder,
        info.tasks.len()
    );
    println!(
        "events: {} described; can prove: {:?}",
        info.events.len(),
        info.capabilities.list().iter().filter(|c| c.1).map(|c| c.0).collect::<Vec<_>>()
    );
    for (label, value) in &info.extra {
        println!("  {label}: {value}");
    }
    Ok(())
}

fn report(what: &str, bytes: u64, events: u64, start: Instant) {
    let s = start.elapsed().as_secs_f64();
    println!(
        "{what:18} {:8.1} ms {:8.0} MB/s {:6.1} M events/s",
        s * 1e3,
        bytes as f64 / s / 1e6,
        events as f64 / s / 1e6
    );
}

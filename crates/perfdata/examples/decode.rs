//! How fast a perf.data is indexed and decoded: `cargo run --release --example decode FILE [events]`.
//! With `events`, prints every event in order instead: time cpu tid name.

use holdup_trace::{Batch, Event, EventId, Reader, merge};
use std::io::Write;
use std::ops::ControlFlow;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let path = std::path::Path::new(args.first().ok_or("usage: decode FILE [events]")?);
    let start = Instant::now();
    let file = if path.as_os_str() == "-" { holdup_perfdata::open_stream(path, std::io::stdin())? } else { holdup_perfdata::open(path)? };
    let opened = start.elapsed();
    let info = file.info();
    if args.len() > 1 {
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        let mut sink = |events: &[Event], _: &Batch| {
            for e in events.iter().filter(|e| e.id != EventId::SIDEBAND) {
                let name = &info.events[e.id.0 as usize].name;
                if writeln!(out, "{} {} {} {name}", e.ts, e.cpu.0 as i16, e.tid).is_err() {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        };
        let quality = merge::drive(&file, 0, &mut sink)?;
        out.flush()?;
        for q in quality.entries() {
            eprintln!("{} {}", q.code, q.count);
        }
        return Ok(());
    }

    let mb = std::fs::metadata(path).map_or(0.0, |m| m.len() as f64 / 1e6);
    println!("index  {:8.2} ms  {:8.0} MB/s", opened.as_secs_f64() * 1e3, mb / opened.as_secs_f64());
    let start = Instant::now();
    let mut batch = Batch::new();
    let (mut events, mut samples) = (0u64, 0u64);
    for run in 0..file.runs().len() {
        let mut decoder = file.decoder(run);
        loop {
            batch.clear();
            let more = decoder.fill(&mut batch)?;
            events += batch.events.len() as u64;
            samples += batch.events.iter().filter(|e| e.id != EventId::SIDEBAND).count() as u64;
            if !more {
                break;
            }
        }
    }
    let t = start.elapsed().as_secs_f64();
    println!(
        "decode {:8.2} ms  {:8.0} MB/s  {:.1} M events/s  {:.1} ns/event (one thread, unmerged)",
        t * 1e3,
        mb / t,
        events as f64 / t / 1e6,
        t * 1e9 / events.max(1) as f64
    );
    let start = Instant::now();
    let mut merged = 0u64;
    let mut sink = |events: &[Event], _: &Batch| {
        merged += events.len() as u64;
        ControlFlow::Continue(())
    };
    let quality = merge::drive(&file, 0, &mut sink)?;
    let t = start.elapsed().as_secs_f64();
    println!("merge  {:8.2} ms  {:8.0} MB/s  {:.1} M events/s", t * 1e3, mb / t, merged as f64 / t / 1e6);
    println!("events {events} ({samples} samples, {merged} merged), runs {}, span {:?}", file.runs().len(), info.span);
    println!("system wide {:?}, tasks {}, caps {:?}", info.system_wide, info.tasks.len(), info.capabilities);
    for (label, value) in &info.extra {
        println!("{label}: {value}");
    }
    for q in quality.entries() {
        println!("{} {}: {}", q.code, q.count, q.message);
    }
    Ok(())
}

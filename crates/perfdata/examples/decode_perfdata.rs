//! How fast a perf.data is indexed and decoded: `cargo run --release --example decode_perfdata FILE
//! [events]`. With `events`, prints every event in order instead: time cpu tid name. With
//! `no-merge`, stops after decoding.

use holdup_trace::{Batch, Event, EventId, Reader, merge};
use std::io::Write;
use std::ops::ControlFlow;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let path = std::path::Path::new(args.first().ok_or("usage: decode FILE [events]")?);
    let start = Instant::now();
    let file = if path.as_os_str() == "-" {
        holdup_perfdata::open_stream(path, std::io::stdin())?
    } else {
        holdup_perfdata::open(path)?
    };
    let opened = start.elapsed();
    let info = file.info();
    let mode = args.get(1).map_or("", |m| m.as_str());
    if mode == "events" {
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        // A merge must produce this: the runs in file order, sorted stably by time.
        let (mut all, mut batch) = (Vec::new(), Batch::new());
        let mut quality = file.quality().clone();
        for run in 0..file.runs().len() {
            let mut decoder = file.decoder(run);
            let mut more = true;
            while more {
                batch.clear();
                more = decoder.fill(&mut batch)?;
                quality.absorb(&batch.quality);
                all.extend(batch.events.iter().filter(|e| e.id != EventId::SIDEBAND));
            }
        }
        all.sort_by_key(|e: &Event| e.ts);
        for e in all {
            writeln!(
                out,
                "{} {} {} {}",
                e.ts, e.cpu.0 as i16, e.tid, info.events[e.id.0 as usize].name
            )?;
        }
        out.flush()?;
        for q in quality.entries() {
            eprintln!("{} {}", q.code, q.count);
        }
        return Ok(());
    }

    let mb = std::fs::metadata(path).map_or(0.0, |m| m.len() as f64 / 1e6);
    println!(
        "index  {:8.2} ms  {:8.0} MB/s",
        opened.as_secs_f64() * 1e3,
        mb / opened.as_secs_f64()
    );
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
    if mode == "no-merge" {
        return Ok(());
    }
    let start = Instant::now();
    let mut merged = 0u64;
    let mut sink = |events: &[Event], _: &Batch| {
        merged += events.len() as u64;
        ControlFlow::Continue(())
    };
    let quality = merge::drive(&file, 0, &mut sink)?;
    let t = start.elapsed().as_secs_f64();
    println!(
        "merge  {:8.2} ms  {:8.0} MB/s  {:.1} M events/s",
        t * 1e3,
        mb / t,
        merged as f64 / t / 1e6
    );
    println!(
        "events {events} ({samples} samples, {merged} merged), runs {}, span {:?}",
        file.runs().len(),
        info.span
    );
    println!(
        "system wide {:?}, tasks {}, caps {:?}",
        info.system_wide,
        info.tasks.len(),
        info.capabilities
    );
    for (label, value) in &info.extra {
        println!("{label}: {value}");
    }
    for q in quality.entries() {
        println!("{} {}: {}", q.code, q.count, q.message);
    }
    Ok(())
}

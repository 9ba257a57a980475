use holdup_attribution::analyze;
use holdup_passes::{Detail, Options};
use holdup_replay::*;
fn main() {
    let mut bad = 0;
    for file in std::env::args().skip(1) {
        let Ok(reader) = holdup_open::open(std::path::Path::new(&file)) else { continue };
        let options = Options { detail: Detail::Steps, ..Options::default() };
        let a = analyze(&*reader, &options).unwrap();
        let t0 = std::time::Instant::now();
        let program = match Program::new(&a) {
            Ok(p) => p,
            Err(e) => {
                println!("{file}: {e}");
                continue;
            }
        };
        let t1 = std::time::Instant::now();
        let p = predict(&program, &[], Seeds::of(&program)).unwrap();
        let t2 = std::time::Instant::now();
        let err = (p.wall_ns as f64 / program.traced_wall_ns as f64 - 1.0) * 100.0;
        let exact = program
            .threads
            .iter()
            .zip(&p.run_ns)
            .filter(|(t, r)| t.works && t.run_ns != **r)
            .count();
        let exact2 =
            program.threads.iter().filter(|t| t.run_ns != a.thread(t.slot).running_ns).count();
        if err.abs() > 2.0 {
            bad += 1
        }
        println!(
            "{err:+7.2}% [{:+.2} {:+.2}] forced {} inexact {exact} {exact2} wall {:.3}/{:.3} cpus {} ops {} lost {} {:.0?} {:.0?} {}",
            (p.wall_low_ns as f64 / program.traced_wall_ns as f64 - 1.0) * 100.0,
            (p.wall_high_ns as f64 / program.traced_wall_ns as f64 - 1.0) * 100.0,
            p.forced,
            program.traced_wall_ns as f64 / 1e9,
            a.wall_ns() as f64 / 1e9,
            program.cpus,
            program.steps(),
            a.lost_events,
            t1 - t0,
            t2 - t1,
            file.rsplit('/').next().unwrap()
        );
    }
    println!("{bad} off by more than 2 %");
}

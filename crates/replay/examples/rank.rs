//! Ranks.
use holdup_replay::*;
fn main() {
    for file in std::env::args().skip(1) {
        let t0 = std::time::Instant::now();
        let reader = holdup_open::open(std::path::Path::new(&file)).unwrap();
        let options =
            holdup_passes::Options { detail: holdup_passes::Detail::Steps, ..Default::default() };
        let a = holdup_attribution::analyze(&*reader, &options).unwrap();
        let t1 = std::time::Instant::now();
        let p = Program::new(&a).unwrap();
        let t2 = std::time::Instant::now();
        let r = rank(&p, Seeds::of(&p));
        let base = r.unchanged.wall_ns as f64;
        println!(
            "{file}: traced {} replay {} ops {} analyse {:.1?} build {:.1?} rank {:.1?}",
            p.traced_wall_ns,
            r.unchanged.wall_ns,
            p.steps(),
            t1 - t0,
            t2 - t1,
            t2.elapsed()
        );
        for row in r.rows.iter().take(6) {
            println!(
                "  {:.3}x {} {} forced {}",
                base / row.prediction.wall_ns as f64,
                row.holdup.word(),
                Shown(&p, &row.change),
                row.prediction.forced
            );
        }
        if let Some(next) = &r.next {
            println!("  next {:.3}x {}", next.gain, Shown(&p, &r.rows[next.row].change));
        }
    }
}

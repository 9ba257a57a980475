//! Predicts: file cpus…
use holdup_replay::*;
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let reader = holdup_open::open(std::path::Path::new(&args[0])).unwrap();
    let options =
        holdup_passes::Options { detail: holdup_passes::Detail::Steps, ..Default::default() };
    let a = holdup_attribution::analyze(&*reader, &options).unwrap();
    let p = Program::new(&a).unwrap();
    let base = predict(&p, &[], Seeds::of(&p)).unwrap();
    for n in &args[1..] {
        let n = n.parse().unwrap();
        let x = predict(&p, &[Change::Cpus(n)], Seeds::of(&p)).unwrap();
        println!("{n} {:.4}", base.wall_ns as f64 / x.wall_ns as f64);
    }
}

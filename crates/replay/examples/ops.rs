//! Prints programs.
fn main() {
    let file = std::env::args().nth(1).unwrap();
    let reader = holdup_open::open(std::path::Path::new(&file)).unwrap();
    let options =
        holdup_passes::Options { detail: holdup_passes::Detail::Steps, ..Default::default() };
    let a = holdup_attribution::analyze(&*reader, &options).unwrap();
    let p = holdup_replay::Program::new(&a).unwrap();
    println!("{}", p.dump(std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(40)));
}

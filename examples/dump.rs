use holdup_passes::*;
fn main() {
    for p in std::env::args().skip(1) {
        let r = match holdup_open::open(std::path::Path::new(&p)) {
            Ok(r) => r,
            Err(e) => {
                println!("{p}: {e}");
                continue;
            }
        };
        let a = analyze(&*r, &Options::default()).unwrap();
        let f = holdup_diagnose::Facts::new(r.info(), &a, None);
        for c in f.contended.iter() {
            let costs = a.costs(c.nr).unwrap();
            let all = costs.calls();
            let pct = all.total_ns as f64 * 100.0 / a.capacity_ns() as f64;
            if pct < 4.0 {
                continue;
            }
            let (x, s) = costs.turns();
            let e = costs.exclusion();
            let tr = f.stretch;
            let s50 = f.pct((all.total_ns as f64 - all.count as f64 * all.median_ns() as f64 * tr).max(0.0) as u64);
            println!(
                "   {:<10} tot {:5.1} lost {:5.1} n {:6} alone {:5} own {:7.1} p50 {:.1} mean {:8.1} p90 {:7.1} | excl {:5.1}/{:5.1} | cross {} same {} turns {:?} | comp {:?} stretch {:.1} S50 {:.1} sleeps {}",
                c.name,
                pct,
                f.pct(c.lost_ns),
                all.count,
                costs.alone.count,
                c.own_ns as f64 / 1e3,
                all.median_ns() as f64 / 1e3,
                c.mean_ns as f64 / 1e3,
                all.quantile_ns(0.9) as f64 / 1e3,
                e.observed,
                e.expected,
                x,
                s,
                c.turns,
                c.company_pct,
                f.stretch,
                s50,
                f.sleeps_for_others(c)
            );
        }
    }
}

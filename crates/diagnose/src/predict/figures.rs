//! Subjects without a trace: locks with published or measured times, and a given demand.

use super::{Basis, Forecast, Seen, Subject, all_of, forecast, lost, optimism, with_default};
use crate::metrics::Figures;
use holdup_model::Station;

/// One lock that each CPU would hold for `demand` of its time, 0 to 1, if it were alone. Its
/// `servers` let this many in at once. Threads beyond the number of CPUs sleep while they wait.
pub fn of_demand(demand: f64, servers: u32, threads: Option<u32>, cpus: &[u32]) -> Forecast {
    let subject = Subject {
        object: "lock".to_owned(),
        pid: None,
        comm: None,
        threads,
        spins: threads.is_none(),
        seen: None,
        stations: vec![Station { demand, servers }],
        kinds: Vec::new(),
        basis: Some(Basis::Given),
    };
    forecast(&[subject], cpus, vec![optimism()])
}

/// The locks of a file of figures that have rate, hold and wait times. `Err` says what is missing.
pub fn of_figures(figures: &Figures, cpus: &[u32]) -> Result<Forecast, &'static str> {
    let seen_cpus = figures.processors().ok_or("the number of CPUs is missing (key `cpus`)")?;
    if figures.semaphores.is_empty() {
        return Err("there is no lock with rate, hold and wait times (key `semaphores`)");
    }
    let mut notes = vec![optimism()];
    let mut subjects = Vec::new();
    for s in &figures.semaphores {
        let of_rate = |us: f64| s.requests_per_s * us * 1e-6;
        let seen = Seen {
            cpus: seen_cpus,
            lost: of_rate(s.wait_us),
            held: Some(of_rate(s.hold_us)),
            rate: Some(s.requests_per_s),
        };
        let demand = seen.demand(seen_cpus);
        if demand.is_none() {
            notes.push(format!(
                "{}: holding and waiting take more time than {seen_cpus} CPUs have: the figures \
                 contradict each other, so there is no prediction",
                s.name
            ));
        }
        subjects.push(Subject {
            object: s.name.clone(),
            pid: None,
            comm: None,
            threads: None,
            spins: true,
            seen: Some(seen),
            stations: demand.map(Station::lock).into_iter().collect(),
            kinds: Vec::new(),
            basis: Some(Basis::Measured),
        });
    }
    subjects.sort_by(|a, b| lost(b).total_cmp(&lost(a)));
    let all = all_of(&subjects, None);
    subjects.splice(0..0, all);
    Ok(forecast(&subjects, &with_default(cpus, seen_cpus), notes))
}

//! The same work on 1, 2, 4 … processors: speedup, efficiency, and the serial part.
//!
//! ```text
//! speedup     S = T(1) / T(p)            efficiency  E = S / p
//! Amdahl 1967           S = 1 / (f + (1 - f) / p)
//! Karp and Flatt 1990   f = (1/S - 1/p) / (1 - 1/p)
//! ```
//!
//! Karp and Flatt solve Amdahl's law for f, for each rung: if f is constant, part of the work is
//! serial; if it grows with p, the processors hinder each other; if it is below 0, the work itself
//! became less.

/// One measurement: the time of the work on a number of processors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rung {
    /// Processors, p.
    pub cpus: u32,
    /// Time of the work, in any unit that is the same for all rungs.
    pub time: f64,
}

/// Measurements of one work, fewest processors first.
#[derive(Clone, Debug, PartialEq)]
pub struct Ladder {
    rungs: Vec<Rung>,
}

impl Ladder {
    /// A ladder of these rungs. `None` without rungs, if two have the same number of processors, or
    /// if a time is not above 0.
    pub fn new(mut rungs: Vec<Rung>) -> Option<Ladder> {
        rungs.sort_by_key(|r| r.cpus);
        let sound = |r: &Rung| r.cpus > 0 && r.time > 0.0 && r.time.is_finite();
        let distinct = rungs.windows(2).all(|w| w[0].cpus < w[1].cpus);
        (!rungs.is_empty() && distinct && rungs.iter().all(sound)).then_some(Ladder { rungs })
    }

    /// The measurements, fewest processors first.
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// How much faster a rung is than the lowest one.
    pub fn speedup(&self, rung: Rung) -> f64 {
        self.rungs[0].time / rung.time
    }

    /// The fraction of the added processors that helped: speedup over the growth in processors.
    pub fn efficiency(&self, rung: Rung) -> f64 {
        self.speedup(rung) * f64::from(self.rungs[0].cpus) / f64::from(rung.cpus)
    }

    /// Karp and Flatt's serial fraction of a rung. `None` for the lowest rung, and if the lowest is
    /// not one processor: its serial share is unknown then.
    pub fn serial_fraction(&self, rung: Rung) -> Option<f64> {
        let inverse = 1.0 / f64::from(rung.cpus);
        (self.rungs[0].cpus == 1 && rung.cpus > 1)
            .then(|| (1.0 / self.speedup(rung) - inverse) / (1.0 - inverse))
    }

    /// The serial fraction of Amdahl's law that fits all rungs best: least squares of the relative
    /// errors of the times. `None` with fewer than two rungs, or if the lowest is not one
    /// processor.
    pub fn amdahl(&self) -> Option<f64> {
        if self.rungs[0].cpus != 1 || self.rungs.len() < 2 {
            return None;
        }
        // T(p)/T(1) = 1/p + f (1 - 1/p), which is linear in f.
        let (mut top, mut bottom) = (0.0, 0.0);
        for rung in &self.rungs[1..] {
            let time = rung.time / self.rungs[0].time;
            let parallel = 1.0 / f64::from(rung.cpus);
            let weight = 1.0 / (time * time);
            top += weight * (time - parallel) * (1.0 - parallel);
            bottom += weight * (1.0 - parallel) * (1.0 - parallel);
        }
        Some(top / bottom)
    }
}

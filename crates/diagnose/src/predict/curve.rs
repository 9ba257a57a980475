//! The points of the curve.

use super::Subject;

/// Effective CPUs over CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The object's name.
    pub object: String,
    /// (CPUs, CPUs that do not wait by the model), fewest first.
    pub points: Vec<(u32, f64)>,
    /// CPUs and effective CPUs, measured.
    pub measured: Option<(u32, f64)>,
    /// The limit of the effective CPUs.
    pub ceiling: Option<f64>,
}

impl Curve {
    /// From one CPU to `most`, with at most as many points as a picture shows.
    pub(crate) fn of(subject: &Subject, most: u32) -> Option<Curve> {
        let step = most.div_ceil(128).max(1);
        let mut cpus: Vec<u32> = (1..=most).step_by(step as usize).collect();
        if cpus.last() != Some(&most) {
            cpus.push(most);
        }
        let points = cpus.iter().map(|&n| Some((n, subject.predicted(n)?.load.effective_cpus())));
        let seen = subject.seen.filter(|s| s.cpus <= most);
        let measured = seen.map(|s| (s.cpus, s.effective(subject.threads_on(s.cpus))));
        // If threads differ, those that do not use a saturated lock go on.
        let alike = subject.kinds.is_empty();
        let ceiling = subject.network()?.saturation().filter(|_| alike);
        Some(Curve {
            object: subject.object.clone(),
            points: points.collect::<Option<_>>()?,
            measured,
            ceiling,
        })
    }
}

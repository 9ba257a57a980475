//! The points of the picture.

use super::Subject;

/// Effective CPUs over CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Whose.
    pub object: String,
    /// (CPUs, CPUs that do not wait by the model), fewest first.
    pub points: Vec<(u32, f64)>,
    /// The same, measured.
    pub measured: Option<(u32, f64)>,
    /// No more CPUs than these ever do work.
    pub ceiling: Option<f64>,
}

impl Curve {
    /// From one CPU to `most`, in no more steps than a picture shows.
    pub(crate) fn of(subject: &Subject, most: u32) -> Option<Curve> {
        let step = most.div_ceil(128).max(1);
        let mut cpus: Vec<u32> = (1..=most).step_by(step as usize).collect();
        if cpus.last() != Some(&most) {
            cpus.push(most);
        }
        let points = cpus.iter().map(|&n| Some((n, subject.predicted(n)?.load.effective_cpus())));
        let seen = subject.seen.filter(|s| s.cpus <= most);
        let measured = seen.map(|s| (s.cpus, s.effective(subject.threads_on(s.cpus))));
        // Of unlike threads, those that do not use a full lock go on.
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

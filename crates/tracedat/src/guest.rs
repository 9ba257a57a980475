//! A guest's clock shifted to its host's: the TIME_SHIFT option.
//!
//! When host and guest are recorded together (trace-cmd-agent(1)), the recorder measures now and
//! then the offset between the guest's and the host's clock, per virtual CPU. The layout is from
//! trace-cmd.dat.v7(5); the order of the calculation is trace-cmd's, so that both print the same
//! times.

/// Bit 0 of the option's flags: interpolate between two measurements.
const INTERPOLATE: u32 = 1;

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    time: u64,
    offset: i64,
    scaling: i64,
    /// Number of fraction bits of `scaling`.
    fraction: u32,
}

/// The measurements of one virtual CPU, in order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GuestClock {
    samples: Vec<Sample>,
    interpolate: bool,
}

impl GuestClock {
    /// Read the option. One clock per CPU; empty if the option makes no sense or names no host.
    pub(crate) fn parse(data: &[u8], big: bool) -> Vec<GuestClock> {
        let mut rest = data;
        let mut take = |n: usize| -> Option<u64> {
            let (head, tail) = rest.split_at_checked(n)?;
            rest = tail;
            let fold = |acc: u64, &b: &u8| acc << 8 | b as u64;
            Some(if big { head.iter().fold(0, fold) } else { head.iter().rev().fold(0, fold) })
        };
        let (Some(1..), Some(flags), Some(cpus)) = (take(8), take(4), take(4)) else {
            return Vec::new();
        };
        let interpolate = flags as u32 & INTERPOLATE != 0;
        let mut clocks = Vec::new();
        for _ in 0..cpus {
            let Some(count) = take(4) else { return Vec::new() };
            // Collected one by one: a count too large ends with the bytes.
            let mut column = || (0..count).map(|_| take(8)).collect::<Option<Vec<u64>>>();
            let (Some(times), Some(offsets), Some(scalings)) = (column(), column(), column())
            else {
                return Vec::new();
            };
            let mut samples = Vec::new();
            for ((time, offset), scaling) in times.into_iter().zip(offsets).zip(scalings) {
                samples.push(Sample {
                    time,
                    offset: offset as i64,
                    scaling: scaling as i64,
                    fraction: 0,
                });
            }
            clocks.push(GuestClock { samples, interpolate });
        }
        // Only trace-cmd since 3.0 writes these, after all CPUs.
        for sample in clocks.iter_mut().flat_map(|c| &mut c.samples) {
            sample.fraction = take(8).unwrap_or(0) as u32;
        }
        clocks
    }

    /// The host's time.
    pub(crate) fn apply(&self, ts: u64) -> u64 {
        let samples = &self.samples;
        let [first, .., _] = samples.as_slice() else {
            return samples.first().map_or(ts, |only| ts.wrapping_add_signed(only.offset));
        };
        // The last measurement that is not after `ts` and has a successor.
        let at = if ts <= first.time {
            0
        } else {
            samples.partition_point(|s| s.time <= ts).clamp(1, samples.len() - 1) - 1
        };
        let (a, b) = (samples[at], samples[at + 1]);
        let mut offset = a.offset;
        if self.interpolate {
            let delta = b.time.wrapping_sub(a.time) as i64;
            let part =
                (ts.wrapping_sub(a.time) as i64).wrapping_mul(b.offset.wrapping_sub(a.offset));
            offset =
                offset.wrapping_add(part.wrapping_add(delta / 2).checked_div(delta).unwrap_or(0));
        }
        let scaled = ts.wrapping_mul(a.scaling as u64) >> a.fraction.min(63);
        scaled.wrapping_add_signed(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_before_and_after_the_measurements() {
        let s = |time, offset| Sample { time, offset, scaling: 2, fraction: 1 };
        let mut c =
            GuestClock { samples: vec![s(100, 10), s(200, 20), s(300, 60)], interpolate: true };
        assert_eq!(
            [50, 100, 150, 200, 250, 300, 400].map(|t| c.apply(t)),
            [56, 110, 165, 220, 290, 360, 500]
        );
        c.interpolate = false;
        assert_eq!([50, 150, 250, 400].map(|t| c.apply(t)), [60, 160, 270, 420]);
        c.samples.truncate(1);
        assert_eq!(c.apply(7), 17);
        c.samples.clear();
        assert_eq!(c.apply(7), 7);
        c.samples = vec![s(5, 1), s(5, 2)];
        c.interpolate = true;
        assert_eq!(c.apply(9), 10, "no time between the measurements");
    }

    #[test]
    fn nonsense_shifts_nothing() {
        assert!(GuestClock::parse(&[], false).is_empty());
        assert!(GuestClock::parse(&[0xff; 40], true).is_empty());
    }
}

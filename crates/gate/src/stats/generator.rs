//! Pseudorandom numbers that are the same on every run.
//!
//! SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA
//! 2014). A gate whose answers vary is not trusted, so nothing here is seeded by the time.

/// A generator of numbers; two with the same seed give the same numbers.
#[derive(Clone, Debug)]
pub struct Generator {
    state: u64,
    /// The polar method makes normal values in pairs: this is the second one, for the next call.
    spare: Option<f64>,
}

impl Generator {
    /// The generator with this seed.
    pub fn new(seed: u64) -> Generator {
        Generator { state: seed, spare: None }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform from 0 to 1, without 1.
    pub fn unit(&mut self) -> f64 {
        // 53 bits are what the mantissa holds.
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform from 0 to `n` - 1; 0 if `n` is 0. The bias is below n / 2^64.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Normal with mean 0 and standard deviation 1 (Marsaglia and Bray's polar method, 1964).
    pub fn normal(&mut self) -> f64 {
        if let Some(value) = self.spare.take() {
            return value;
        }
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let s = x * x + y * y;
            if s > 0.0 && s < 1.0 {
                let scale = (-2.0 * s.ln() / s).sqrt();
                self.spare = Some(y * scale);
                return x * scale;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the authors' own program for the seed 1234567.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut g = Generator::new(1_234_567);
        let known = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([g.bits(), g.bits()], known);
    }

    #[test]
    fn normal_values_have_the_moments_of_a_normal_distribution() {
        let mut g = Generator::new(1);
        let values: Vec<f64> = (0..100_000).map(|_| g.normal()).collect();
        let moment = |k: i32| values.iter().map(|v| v.powi(k)).sum::<f64>() / 1e5;
        assert!(moment(1).abs() < 0.015, "mean {}", moment(1));
        assert!((moment(2) - 1.0).abs() < 0.02, "variance {}", moment(2));
        assert!(moment(3).abs() < 0.05, "skew {}", moment(3));
        assert!((moment(4) - 3.0).abs() < 0.15, "kurtosis {}", moment(4));
    }

    #[test]
    fn of_no_numbers_it_is_0() {
        assert_eq!(Generator::new(1).below(0), 0);
    }
}

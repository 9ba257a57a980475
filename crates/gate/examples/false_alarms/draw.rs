//! Which runs are on the two sides of a comparison.

use holdup_gate::stats::generator::Generator;

/// How the runs of a comparison are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Design {
    /// This many on each side, whenever they were recorded.
    Any(usize),
    /// This many consecutive runs on each side: as if one side were recorded first and the other
    /// later.
    Blocks(usize),
    /// This many pairs of runs recorded one right after the other.
    Pairs(usize),
}

/// The runs of a comparison, by their index in the order of recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Drawn {
    pub(crate) a: Vec<usize>,
    pub(crate) b: Vec<usize>,
}

impl Design {
    /// Whether the runs of the two sides form pairs.
    pub(crate) fn paired(self) -> bool {
        matches!(self, Design::Pairs(_))
    }

    /// Runs per side.
    pub(crate) fn runs(self) -> usize {
        match self {
            Design::Any(n) | Design::Blocks(n) | Design::Pairs(n) => n,
        }
    }

    /// Draw `times` comparisons of `of` runs with themselves: no run is on both sides.
    pub(crate) fn same(self, of: usize, times: usize, g: &mut Generator) -> Vec<Drawn> {
        match self {
            Design::Any(n) => (0..times)
                .map(|_| {
                    let drawn = choose(of, 2 * n, g);
                    Drawn { a: drawn[..n].to_vec(), b: drawn[n..].to_vec() }
                })
                .collect(),
            // There are so few of them that all are used.
            Design::Blocks(n) => {
                let starts = 0..=of - n;
                let apart = |a: usize, b: usize| a.abs_diff(b) >= n;
                let block = |from: usize| (from..from + n).collect();
                starts
                    .clone()
                    .flat_map(|a| starts.clone().map(move |b| (a, b)))
                    .filter(|&(a, b)| apart(a, b))
                    .map(|(a, b)| Drawn { a: block(a), b: block(b) })
                    .collect()
            }
            Design::Pairs(n) => (0..times)
                .map(|_| {
                    let mut pairs = choose(of / 2, n, g);
                    pairs.sort_unstable();
                    let mut drawn = Drawn { a: Vec::new(), b: Vec::new() };
                    for pair in pairs {
                        let first = g.below(2);
                        drawn.a.push(2 * pair + first);
                        drawn.b.push(2 * pair + 1 - first);
                    }
                    drawn
                })
                .collect(),
        }
    }

    /// Draw `times` comparisons of two sets of `of` runs, recorded alternately.
    pub(crate) fn other(self, of: usize, times: usize, g: &mut Generator) -> Vec<Drawn> {
        let mut one = || match self {
            Design::Any(n) => Drawn { a: choose(of, n, g), b: choose(of, n, g) },
            Design::Blocks(n) => {
                let mut block = || {
                    let from = g.below(of - n + 1);
                    (from..from + n).collect()
                };
                Drawn { a: block(), b: block() }
            }
            Design::Pairs(n) => {
                let mut rounds = choose(of, n, g);
                rounds.sort_unstable();
                Drawn { a: rounds.clone(), b: rounds }
            }
        };
        (0..times).map(|_| one()).collect()
    }
}

/// `n` of the numbers below `of`, in any order, without repetition.
fn choose(of: usize, n: usize, g: &mut Generator) -> Vec<usize> {
    let mut all: Vec<usize> = (0..of).collect();
    for i in 0..n {
        let with = i + g.below(of - i);
        all.swap(i, with);
    }
    all.truncate(n);
    all
}

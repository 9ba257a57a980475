//! Every figure of two sides compared, the largest change first.

use crate::judge::Sides;
use crate::metric::{Figure, Kind, Metric, Per};
use crate::sample;
use crate::stats::spread::median;
use crate::work::Work;
use std::collections::BTreeSet;

/// A figure of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The metric: the figure after division.
    pub metric: Metric,
    /// The figure.
    pub figure: Figure,
    /// Median before; `None` if it was not recorded, or means something else on the other side.
    pub a: Option<f64>,
    /// Median after.
    pub b: Option<f64>,
}

impl Row {
    /// After minus before.
    pub fn change(&self) -> Option<f64> {
        Some(self.b? - self.a?)
    }

    /// The change relative to before, in per cent; `None` from 0 to something.
    pub fn change_pct(&self) -> Option<f64> {
        let (a, change) = (self.a?, self.change()?);
        match (a == 0.0, change == 0.0) {
            (true, true) => Some(0.0),
            (true, false) => None,
            _ => Some(change * 100.0 / a),
        }
    }

    /// It did not happen before, but does now.
    pub fn is_new(&self) -> bool {
        self.a == Some(0.0) && self.b.is_some_and(|b| b > 0.0)
    }

    /// It happened before, and no longer does.
    pub fn is_gone(&self) -> bool {
        self.b == Some(0.0) && self.a.is_some_and(|a| a > 0.0)
    }

    /// The time that the change is worth; 0 for figures that do not add up to time.
    fn weight(&self) -> f64 {
        match self.figure.measure.kind {
            Kind::Time => self.change().map_or(0.0, f64::abs),
            Kind::Count | Kind::Span | Kind::Part => 0.0,
        }
    }
}

/// All figures, with sums divided by `per`. The row (of one table and key) whose time changed most
/// comes first; its counts and spans follow it.
pub fn rows(sides: Sides<'_>, per: Per, work: &Work) -> Vec<Row> {
    let figures: BTreeSet<&Figure> =
        sides.runs().flat_map(|r| r.figures.iter()).map(|(figure, _)| figure).collect();
    let mut rows: Vec<Row> = figures.into_iter().map(|f| row(sides, f, per, work)).collect();
    let key = |r: &Row| (r.figure.table, r.figure.key.clone());
    // The largest change of each row orders the rows; in the list of figures, rows are contiguous.
    let mut weights: Vec<f64> = Vec::with_capacity(rows.len());
    for group in rows.chunk_by(|x, y| key(x) == key(y)) {
        let most = group.iter().map(Row::weight).fold(0.0, f64::max);
        weights.extend(std::iter::repeat_n(most, group.len()));
    }
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|&x, &y| {
        (weights[y].total_cmp(&weights[x]))
            .then_with(|| key(&rows[x]).cmp(&key(&rows[y])))
            .then_with(|| rows[y].weight().total_cmp(&rows[x].weight()))
            .then_with(|| rows[x].figure.cmp(&rows[y].figure))
    });
    let mut taken: Vec<Option<Row>> = rows.drain(..).map(Some).collect();
    order.into_iter().filter_map(|i| taken[i].take()).collect()
}

fn row(sides: Sides<'_>, figure: &Figure, per: Per, work: &Work) -> Row {
    let per = match (figure.measure.kind, per) {
        // Neither a longest wait nor a fraction grows with the work.
        (Kind::Span | Kind::Part, _) => Per::Recording,
        // Counts are not fractions of CPU time.
        (Kind::Count, Per::Capacity) => Per::Second,
        _ => per,
    };
    let comparable = sides.compare(figure).is_ok();
    let side = |runs| {
        let values = sample::values(runs, figure, per, work).ok().filter(|_| comparable)?;
        median(&values)
    };
    Row {
        metric: Metric::Number { figure: figure.clone(), per },
        figure: figure.clone(),
        a: side(sides.a),
        b: side(sides.b),
    }
}

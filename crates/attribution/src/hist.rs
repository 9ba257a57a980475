//! Histograms of waiting times, by powers of two.

use crate::Attribution;
use crate::table::{ObjectRow, WaitsBy, by_cost};
use holdup_passes::HistRow;
use std::collections::BTreeMap;

impl Attribution<'_> {
    /// For the `most` objects, or kinds of objects, that cost most; by thread counts as by object.
    pub fn wait_hists(&self, by: WaitsBy, most: usize) -> Vec<HistRow> {
        let mut objects = self.object_rows();
        objects.sort_by(|a, b| by_cost(&a.row, &b.row));
        let hist = |kind: &str, name: &str, rows: &[&ObjectRow]| {
            let of: Vec<_> = rows.iter().flat_map(|row| row.objects.iter().copied()).collect();
            self.analysis.wait_hist(&of, kind, name)
        };
        let use_of = |row: &ObjectRow| row.row.usage.unwrap_or(row.row.kind);
        match by {
            WaitsBy::Object | WaitsBy::Thread | WaitsBy::Cgroup => {
                let name = |row: &ObjectRow| format!("{} of {}", row.row.object, row.row.comm);
                let one = |row: &ObjectRow| hist(use_of(row), &name(row), &[row]);
                objects.iter().take(most).flat_map(one).collect()
            }
            WaitsBy::Kind => {
                // Kinds in the order of their costliest object.
                let mut kinds: Vec<&str> = Vec::new();
                let mut of: BTreeMap<&str, Vec<&ObjectRow>> = BTreeMap::new();
                for row in &objects {
                    let rows = of.entry(use_of(row)).or_default();
                    if rows.is_empty() {
                        kinds.push(use_of(row));
                    }
                    rows.push(row);
                }
                let all = |kind: &&str| hist(kind, "all", &of[kind]);
                kinds.iter().take(most).flat_map(all).collect()
            }
        }
    }
}

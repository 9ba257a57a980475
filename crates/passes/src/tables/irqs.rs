//! Interrupts, softirqs and kernel work.

use crate::analysis::Analysis;
use crate::irqs::{IrqKind, IrqStats};
use crate::rows::*;
use holdup_trace::{Cpu, NameId};
use std::collections::BTreeMap;

impl Analysis {
    /// Rows of interrupts, softirqs and work functions; per CPU or summed over all CPUs.
    pub fn irqs(&self, per_cpu: bool) -> Vec<IrqRow> {
        let mut groups: BTreeMap<(IrqKind, u64, Option<Cpu>), IrqStats> = BTreeMap::new();
        for (&(kind, id, cpu), stats) in &self.engine.irqs.rows {
            if self.options.selection.cpus.as_ref().is_none_or(|list| list.contains(&cpu)) {
                groups.entry((kind, id, per_cpu.then_some(cpu))).or_default().merge(stats);
            }
        }
        let mut rows: Vec<IrqRow> = groups
            .into_iter()
            .filter(|(_, s)| s.count > 0)
            .map(|((kind, id, cpu), s)| {
                let (kind, id, name) = self.handler_words(kind, id, s.name);
                IrqRow {
                    kind,
                    id,
                    name,
                    cpu: cpu.map(|c| c.0),
                    count: s.count,
                    total_ns: s.total,
                    avg_ns: s.total / s.count,
                    max_ns: s.max,
                    max_start_ns: s.max_start,
                }
            })
            .collect();
        // Interned ids must not decide the order.
        rows.sort_by(|a, b| {
            (a.kind, &a.name, a.cpu, a.count, a.total_ns)
                .cmp(&(b.kind, &b.name, b.cpu, b.count, b.total_ns))
        });
        rows
    }

    /// Kind, number and name of a handler whose events give the name `name`.
    pub(crate) fn handler_words(
        &self,
        kind: IrqKind,
        id: u64,
        name: NameId,
    ) -> (&'static str, u64, String) {
        let given = self.engine.names.get(name);
        // ftrace text gives work items a name and no address; the id is then holdup's own number.
        let id = if kind == IrqKind::Work && !given.is_empty() { 0 } else { id };
        let (kind, name) = match kind {
            IrqKind::Irq => ("irq", given),
            IrqKind::Vector => ("irq", given),
            IrqKind::Softirq => ("softirq", softirq(id)),
            IrqKind::Work if given.is_empty() => (
                "workqueue",
                self.functions.get(&id).cloned().unwrap_or_else(|| format!("{id:#x}")),
            ),
            IrqKind::Work => ("workqueue", given),
        };
        (kind, id, name)
    }
}

/// A softirq by the kernel's name, or by its number.
fn softirq(vec: u64) -> String {
    let name = u32::try_from(vec).ok().and_then(holdup_trace::softirq_name);
    name.map_or_else(|| format!("softirq_{vec}"), str::to_owned)
}

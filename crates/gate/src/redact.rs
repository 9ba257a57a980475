//! Names that may be private, hashed: a baseline stays comparable without saying what runs where.
//!
//! Hashed are hosts, programs, and the names of probes; what is the kernel's own (system calls,
//! locks, softirqs, the ledger) stays readable. The hash is SHA-256, cut to 48 bits. It hides names
//! that nobody would guess; whoever knows a name can still test for it.

use crate::figures::Figures;
use crate::metric::{Figure, Table};
use crate::run::Run;
use sha2::{Digest, Sha256};

/// Hashes names.
pub(crate) struct Redactor;

impl Redactor {
    /// A run's names.
    pub(crate) fn run(&self, run: &mut Run) {
        if let Some(host) = &mut run.setting.host {
            *host = self.name(host);
        }
        for event in &mut run.setting.events {
            *event = self.event(event);
        }
        run.setting.events.sort();
        for (program, _) in &mut run.others.programs {
            *program = self.name(program);
        }
        let mut figures = Figures::default();
        for (figure, value) in run.figures.iter() {
            let key = self.key(figure.table, &figure.key);
            figures.set(Figure { key, ..figure.clone() }, value);
        }
        run.figures = figures;
        for object in &mut run.objects {
            object.key = self.key(Table::Waits, &object.key);
        }
    }

    /// The key of a row.
    pub(crate) fn key(&self, table: Table, key: &str) -> String {
        match table {
            Table::Procs => self.name(key),
            // `mutex server`: the kind of object says nothing about who it is.
            Table::Waits => match key.split_once(' ') {
                Some((kind, program)) => format!("{kind} {}", self.name(program)),
                None => key.to_owned(),
            },
            Table::Events => self.event(key),
            _ => key.to_owned(),
        }
    }

    fn event(&self, name: &str) -> String {
        let probe = ["probe", "sdt", "uprobes", "kprobes", "synthetic"];
        match name.split_once(':') {
            Some((system, event)) if probe.iter().any(|p| system.starts_with(p)) => {
                format!("probe:{}", self.name(&format!("{system}:{event}")))
            }
            _ => name.to_owned(),
        }
    }

    fn name(&self, name: &str) -> String {
        let digest = Sha256::digest(name.as_bytes());
        let hex: String = digest.iter().take(6).map(|b| format!("{b:02x}")).collect();
        format!("x{hex}")
    }
}

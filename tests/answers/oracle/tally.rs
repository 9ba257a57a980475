//! What a claim was compared over, and where it failed.

use std::collections::BTreeMap;

/// Counts of one claim.
pub(crate) struct Tally {
    claim: &'static str,
    counts: BTreeMap<&'static str, u64>,
    exceptions: BTreeMap<&'static str, u64>,
    failures: Vec<String>,
}

impl Tally {
    pub(crate) fn new(claim: &'static str) -> Tally {
        Tally { claim, counts: BTreeMap::new(), exceptions: BTreeMap::new(), failures: Vec::new() }
    }

    /// Something was compared: files, threads, rows, figures.
    pub(crate) fn count(&mut self, what: &'static str, n: u64) {
        *self.counts.entry(what).or_default() += n;
    }

    /// A row in which perf is wrong for this reason, as the raw events prove.
    pub(crate) fn exception(&mut self, reason: &'static str) {
        *self.exceptions.entry(reason).or_default() += 1;
    }

    pub(crate) fn fail(&mut self, message: String) {
        self.failures.push(message);
    }

    pub(crate) fn check(&mut self, right: bool, message: impl FnOnce() -> String) {
        if !right {
            self.fail(message());
        }
    }

    /// Print the counts, and fail if anything differed or nothing was compared.
    pub(crate) fn finish(self) {
        assert!(!self.counts.is_empty(), "{}: no recording to compare", self.claim);
        let list = |m: &BTreeMap<&'static str, u64>| {
            m.iter().map(|(k, n)| format!("{n} {k}")).collect::<Vec<_>>().join(", ")
        };
        eprintln!(
            "{}: {}; exceptions: {}",
            self.claim,
            list(&self.counts),
            if self.exceptions.is_empty() { "none".to_owned() } else { list(&self.exceptions) }
        );
        let shown: Vec<&String> = self.failures.iter().take(40).collect();
        assert!(
            self.failures.is_empty(),
            "{}: {} differences, the first:\n{shown:#?}",
            self.claim,
            self.failures.len()
        );
    }
}

//! What determines a trace's summary rows.

use crate::tables;
use holdup_diagnose::{Thresholds, registry, rules};
use holdup_export::{DIGEST, TABLES_VERSION};
use sha2::{Digest, Sha256};

/// How traces are judged.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The limits in force.
    pub thresholds: Thresholds,
    /// Replay all of large recordings, to know the gain from fixing the bottleneck.
    pub gain: bool,
}

impl Settings {
    /// A key for all that determines the rows: the versions of holdup and of the tables, the text
    /// of every rule, the limits in force. Records with another key are made again.
    pub fn key(&self) -> String {
        let mut hash = Sha256::new();
        let mut say = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        say(env!("CARGO_PKG_VERSION"));
        say(&TABLES_VERSION.to_string());
        say(&format!("{DIGEST:?}"));
        for table in tables::definitions() {
            say(&format!("{table:?}"));
        }
        for rule in rules::ALL {
            say(rule.file);
        }
        for limit in registry() {
            say(&format!("{} {}", limit.key, self.thresholds.get(&limit)));
        }
        say(if self.gain { "gain" } else { "" });
        format!("holdup-{}-{:.16}", env!("CARGO_PKG_VERSION"), format!("{:x}", hash.finalize()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_limit_or_another_question_is_another_word() {
        let key = |text: &str, gain| {
            let thresholds = Thresholds::parse(text).unwrap();
            Settings { thresholds, gain }.key()
        };
        let plain = key("", false);
        assert_eq!(plain, Settings::default().key());
        assert_ne!(plain, key("", true));
        let other = key("[all]\nmatters_pct = 20\n", false);
        assert_ne!(plain, other);
        assert_ne!(other, key("[all]\nmatters_pct = 21\n", false));
    }
}

//! Services and containers across traces: control groups by names that all machines share.

use crate::date;
use crate::named::{Named, Seen, plus};
use holdup_export::TableDef;
use holdup_render::fleet::ServiceRow;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

/// Sums over the traces, by the name of the service.
#[derive(Default)]
pub(crate) struct Services(BTreeMap<String, Sum>);

#[derive(Default)]
struct Sum {
    used_ns: u64,
    /// `None` while no trace had it.
    ready_ns: Option<u64>,
    throttled_ns: Option<u64>,
    groups: u64,
    traces: u64,
    hosts: BTreeSet<u32>,
    first: i64,
    last: i64,
    /// The trace in which it was denied CPU time longest, and that time.
    worst: (Option<u64>, String),
}

impl Services {
    /// Add the groups of a trace from this host.
    pub(crate) fn add(&mut self, at: &Seen<'_>, host: u32, table: &TableDef, rows: &[Vec<Json>]) {
        let mut of_trace: BTreeMap<String, Sum> = BTreeMap::new();
        for row in rows {
            let row = Named { table, row };
            let Some(group) = row.words("cgroup") else { continue };
            let sum = of_trace.entry(service_of(group)).or_default();
            sum.groups += 1;
            sum.used_ns = sum.used_ns.saturating_add(row.number("used_ns").unwrap_or(0));
            sum.ready_ns = plus(sum.ready_ns, row.number("ready_ns"));
            // A trace without wake-ups does not show which threads were ready.
            let throttled = row.number("ready_ns").and(row.number("throttled_ns"));
            sum.throttled_ns = plus(sum.throttled_ns, throttled);
        }
        for (name, part) in of_trace {
            let new = Sum { first: at.ns, last: at.ns, ..Sum::default() };
            let sum = self.0.entry(name).or_insert(new);
            let denied = plus(part.ready_ns, part.throttled_ns);
            if sum.traces == 0 || denied > sum.worst.0 {
                sum.worst = (denied, at.path.to_owned());
            }
            sum.used_ns = sum.used_ns.saturating_add(part.used_ns);
            sum.ready_ns = plus(sum.ready_ns, part.ready_ns);
            sum.throttled_ns = plus(sum.throttled_ns, part.throttled_ns);
            sum.groups += part.groups;
            sum.traces += 1;
            sum.hosts.insert(host);
            (sum.first, sum.last) = (sum.first.min(at.ns), sum.last.max(at.ns));
        }
    }

    /// The rows to show.
    pub(crate) fn rows(self) -> Vec<ServiceRow> {
        let row = |(name, sum): (String, Sum)| ServiceRow {
            name,
            denied_ns: plus(sum.ready_ns, sum.throttled_ns),
            ready_ns: sum.ready_ns,
            throttled_ns: sum.throttled_ns,
            used_ns: sum.used_ns,
            groups: sum.groups,
            traces: sum.traces,
            hosts: sum.hosts.len() as u64,
            first_seen: date::time(sum.first),
            last_seen: date::time(sum.last),
            worst: sum.worst.1,
        };
        self.0.into_iter().map(row).collect()
    }
}

/// The shortest hexadecimal word that is an id and not part of a name.
const HEX: usize = 8;
/// The letters of the random ends of Kubernetes pod names, and their number: without vowels, so
/// that they form no words.
const POD: (&str, usize) = ("bcdfghjklmnpqrstvwxz2456789", 5);

/// The name of a group as it is on other machines: ids of containers, pods and sessions, and
/// numbers, become `*`.
fn service_of(group: &str) -> String {
    let is_pod = group.starts_with("pod:");
    let is_id = |word: &str, follows_id: bool| {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let all = |letters: &str| word.chars().all(|c| letters.contains(c));
        let is_hex = all("0123456789abcdef");
        // The parts of a UUID are one id.
        follows_id && word.len() == 4 && is_hex
            || digits > 0
                && (digits == word.len()
                    || word.len() >= HEX && is_hex
                    || is_pod && word.len() >= POD.1 && all(POD.0))
    };
    let mut name = String::with_capacity(group.len());
    for piece in group.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
        let follows_id = name.ends_with("*-");
        match is_id(word, follows_id) {
            true if follows_id => name.truncate(name.len() - 1),
            true => name.push('*'),
            false => name.push_str(word),
        }
        name.push_str(&piece[word.len()..]);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::service_of;

    #[test]
    fn names_are_those_of_other_machines_too() {
        for (group, service) in [
            ("nginx.service", "nginx.service"),
            ("docker:web", "docker:web"),
            ("docker:3f2a9c51d07b", "docker:*"),
            ("session-3.scope", "session-*.scope"),
            ("user@1000.service/app.slice/x.service", "user@*.service/app.slice/x.service"),
            (
                "pod:0a1b2c3d-11fe-4bcd-a333-444455556666/web-7d4b9f-x7k2p/nginx",
                "pod:*/web-*/nginx",
            ),
            ("http2.service", "http2.service"),
            ("facade.service", "facade.service"),
            ("", ""),
        ] {
            assert_eq!(service_of(group), service);
        }
    }
}

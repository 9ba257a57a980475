//! The feature sections of a cut: the sections of the whole, with the note that says which part
//! this is.

use super::strings::Strings;
use crate::tracing::{self, Order};
use holdup_perfdata::RawFile;
use holdup_perfdata::format::{STRING_ALIGN, feature};
use holdup_trace::Cut;

/// Sections that hold no names: all other sections are left out of an anonymous cut.
const NAMELESS: &[u32] = &[
    feature::NRCPUS,
    feature::ARCH,
    feature::TOTAL_MEM,
    feature::CPU_TOPOLOGY,
    feature::NUMA_TOPOLOGY,
    feature::BRANCH_STACK,
    feature::PMU_MAPPINGS,
    feature::CACHE,
    feature::SAMPLE_TIME,
    feature::MEM_TOPOLOGY,
    feature::CLOCKID,
    feature::CLOCK_DATA,
    feature::RUNTIMES,
];

/// All sections, by number.
pub(super) fn sections(
    order: Order,
    raw: &RawFile,
    cut: &Cut,
    strings: &mut Option<Strings<'_>>,
) -> Vec<(u32, Vec<u8>)> {
    let mut sections: Vec<(u32, Vec<u8>)> = raw
        .features
        .iter()
        .filter_map(|(n, bytes)| Some((*n, section(order, *n, bytes.clone(), cut, strings)?)))
        .collect();
    if !sections.iter().any(|(n, _)| *n == feature::CMDLINE) {
        sections.push((feature::CMDLINE, command_line(order, &[], cut)));
        sections.sort_by_key(|s| s.0);
    }
    sections
}

/// One section for the cut; `None` if the cut has no such section.
pub(super) fn section(
    order: Order,
    number: u32,
    bytes: Vec<u8>,
    cut: &Cut,
    strings: &mut Option<Strings<'_>>,
) -> Option<Vec<u8>> {
    let dropped = [feature::COMPRESSED, feature::AUXTRACE, feature::DIR_FORMAT];
    if dropped.contains(&number) {
        return None;
    }
    Some(match (number, strings) {
        (feature::CMDLINE, _) => command_line(order, &bytes, cut),
        (feature::SAMPLE_TIME, _) => match cut.time {
            // In pipe mode perf writes zeros, because the times are not known yet.
            Some((from, to)) if bytes.iter().any(|&b| b != 0) => {
                [order.u64(from), order.u64(to)].concat()
            }
            _ => bytes,
        },
        (_, None) => bytes,
        (feature::TRACING_DATA, Some(strings)) => tracing::data(&bytes, &mut strings.names),
        (feature::OSRELEASE | feature::VERSION, _) => {
            let text = strings_of(order, &bytes).next().unwrap_or_default();
            string(order, &numbers(&text))
        }
        (feature::EVENT_DESC, Some(strings)) => {
            let mut bytes = bytes;
            strings.event_names(&mut bytes);
            bytes
        }
        (n, _) if NAMELESS.contains(&n) => bytes,
        _ => return None,
    })
}

/// The recorder's command line with the cut's appended; without its words if names are removed.
pub(super) fn command_line(order: Order, bytes: &[u8], cut: &Cut) -> Vec<u8> {
    let mut words: Vec<String> = match bytes.len() {
        ..4 => Vec::new(),
        _ if cut.anonymous => vec!["recorded".into()],
        _ => strings_of(order, &bytes[4..]).collect(),
    };
    if !words.is_empty() {
        words.push("|".into());
    }
    words.extend(cut.words().split(' ').map(str::to_owned));
    let mut line = order.u32(words.len() as u32).to_vec();
    for word in words {
        line.extend(string(order, &word));
    }
    line
}

/// A kernel's or program's version without the vendor's suffix.
fn numbers(version: &str) -> String {
    let known = ["holdup ", "perf "].into_iter().find(|name| version.starts_with(name));
    let name = known.unwrap_or("");
    let rest = &version[name.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    format!("{name}{}", &rest[..end])
}

/// perf's strings: their size with padding, and bytes up to a NUL.
fn strings_of(order: Order, bytes: &[u8]) -> impl Iterator<Item = String> + '_ {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let len = order.read_u32(rest, 0)? as usize;
        let text = rest.get(4..4usize.checked_add(len)?)?;
        rest = &rest[4 + len..];
        let end = text.iter().position(|&b| b == 0).unwrap_or(text.len());
        Some(String::from_utf8_lossy(&text[..end]).into_owned())
    })
}

fn string(order: Order, text: &str) -> Vec<u8> {
    let len = (text.len() + 1).next_multiple_of(STRING_ALIGN);
    let mut bytes = order.u32(len as u32).to_vec();
    bytes.extend(text.as_bytes());
    bytes.resize(4 + len, 0);
    bytes
}

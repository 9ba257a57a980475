//! Memory: its size, its nodes, and which of its blocks are present.

use super::super::bytes::Bytes;
use super::{list, numbered, word};
use std::fs;
use std::path::Path;

/// The kB in a line with `key` of a `meminfo` file: `Node 0 MemTotal:  16 kB`.
fn kilobytes(meminfo: &str, key: &str) -> Option<u64> {
    let of = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let value = value.split_ascii_whitespace().next();
        (name.split_ascii_whitespace().last() == Some(key)).then_some(value?.parse().ok()?)
    };
    meminfo.lines().find_map(of)
}

pub(super) fn total(proc: &Path) -> Option<Bytes> {
    let meminfo = fs::read_to_string(proc.join("meminfo")).ok()?;
    let mut b = Bytes::default();
    b.u64(kilobytes(&meminfo, "MemTotal")?);
    Some(b)
}

/// Nodes with their memory, total and free, and their CPUs.
pub(super) fn numa(node: &Path) -> Option<Bytes> {
    let online = list(&word(&node.join("online"))?);
    let mut b = Bytes::default();
    b.count(online.len());
    for n in online {
        let folder = node.join(format!("node{n}"));
        let meminfo = fs::read_to_string(folder.join("meminfo")).ok()?;
        b.u32(n).u64(kilobytes(&meminfo, "MemTotal")?).u64(kilobytes(&meminfo, "MemFree")?);
        b.string(&word(&folder.join("cpulist"))?);
    }
    Some(b)
}

/// For each node a bitmap of its blocks of physical memory.
pub(super) fn blocks(sys: &Path, node: &Path) -> Option<Bytes> {
    const VERSION: u64 = 1;
    let size = word(&sys.join("devices/system/memory/block_size_bytes"))?;
    let nodes: Vec<(u32, Vec<u32>)> = numbered(node, "node")
        .into_iter()
        .map(|n| (n, numbered(&node.join(format!("node{n}")), "memory")))
        .collect();
    let mut b = Bytes::default();
    b.u64(VERSION).u64(u64::from_str_radix(&size, 16).ok()?).u64(nodes.len() as u64);
    for (n, blocks) in &nodes {
        let bits = blocks.last().map_or(1, |last| *last as usize + 1);
        let mut words = vec![0u64; bits.div_ceil(64)];
        for block in blocks {
            words[*block as usize / 64] |= 1 << (block % 64);
        }
        // perf writes the number of bits once for the node, and again for the bitmap.
        b.u64((*n).into()).u64(bits as u64).u64(bits as u64);
        words.iter().for_each(|&word| {
            b.u64(word);
        });
    }
    Some(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_of_a_node_and_of_the_machine_read_alike() {
        assert_eq!(kilobytes("MemTotal:  24682416 kB\n", "MemTotal"), Some(24_682_416));
        assert_eq!(kilobytes("Node 0 MemTotal: 5 kB\nNode 0 MemFree: 4 kB", "MemFree"), Some(4));
        assert_eq!(kilobytes("SwapTotal: 5 kB\nMemTotal: x kB", "MemTotal"), None);
    }
}

//! The times of samples by thread, in any number: blocks of a thread's samples go to a file.

use crate::chains::ChainId;
use holdup_trace::{Cpu, EventId, NameId, Nanos, Pid, Tid};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Whose samples belong together: the samples of one event in a thread while it had one name and
/// one control group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Row {
    pub(crate) event: EventId,
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    pub(crate) comm: NameId,
    pub(crate) group: NameId,
}

/// A sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Timed {
    pub(crate) time: Nanos,
    pub(crate) period: u64,
    pub(crate) chain: ChainId,
    pub(crate) cpu: Cpu,
}

const BYTES: usize = 22;
/// Samples in a block: 3 kB per thread stay in memory.
const BLOCK: usize = 128;

impl Timed {
    fn to_bytes(self) -> [u8; BYTES] {
        let mut out = [0; BYTES];
        out[..8].copy_from_slice(&self.time.to_le_bytes());
        out[8..16].copy_from_slice(&self.period.to_le_bytes());
        out[16..20].copy_from_slice(&self.chain.0.to_le_bytes());
        out[20..].copy_from_slice(&self.cpu.0.to_le_bytes());
        out
    }

    fn of_bytes(bytes: &[u8]) -> Timed {
        let number = |from: usize, to: usize| {
            bytes[from..to].iter().rev().fold(0, |n: u64, &b| n << 8 | u64::from(b))
        };
        Timed {
            time: number(0, 8),
            period: number(8, 16),
            chain: ChainId(number(16, 20) as u32),
            cpu: Cpu(number(20, 22) as u16),
        }
    }
}

/// The samples of a row: the file offsets of its full blocks, and the samples of the last, partial
/// block.
#[derive(Default, Debug)]
pub(crate) struct Samples {
    blocks: Vec<u64>,
    rest: Vec<Timed>,
}

impl Samples {
    pub(crate) fn len(&self) -> usize {
        self.blocks.len() * BLOCK + self.rest.len()
    }
}

/// The samples of all rows.
#[derive(Default)]
pub(crate) struct Times {
    file: Option<File>,
    end: u64,
    rows: FxHashMap<Row, Samples>,
}

impl Times {
    pub(crate) fn new() -> io::Result<Times> {
        // The file has no name, so nothing of it is left behind after a crash.
        Ok(Times { file: Some(tempfile::tempfile()?), ..Times::default() })
    }

    pub(crate) fn push(&mut self, row: Row, sample: Timed) -> io::Result<()> {
        let samples = self.rows.entry(row).or_default();
        samples.rest.push(sample);
        if samples.rest.len() == BLOCK
            && let Some(file) = &mut self.file
        {
            let bytes: Vec<u8> = samples.rest.drain(..).flat_map(Timed::to_bytes).collect();
            file.write_all(&bytes)?;
            samples.blocks.push(self.end);
            self.end += bytes.len() as u64;
        }
        Ok(())
    }

    /// The rows of an event, by process and thread, then by first appearance of their names.
    pub(crate) fn rows(&mut self, event: Option<EventId>) -> Vec<(Row, Samples)> {
        let mut rows: Vec<(Row, Samples)> = std::mem::take(&mut self.rows).into_iter().collect();
        rows.retain(|(row, _)| Some(row.event) == event);
        rows.sort_by_key(|(row, _)| *row);
        rows
    }

    /// Call `each` for the samples of a row in the order of time.
    pub(crate) fn each(
        &self,
        samples: &Samples,
        take: &mut dyn FnMut(Timed) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut block = [0; BLOCK * BYTES];
        for &at in &samples.blocks {
            let Some(mut file) = self.file.as_ref() else { break };
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut block)?;
            block.chunks_exact(BYTES).map(Timed::of_bytes).try_for_each(&mut *take)?;
        }
        samples.rest.iter().copied().try_for_each(take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_each_row_come_back_in_order() {
        let mut times = Times::new().unwrap();
        let (event, pid, comm) = (EventId(3), Pid(1), NameId(7));
        let row = |tid| Row { event, pid, tid: Tid(tid), comm, group: NameId::NONE };
        let sample = |n: u64| Timed {
            time: n << 40 | n,
            period: u64::MAX - n,
            chain: ChainId(u32::MAX - n as u32),
            cpu: Cpu(n as u16),
        };
        for n in 0..1000 {
            times.push(row(n as u32 % 3), sample(n)).unwrap();
        }
        let other = Row { event: EventId(4), ..row(0) };
        times.push(other, sample(0)).unwrap();
        let rows = times.rows(Some(EventId(3)));
        assert_eq!(rows.len(), 3);
        for (tid, (found, samples)) in (0..).zip(&rows) {
            assert_eq!(*found, row(tid));
            let mut got = Vec::new();
            let take = &mut |sample| {
                got.push(sample);
                Ok(())
            };
            times.each(samples, take).unwrap();
            let expected: Vec<Timed> = (u64::from(tid)..1000).step_by(3).map(sample).collect();
            assert_eq!((got.len(), &got), (samples.len(), &expected));
        }
    }
}

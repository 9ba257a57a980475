//! A trace as if each CPU had written its events apart, as recorders do.

use holdup_trace::{Cpu, Event, Opened, Reader, Run, RunDecoder, Sieve, merge};

/// A trace with one run for each CPU.
pub struct ByCpu<'a> {
    reader: &'a dyn Reader,
    opened: Opened,
    cpus: Vec<Cpu>,
}

impl<'a> ByCpu<'a> {
    /// A view of a trace that has one run.
    pub fn of(reader: &'a dyn Reader) -> ByCpu<'a> {
        assert_eq!(reader.runs().len(), 1, "one run");
        let mut firsts: Vec<(Cpu, u64)> = Vec::new();
        for e in merge::events(reader).map_while(Result::ok) {
            if firsts.iter().all(|first| first.0 != e.cpu) {
                firsts.push((e.cpu, e.ts));
            }
        }
        firsts.sort();
        let mut opened = reader.opened().clone();
        opened.runs = firsts.iter().map(|&(_, first_ts)| Run { first_ts }).collect();
        ByCpu { reader, opened, cpus: firsts.into_iter().map(|first| first.0).collect() }
    }
}

impl Reader for ByCpu<'_> {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn opened_mut(&mut self) -> &mut Opened {
        &mut self.opened
    }

    fn keeps_cpus_together(&self) -> bool {
        true
    }

    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        let cpu = self.cpus[run];
        Box::new(Sieve(self.reader.decoder(0), move |e: &mut Event| e.cpu == cpu))
    }
}

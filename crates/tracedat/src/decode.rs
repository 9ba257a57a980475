//! From pages to events.

use crate::blocks::{CpuData, Fetch};
use crate::format::EventTable;
use crate::page::{Loss, Page, PageLayout};
use crate::time::TimeMap;
use holdup_trace::{
    Batch, Cpu, ErrorKind, Event, EventId, LocalNames, NameId, Names, Pid, QualityCode, Result,
    RunDecoder, Tid, What,
};
use holdup_tracepoint::Endian;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

/// State shared by all decoders of a file.
pub(crate) struct Shared {
    pub(crate) layout: PageLayout,
    pub(crate) table: EventTable,
    pub(crate) names: Arc<Names>,
}

/// Decodes one CPU's buffer, a page at a time.
pub(crate) struct Decoder<'a, E> {
    path: &'a Path,
    shared: &'a Shared,
    data: &'a CpuData,
    time: &'a TimeMap,
    cpu: Cpu,
    fetch: Option<Fetch<'a>>,
    names: LocalNames,
    block: usize,
    /// Index of the page within the block; `None` before the block is fetched.
    page: Option<usize>,
    endian: PhantomData<E>,
}

impl<'a, E: Endian> Decoder<'a, E> {
    pub(crate) fn new(
        path: &'a Path,
        shared: &'a Shared,
        data: &'a CpuData,
        time: &'a TimeMap,
        cpu: Cpu,
    ) -> Decoder<'a, E> {
        let names = LocalNames::new(shared.names.clone());
        Decoder {
            path,
            shared,
            data,
            time,
            cpu,
            fetch: None,
            names,
            block: 0,
            page: None,
            endian: PhantomData,
        }
    }

    fn try_fill(&mut self, batch: &mut Batch) -> std::io::Result<bool> {
        let mut fetch = match self.fetch.take() {
            Some(fetch) => fetch,
            None => Fetch::new(self.data)?,
        };
        while self.block < self.data.blocks() {
            let mut page = match self.page {
                Some(page) => page,
                None => {
                    fetch.load(self.block, &mut batch.quality)?;
                    0
                }
            };
            while let Some(bytes) = fetch.page(page) {
                page += 1;
                self.decode_page(bytes, batch);
                if batch.is_full() && !self.awaits_chain(batch) {
                    self.page = Some(page);
                    self.fetch = Some(fetch);
                    return Ok(true);
                }
            }
            self.block += 1;
            self.page = None;
        }
        Ok(false)
    }

    /// Whether the chain of the last event may be on the next page. It could not be attached to an
    /// event of a batch already returned.
    fn awaits_chain(&self, batch: &Batch) -> bool {
        let last = batch.events.last().map(|e| e.id);
        let chains = &self.shared.table.last_stack;
        chains.is_some_and(|id| last != Some(id)) && batch.events.len() < 4 * Batch::TARGET
    }

    /// All events of one page. Bytes that are no event end the page, and are counted.
    fn decode_page(&mut self, bytes: &[u8], batch: &mut Batch) {
        let Some(page) = Page::parse::<E>(&self.shared.layout, bytes, self.data.page_size) else {
            // A trailing scrap of a cut file was counted when it was opened.
            let whole = bytes.len() == self.data.page_size;
            batch
                .quality
                .add(QualityCode::SkippedBytes, if whole { bytes.len() as u64 } else { 0 });
            return;
        };
        let (table, time) = (&self.shared.table, self.time);
        let mut records = page.records::<E>();
        let mut next = records.next_payload();
        if page.loss != Loss::None {
            // Reported before the first event after the loss, with that event's time.
            self.lost(page.loss, time.apply(records.time), batch);
        }
        while let Some(payload) = next {
            let ts = time.apply(records.time);
            let cpu = self.cpu;
            let tid = Tid(E::u32(payload, table.pid_at));
            match table.lookup(E::u16(payload, 0)) {
                Some((id, plan)) => {
                    let what = match plan.decode::<E>(payload, &mut self.names, batch) {
                        Some(What::Other) => {
                            if let Some(stack) = table.stack(id) {
                                table.attach::<E>(stack, payload, tid, batch);
                            } else if let Some(fault) = table.fault(id, plan) {
                                batch.quality.add(fault, 1);
                            }
                            What::Other
                        }
                        Some(what) => what,
                        None => {
                            batch.quality.add(QualityCode::BadRecords, 1);
                            What::Other
                        }
                    };
                    batch.events.push(Event {
                        ts,
                        tid,
                        pid: Pid::UNKNOWN,
                        comm: NameId::NONE,
                        cpu,
                        id,
                        what,
                    });
                }
                None => batch.quality.add(QualityCode::BadRecords, 1),
            }
            next = records.next_payload();
        }
        if records.broken {
            batch.quality.add(QualityCode::BadRecords, 1);
        }
    }

    #[cold]
    fn lost(&self, loss: Loss, ts: u64, batch: &mut Batch) {
        let count = match loss {
            Loss::None => return,
            Loss::Count(n) => {
                batch.quality.add(QualityCode::LostEvents, n);
                n
            }
            Loss::Unknown => {
                batch.quality.add(QualityCode::LostChunks, 1);
                0
            }
        };
        let what = What::Lost { count };
        let (tid, pid, comm) = (Tid::UNKNOWN, Pid::UNKNOWN, NameId::NONE);
        batch.events.push(Event { ts, tid, pid, comm, cpu: self.cpu, id: EventId::SIDEBAND, what });
    }
}

impl<E: Endian> RunDecoder for Decoder<'_, E> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        self.try_fill(batch).map_err(|e| ErrorKind::from(e).in_file(self.path))
    }
}

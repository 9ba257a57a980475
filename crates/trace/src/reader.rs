//! What a format's reader must offer.

use crate::{Batch, Event, Nanos, Quality, Result, TraceInfo};

/// A part of a trace whose events are in time order.
///
/// The order of runs in [`Reader::runs`] is their order in the file: it decides between events
/// with equal time stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Time of its first event; side-band records without a time count as 0. Must not exceed the
    /// time of any event in the run: the merge opens a run when it reaches this time.
    pub first_ts: Nanos,
}

/// What is known about a trace once it is open.
#[derive(Clone)]
pub struct Opened {
    /// What the file is.
    pub info: TraceInfo,
    /// What went wrong while opening. Losses met while decoding come with the batches.
    pub quality: Quality,
    /// The runs, in file order.
    pub runs: Vec<Run>,
}

/// An opened trace.
pub trait Reader: Send + Sync {
    /// What is known about the trace.
    fn opened(&self) -> &Opened;

    /// Mutable access: code that opens files of any format knows how the file was packed and
    /// recognised, which the reader of one format does not.
    fn opened_mut(&mut self) -> &mut Opened;

    /// What the file is.
    fn info(&self) -> &TraceInfo {
        &self.opened().info
    }

    /// What went wrong while opening.
    fn quality(&self) -> &Quality {
        &self.opened().quality
    }

    /// What the file is and what went wrong, to be amended.
    fn amend(&mut self) -> (&mut TraceInfo, &mut Quality) {
        let opened = self.opened_mut();
        (&mut opened.info, &mut opened.quality)
    }

    /// The runs, in file order.
    fn runs(&self) -> &[Run] {
        &self.opened().runs
    }

    /// Whether decoding takes longer than all later stages, as with text. A hint for
    /// [`crate::merge::drive`], which then decodes on every core; readers of binary formats keep
    /// the default.
    fn is_slow_to_decode(&self) -> bool {
        false
    }

    /// Whether all that happens on one CPU is in one order: two events of one CPU that follow each
    /// other in a run follow each other on that CPU. Not so where a file has several streams of
    /// one CPU.
    fn keeps_cpus_together(&self) -> bool {
        false
    }

    /// A decoder for run number `run` (an index into [`Reader::runs`]).
    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_>;

    /// A decoder of the same run for a caller that needs switches only ([`crate::Switches`]): it
    /// may leave out any other event if that saves time.
    fn decoder_of_switches(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        self.decoder(run)
    }
}

/// Decodes one run, block by block.
pub trait RunDecoder: Send {
    /// Appends the next events to `batch` (empty when called) until it [`Batch::is_full`] or the
    /// run ends. Events must ascend in time, also across calls. Returns false when the run has
    /// ended; the batch may then still contain its last events.
    ///
    /// A damaged record is counted in `batch.quality` and skipped. An error ends the whole read: it
    /// is meant for failures that make the rest meaningless (the disk fails).
    fn fill(&mut self, batch: &mut Batch) -> Result<bool>;
}

/// Passes on the events of another decoder that the second part keeps; that part may change them.
pub struct Sieve<'a, K>(pub Box<dyn RunDecoder + 'a>, pub K);

impl<K: FnMut(&mut Event) -> bool + Send> RunDecoder for Sieve<'_, K> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        let more = self.0.fill(batch);
        batch.events.retain_mut(&mut self.1);
        more
    }
}

//! What a format's reader must offer.

use crate::{Batch, Event, Nanos, Quality, Result, TraceInfo};

/// A part of a trace whose events are in time order.
///
/// The order of runs in [`Reader::runs`] is their order in the file: it decides between events
/// with equal time stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Time of its first event; side-band records without a time count as 0. Must not exceed the
    /// time of any event in the run: the merge opens a run when it gets there.
    pub first_ts: Nanos,
}

/// What is known of a trace once it is open.
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
    /// What is known of it.
    fn opened(&self) -> &Opened;

    /// The same, to be added to: whoever opens a file of any format knows what it was wrapped in
    /// and how it was recognised, the reader of the one format does not.
    fn opened_mut(&mut self) -> &mut Opened;

    /// What the file is.
    fn info(&self) -> &TraceInfo {
        &self.opened().info
    }

    /// What went wrong while opening.
    fn quality(&self) -> &Quality {
        &self.opened().quality
    }

    /// What the file is and what went wrong, to be added to.
    fn amend(&mut self) -> (&mut TraceInfo, &mut Quality) {
        let opened = self.opened_mut();
        (&mut opened.info, &mut opened.quality)
    }

    /// The runs, in file order.
    fn runs(&self) -> &[Run] {
        &self.opened().runs
    }

    /// Whether decoding takes longer than everything that comes after it, as with text. A hint for
    /// [`crate::merge::drive`], which then gives it every core; readers of binary formats need not
    /// say.
    fn is_slow_to_decode(&self) -> bool {
        false
    }

    /// A decoder for run number `run` (an index into [`Reader::runs`]).
    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_>;

    /// A decoder of the same run for who asks about switches only ([`crate::Switches`]): it may
    /// leave out any other event, where that saves time.
    fn decoder_of_switches(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        self.decoder(run)
    }
}

/// Decodes one run, block by block.
pub trait RunDecoder: Send {
    /// Append the next events to `batch` (empty when called) until it [`Batch::is_full`] or the
    /// run ends. Events must ascend in time, across calls too. Returns false when the run has
    /// ended; the batch may still hold its last events then.
    ///
    /// A damaged record is counted in `batch.quality` and skipped. An error ends the whole read:
    /// it is for what makes the rest meaningless (the disk fails).
    fn fill(&mut self, batch: &mut Batch) -> Result<bool>;
}

/// Hands on those events of another decoder that the second part keeps, which may change them.
pub struct Sieve<'a, K>(pub Box<dyn RunDecoder + 'a>, pub K);

impl<K: FnMut(&mut Event) -> bool + Send> RunDecoder for Sieve<'_, K> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        let more = self.0.fill(batch);
        batch.events.retain_mut(&mut self.1);
        more
    }
}

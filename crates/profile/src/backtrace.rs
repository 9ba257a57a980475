//! The call chain of each event, named as the trace is read.

use crate::chains::ChainId;
use crate::context::Context;
use holdup_symbols::{Code, Named, Options, Symbols};
use holdup_trace::{Batch, Event, Pid, StackRef, TraceInfo, What};

/// A frame of a call chain, with its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFrame {
    /// The address.
    pub address: u64,
    /// Its name.
    pub named: Named,
}

/// Follows a trace to collect the call chains of its events. Memory grows with distinct chains.
pub struct Backtraces<'a> {
    info: &'a TraceInfo,
    context: Context,
    /// The chain of the next event.
    held: Option<StackRef>,
    /// The chain of the last event seen.
    last: Option<(Pid, ChainId)>,
    places: Options,
    /// Created when the first chain is named: by then the trace has shown where the kernel is.
    symbols: Option<Symbols<'a>>,
}

impl<'a> Backtraces<'a> {
    /// Backtraces of a trace; `places` says where to look for files with function names.
    pub fn new(info: &'a TraceInfo, places: Options) -> Backtraces<'a> {
        let context = Context::new(info);
        Backtraces { info, context, held: None, last: None, places, symbols: None }
    }

    /// Feed the next event; all events of the trace are needed, in order.
    pub fn see(&mut self, e: &Event, batch: &Batch) {
        let held = self.held.take();
        self.last = None;
        self.context.event(e, batch);
        let stack = match e.what {
            What::Stack { of } => {
                self.held = Some(of);
                return;
            }
            What::Sample { stack, .. } | What::ContentionBegin { stack, .. } => Some(stack),
            _ => held,
        };
        let stack = stack.filter(|stack| !stack.is_empty());
        self.last = stack.map(|stack| self.context.chain(e, batch, stack));
    }

    /// The chain of the event last seen, innermost frame first; empty if it has none.
    pub fn frames(&mut self) -> Vec<NamedFrame> {
        let Some((pid, chain)) = self.last else { return Vec::new() };
        let code: Vec<Code> = self.context.code(pid, chain).collect();
        let symbols = self.symbols.get_or_insert_with(|| {
            let text = self.context.kernel_text(&self.info.names);
            Symbols::new(self.info, text, self.places.clone())
        });
        code.iter()
            .map(|code| NamedFrame { address: code.address, named: symbols.name(code) })
            .collect()
    }

    /// Notes for readers of the names: files that were refused, unverified, or not found.
    pub fn remarks(&self) -> Vec<String> {
        self.symbols.as_ref().map_or_else(Vec::new, Symbols::remarks)
    }
}

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
    /// What is there.
    pub named: Named,
}

/// Follows a trace for the call chains of its events. Memory grows with distinct chains.
pub struct Backtraces<'a> {
    info: &'a TraceInfo,
    context: Context,
    /// The chain of the event that comes next.
    held: Option<StackRef>,
    /// That of the last event seen.
    last: Option<(Pid, ChainId)>,
    places: Options,
    /// From the first chain on that is named: by then the trace has said where the kernel is.
    symbols: Option<Symbols<'a>>,
}

impl<'a> Backtraces<'a> {
    /// Of a trace; files with names of functions are looked for in `places`.
    pub fn new(info: &'a TraceInfo, places: Options) -> Backtraces<'a> {
        let context = Context::new(info);
        Backtraces { info, context, held: None, last: None, places, symbols: None }
    }

    /// An event: each of the trace in its order.
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

    /// What readers of the names should know: files that were refused, unverified, or not found.
    pub fn remarks(&self) -> Vec<String> {
        self.symbols.as_ref().map_or_else(Vec::new, Symbols::remarks)
    }
}

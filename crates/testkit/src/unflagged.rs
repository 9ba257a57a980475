//! A trace as if its format did not say whether events happened in interrupts.

use holdup_trace::{Event, Opened, Reader, RunDecoder, Sieve, What};

/// A trace without the flags of its events, as text without their column has it.
pub struct Unflagged<'a> {
    reader: &'a dyn Reader,
    opened: Opened,
}

impl<'a> Unflagged<'a> {
    /// A view of a trace.
    pub fn of(reader: &'a dyn Reader) -> Unflagged<'a> {
        Unflagged { reader, opened: reader.opened().clone() }
    }
}

impl Reader for Unflagged<'_> {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn opened_mut(&mut self) -> &mut Opened {
        &mut self.opened
    }

    fn is_slow_to_decode(&self) -> bool {
        self.reader.is_slow_to_decode()
    }

    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        let forget = |e: &mut Event| {
            if let What::Waking { in_irq, .. } = &mut e.what {
                *in_irq = false;
            }
            true
        };
        Box::new(Sieve(self.reader.decoder(run), forget))
    }
}

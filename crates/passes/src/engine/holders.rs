//! What threads did while others waited for what they held: see [`crate::past`].

use super::Engine;
use crate::past::{HolderDid, Holding, Past};
use holdup_trace::Nanos;

impl Engine {
    /// Follows threads that now hold something, and adds up what threads did that released
    /// something.
    #[cold]
    #[inline(never)]
    pub(super) fn holders_news(&mut self, now: Nanos) {
        let mut news = std::mem::take(&mut self.waits.news);
        for new in news.drain(..) {
            match new {
                Holding::Has(slot) => {
                    self.threads[slot].past.get_or_insert_with(|| Box::new(Past::since(now)));
                }
                Holding::GaveBack { slot, object, from, to } => {
                    let mut times = std::mem::take(self.waits.did_with(object, slot));
                    let t = &self.threads[slot];
                    let is_own = |other| self.waits.find(other) == object;
                    let add = |did, ns| times.add(did, ns);
                    match &t.past {
                        Some(past) => past.while_it_had(is_own, (from, to), t.does(), add),
                        None => times.add(HolderDid::UNKNOWN, to - from),
                    }
                    *self.waits.did_with(object, slot) = times;
                }
            }
        }
        self.waits.news = news;
    }
}

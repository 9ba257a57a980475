//! Call chains, each kept once.

use rustc_hash::FxHashMap;
use std::rc::Rc;

/// A chain of a trace, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ChainId(pub(crate) u32);

/// One address of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Frame {
    pub(crate) address: u64,
    /// Number of its origin; [`Frame::NOWHERE`] if that is unknown.
    pub(crate) origin: u32,
    pub(crate) kernel: bool,
    /// Whether it is a return address.
    pub(crate) returns: bool,
}

impl Frame {
    pub(crate) const NOWHERE: u32 = u32::MAX;
}

/// All chains of a trace.
#[derive(Default)]
pub(crate) struct Chains {
    ids: FxHashMap<Rc<[Frame]>, ChainId>,
    chains: Vec<Rc<[Frame]>>,
}

impl Chains {
    /// The number of a chain; a known chain costs no memory.
    pub(crate) fn id(&mut self, chain: &[Frame]) -> ChainId {
        if let Some(&id) = self.ids.get(chain) {
            return id;
        }
        let id = ChainId(self.chains.len() as u32);
        let chain: Rc<[Frame]> = chain.into();
        self.chains.push(chain.clone());
        self.ids.insert(chain, id);
        id
    }

    /// The number of distinct chains.
    pub(crate) fn len(&self) -> usize {
        self.chains.len()
    }

    /// The frames, innermost first.
    pub(crate) fn get(&self, id: ChainId) -> &[Frame] {
        self.chains.get(id.0 as usize).map_or(&[], |chain| chain)
    }
}

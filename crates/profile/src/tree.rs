//! Call chains as a tree: from the outermost function down, or from the sampled one up.

use crate::collect::{Profile, Sum};
use crate::names::{Function, FunctionId, Functions, Site};
use crate::rows::Shares;
use holdup_passes::Filter;
use holdup_symbols::Symbols;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which end of the chains is the root.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tree {
    /// The outermost function; below each function those that it called.
    TopDown,
    /// The sampled function; below each function those that called it.
    BottomUp,
}

/// A function at its place in the tree of call chains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TreeRow {
    /// Number of levels above the function: 0 is a thread's name, 1 is the first function of a
    /// chain.
    pub depth: u32,
    /// Name of the threads when they were sampled.
    pub comm: String,
    /// File of the code; `null` at level 0, or if no mapping of the sampled address is known.
    pub dso: Option<String>,
    /// Name of the function; `null` at level 0, or if the file or its symbols are not available.
    pub symbol: Option<String>,
    /// Whether the compiler inlined the function into its caller; `false` at level 0.
    pub inlined: bool,
    /// Number of samples whose chain ends here. In a tree of callees: samples taken in the function
    /// itself. In a tree of callers: samples whose chain begins with this function.
    pub samples: u64,
    /// Number of samples of the function and of everything below it.
    pub total_samples: u64,
    /// `total_samples` as a percentage, as in other tables.
    pub total_pct: f64,
}

/// A node of the tree.
#[derive(Default)]
struct Node {
    own: Sum,
    total: Sum,
    below: Vec<(FunctionId, usize)>,
}

/// All nodes, and an index of them.
#[derive(Default)]
struct Nodes {
    all: Vec<Node>,
    known: FxHashMap<(usize, FunctionId), usize>,
}

impl Nodes {
    fn new_node(&mut self) -> usize {
        self.all.push(Node::default());
        self.all.len() - 1
    }

    fn below(&mut self, above: usize, function: FunctionId) -> usize {
        if let Some(&at) = self.known.get(&(above, function)) {
            return at;
        }
        let at = self.new_node();
        self.all[above].below.push((function, at));
        self.known.insert((above, function), at);
        at
    }
}

/// The tree of a profile in depth-first order, siblings with most samples first. Nodes with less
/// than `least` per cent of the total are omitted, with everything below them.
pub fn tree(
    profile: &Profile,
    filter: &Filter,
    tree: Tree,
    least: f64,
    symbols: &mut Symbols<'_>,
) -> Vec<TreeRow> {
    let mut functions = Functions::new(profile, symbols);
    let mut nodes = Nodes::default();
    let mut roots: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    let mut path: Vec<FunctionId> = Vec::new();
    for (who, sum, comm) in profile.wanted(filter) {
        path.clear();
        for frame in profile.code.frames(who.chain) {
            path.extend(functions.sites(who.pid, frame).iter().map(|site: &Site| site.function));
        }
        if tree == Tree::TopDown {
            path.reverse();
        }
        let mut at = *roots.entry(comm).or_insert_with(|| nodes.new_node());
        nodes.all[at].total.add(*sum);
        for &function in &path {
            at = nodes.below(at, function);
            nodes.all[at].total.add(*sum);
        }
        nodes.all[at].own.add(*sum);
    }
    Drawn { functions: &functions.all, shares: Shares::of(profile), least }.rows(&nodes.all, roots)
}

struct Drawn<'a> {
    functions: &'a [Function],
    shares: Shares,
    least: f64,
}

impl Drawn<'_> {
    fn rows(&self, nodes: &[Node], roots: BTreeMap<Arc<str>, usize>) -> Vec<TreeRow> {
        let mut roots: Vec<(Arc<str>, usize)> = roots.into_iter().collect();
        roots.sort_by_key(|(_, at)| Reverse(nodes[*at].total.samples));
        let mut rows = Vec::new();
        for (comm, root) in roots {
            // Chains may be long: no recursion.
            let mut next = vec![(0, None, root)];
            while let Some((depth, function, at)) = next.pop() {
                let node = &nodes[at];
                let total_pct = self.shares.pct(node.total);
                if total_pct < self.least {
                    continue;
                }
                rows.push(self.row(depth, &comm, function, node, total_pct));
                let mut below = node.below.clone();
                below.sort_by_cached_key(|(id, at)| {
                    let function = &self.functions[id.0 as usize];
                    let words = (function.dso.clone(), function.name.clone(), function.inlined);
                    (nodes[*at].total.samples, Reverse(words))
                });
                // The last one pushed is the first one taken.
                next.extend(below.into_iter().map(|(id, at)| (depth + 1, Some(id), at)));
            }
        }
        rows
    }

    fn row(
        &self,
        depth: u32,
        comm: &str,
        function: Option<FunctionId>,
        node: &Node,
        total_pct: f64,
    ) -> TreeRow {
        let function = function.map(|id| &self.functions[id.0 as usize]);
        let text = |name: &Option<Arc<str>>| name.as_deref().map(str::to_owned);
        TreeRow {
            depth,
            comm: comm.to_owned(),
            dso: function.and_then(|f| text(&f.dso)),
            symbol: function.and_then(|f| text(&f.name)),
            inlined: function.is_some_and(|f| f.inlined),
            samples: node.own.samples,
            total_samples: node.total.samples,
            total_pct,
        }
    }
}

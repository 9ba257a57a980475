//! Functions with what they called: perf's `--children`.

use crate::collect::{Profile, Sum};
use crate::names::{FunctionId, Functions};
use crate::rows::{ProfileRow, Shares, known};
use holdup_passes::Filter;
use holdup_symbols::Symbols;
use holdup_trace::{NameId, Pid, Tid};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A function in a thread while the thread had one name.
type Key = (Pid, Tid, NameId, FunctionId);

/// The key's names as text.
type Named = (String, Pid, Tid, Option<Arc<str>>, Option<Arc<str>>, bool);

/// The functions of all chains, those in most samples first. A sample counts once for each function
/// in its chain, however often the function occurs, and as its own sample for the function with the
/// sampled address; functions inlined there get no own sample.
pub(crate) fn children(
    profile: &Profile,
    filter: &Filter,
    symbols: &mut Symbols<'_>,
) -> Vec<ProfileRow> {
    let mut functions = Functions::new(profile, symbols);
    let mut sums: FxHashMap<Key, (Sum, Sum)> = FxHashMap::default();
    let mut met: Vec<FunctionId> = Vec::new();
    for (who, sum, _) in profile.wanted(filter) {
        met.clear();
        let mut own = None;
        for frame in profile.code.frames(who.chain) {
            let sites = functions.sites(who.pid, frame);
            own = own.or(sites.last().map(|site| site.function));
            met.extend(sites.iter().map(|site| site.function));
        }
        if met.is_empty() {
            own = Some(functions.unknown());
            met.extend(own);
        }
        met.sort_unstable();
        met.dedup();
        for &function in &met {
            let (of_own, total) = sums.entry((who.pid, who.tid, who.comm, function)).or_default();
            total.add(*sum);
            if own == Some(function) {
                of_own.add(*sum);
            }
        }
    }
    let mut rows: BTreeMap<Named, (Sum, Sum)> = BTreeMap::new();
    for ((pid, tid, comm, function), (own, total)) in sums {
        let function = functions.get(function);
        let (dso, name) = (function.dso.clone(), function.name.clone());
        let named = (profile.comm(tid, comm), pid, tid, dso, name, function.inlined);
        let row = rows.entry(named).or_default();
        row.0.add(own);
        row.1.add(total);
    }
    let shares = Shares::of(profile);
    let row =
        |((comm, pid, tid, dso, symbol, inlined), (own, total)): (Named, (Sum, Sum))| ProfileRow {
            comm: Some(comm),
            pid: known(pid.0),
            tid: known(tid.0),
            dso: dso.as_deref().map(str::to_owned),
            symbol: symbol.as_deref().map(str::to_owned),
            inlined: Some(inlined),
            samples: Some(own.samples),
            pct: shares.pct(own),
            total_samples: Some(total.samples),
            total_pct: Some(shares.pct(total)),
            ..ProfileRow::default()
        };
    let mut rows: Vec<ProfileRow> = rows.into_iter().map(row).collect();
    rows.sort_by_key(|r| (Reverse(r.total_samples), Reverse(r.samples)));
    rows
}

//! The HTML page with all results.

use crate::config::Config;
use crate::exit::Result;
use crate::tables::{any_table, table_names};
use holdup_attribution::{Attribution, follow};
use holdup_diagnose::phases::Judged;
use holdup_passes::{Analysis, Detail};
use holdup_render::html::{self, Extras, Timeline};
use holdup_render::{Report, Table, schema};
use holdup_trace::Reader;

/// The detail about waits that the page needs: which thread waits for which.
pub(crate) const DETAIL: Detail = Detail::Edges;

/// Write the page about `answer`. Tables, graph and timeline cover everything that was read, as in
/// the other verbs, even if the verdict is about a part of it. The timeline needs another pass over
/// the trace.
pub(crate) fn write(
    config: Config,
    reader: &dyn Reader,
    judged: &Judged,
    answer: &Report,
) -> Result<()> {
    let whole = judged.whole.as_ref().unwrap_or(&judged.analysis);
    let whom = html::whom(whole);
    let followed = follow(reader, whole, &whom)?;
    let extras = Extras {
        tables: tables(reader, whole),
        graph: Some(Attribution::from(whole).graph()),
        timeline: Some(Timeline::new(whole, &followed, &whom)),
    };
    config.output.write_with(|out| html::write(answer, extras, out))
}

fn tables(reader: &dyn Reader, whole: &Analysis) -> Vec<Table> {
    let capabilities = &reader.info().capabilities;
    let verbs = table_names().into_iter().filter_map(|name| any_table(name, whole, capabilities));
    verbs.chain(groups(whole)).collect()
}

/// Each control group's share of the machine, if threads are known to be in more than one.
fn groups(whole: &Analysis) -> Option<Table> {
    let rows = whole.cgroups();
    let several = rows.iter().filter(|row| row.cgroup.is_some()).count() > 1;
    several.then(|| schema::cgroups(&rows))
}

//! One trace: opened, judged as `holdup diagnose` does, summed up.

use crate::find::{Item, Kind};
use crate::identity::{Stamp, content};
use crate::record::{Head, Record, Verdict};
use crate::settings::Settings;
use crate::tables;
use holdup_attribution::Attribution;
use holdup_diagnose::phases::{self, Wanted};
use holdup_diagnose::{Extras, diagnose_with_extras, replayed_part};
use holdup_export::{Digest, Request, TRACE, digest};
use holdup_passes::{Detail, Options, Selection};
use holdup_trace::{ErrorKind, ReadError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

/// What is known of an item before it is judged.
pub enum Known {
    /// It cannot be judged.
    Settled(Head),
    /// A trace with this content, or what looks like one.
    Trace {
        /// Its [`content`].
        hash: String,
        /// Its stamp.
        stamp: Stamp,
    },
}

/// A head for an item whose content is unknown.
fn head(item: &Item, key: &str, stamp: Option<Stamp>, result: Verdict) -> Head {
    let stamp = stamp.unwrap_or(Stamp { bytes: 0, mtime_ns: 0, ctime_ns: 0 });
    Head {
        made_by: key.to_owned(),
        hash: None,
        path: item.path.to_string_lossy().into_owned(),
        bytes: stamp.bytes,
        mtime_ns: stamp.mtime_ns,
        ctime_ns: stamp.ctime_ns,
        seconds: 0.0,
        result,
    }
}

/// Find out which trace an item is. `by_stamp` knows the contents of unchanged files.
pub fn look(item: &Item, key: &str, by_stamp: &dyn Fn(&str, Stamp) -> Option<String>) -> Known {
    let settled = |stamp, result| Known::Settled(head(item, key, stamp, result));
    let failed = |stamp, error: String| settled(stamp, Verdict::Failed { error });
    match &item.kind {
        Kind::Lost(why) => return failed(None, why.clone()),
        Kind::Special(what) => {
            return settled(None, Verdict::NoTrace { what: (*what).to_owned() });
        }
        Kind::Named | Kind::Found | Kind::Folder => {}
    }
    let stamp = match Stamp::of(&item.path) {
        Ok(stamp) => stamp,
        Err(error) => return failed(None, error.to_string()),
    };
    if let Some(hash) = by_stamp(&item.path.to_string_lossy(), stamp) {
        return Known::Trace { hash, stamp };
    }
    if item.kind == Kind::Found {
        // Some kernel files report no length, and have no end.
        if stamp.bytes == 0 {
            return failed(Some(stamp), "the file is empty: record again".to_owned());
        }
        match holdup_open::no_trace(&item.path) {
            Ok(None) => {}
            Ok(Some(what)) => return settled(Some(stamp), Verdict::NoTrace { what }),
            Err(error) => return failed(Some(stamp), error.to_string()),
        }
    }
    match content(&item.path) {
        Ok(hash) => Known::Trace { hash, stamp },
        Err(error) => failed(Some(stamp), error.to_string()),
    }
}

/// Judge a trace with this content. The second value says whether to keep the result: a damaged
/// trace stays damaged, but one that could not be read may be readable next time.
pub fn analyse(
    item: &Item,
    settings: &Settings,
    key: &str,
    hash: String,
    stamp: Stamp,
) -> (Record, bool) {
    let began = Instant::now();
    // A bug in a reader must not affect the other traces.
    let judged = catch_unwind(AssertUnwindSafe(|| judge(&item.path, stamp, settings)));
    let (result, rows, keep) = match judged {
        Ok(Ok((result, rows))) => (result, rows, true),
        Ok(Err(ReadError { kind, .. })) => {
            let keep = matches!(kind, ErrorKind::Malformed { .. });
            (Verdict::Failed { error: kind.to_string() }, Digest::new(), keep)
        }
        Err(_) => {
            let error = "this is a defect of holdup: the diagnosis of the trace panicked; please \
                         report it"
                .to_owned();
            (Verdict::Failed { error }, Digest::new(), false)
        }
    };
    let head = Head {
        hash: Some(hash),
        seconds: began.elapsed().as_secs_f64(),
        ..head(item, key, Some(stamp), result)
    };
    match Stamp::of(&item.path).is_ok_and(|now| now == stamp) {
        true => (Record { head, rows }, keep),
        false => {
            let error = "the file changed while it was read".to_owned();
            let head = Head { hash: None, result: Verdict::Failed { error }, ..head };
            (Record { head, rows: Digest::new() }, false)
        }
    }
}

/// The verdict on a trace, and the rows that sum it up.
fn judge(path: &Path, stamp: Stamp, settings: &Settings) -> Result<(Verdict, Digest), ReadError> {
    let reader = holdup_open::open(path)?;
    let part = if settings.gain { Some(1.0) } else { replayed_part(path) };
    let selection = Selection::default().within(reader.info());
    let options = Options { detail: Detail::Edges, selection, ..Options::default() };
    let limits = &settings.thresholds;
    let wanted = Wanted { replay: part, whole: true };
    let judged = phases::read(&*reader, &options, limits, wanted)?;
    let info = reader.info();
    let diagnosis = diagnose_with_extras(info, &judged, Extras::default(), limits.clone());
    let all = judged.whole();
    let request = Request {
        reader: &*reader,
        info,
        judged: &Attribution::new(all, limits),
        diagnosis: &diagnosis,
        phases: judged.several_phases(),
        quality: &all.quality.entries(),
        bytes: Some(stamp.bytes),
        missing: &|_| None,
    };
    let mut rows = digest(&request);
    if let Some(row) = rows.get_mut(TRACE).and_then(|rows| rows.first_mut()) {
        row.extend(tables::outcome(&diagnosis, &request.judged.ledger));
    }
    let result = Verdict::Judged {
        class: diagnosis.verdict.class.id().to_owned(),
        recorded_ns: info.recorded_ns,
        host: info.hostname.clone().filter(|host| !host.is_empty()),
    };
    Ok((result, rows))
}

//! Verdicts that stay what they are although a recording is looked at in another way.

use crate::oracle::corpus::{Recording, all_files};
use holdup_testkit::in_parallel;

/// How a verdict changes if a recording is looked at in another way: `None` if the recording says
/// nothing about that, `Some(None)` if the class stays.
type Changes = fn(&Recording) -> Option<Option<String>>;

/// How many recordings say something about it, and those whose class changes.
fn changed(wanted: impl Fn(&Recording) -> bool, changes: Changes) -> (usize, Vec<String>) {
    let files = all_files().into_iter().filter(wanted).collect();
    let judged: Vec<Option<String>> =
        in_parallel(files, |file| changes(&file)).into_iter().flatten().collect();
    let count = judged.len();
    let changed: Vec<String> = judged.into_iter().flatten().collect();
    println!("{} of {count} keep their class; not {changed:#?}", count - changed.len());
    (count, changed)
}

/// Of the fixtures those whose names begin so change their class, all of them, and no others.
pub(crate) fn assert_that_only_these_change(known: &[&str], changes: Changes) {
    let (judged, changed) = changed(|file| file.name.starts_with("fixtures"), changes);
    assert!(judged >= 10, "{judged} fixtures: where are the recordings?");
    let is_known = |c: &String| known.iter().any(|name| c.starts_with(name));
    assert!(changed.iter().all(is_known), "{changed:#?}");
    assert_eq!(changed.len(), known.len(), "take them off the list: {changed:#?}");
}

/// Of 100 labelled recordings at least so many keep their class.
pub(crate) fn assert_that_most_stay(pct: usize, changes: Changes) {
    let (judged, changed) = changed(Recording::is_labelled, changes);
    assert!((judged - changed.len()) * 100 >= judged * pct, "of {judged}: {changed:#?}");
}

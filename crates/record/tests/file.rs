//! What perf recorded, written again by holdup, is read alike.

mod common;

use common::{Recorded, perf, record};
use holdup_needs::needs;
use holdup_record::file::Writer;

#[needs(perf, tracepoints)]
#[test]
fn perf_reads_a_file_as_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (theirs, ours) = (folder.path().join("theirs"), folder.path().join("ours"));
    record(&theirs, &[]);
    let recorded = Recorded::read(&theirs);
    let mut writer = Writer::create(&ours, &recorded.description()).unwrap();
    recorded.write(&mut writer);
    writer.finish().unwrap();
    if let Ok(keep) = std::env::var("KEEP") {
        std::fs::copy(&theirs, format!("{keep}.theirs")).unwrap();
        std::fs::copy(&ours, keep).unwrap();
    }
    assert_eq!(perf(&["script"], &ours), perf(&["script"], &theirs));
}

//! Damaged text whose reader starts at a later line: the part alone would begin with lines that no
//! reader recognises. Found by fuzzing.

use holdup_cut::{CutError, cut};
use holdup_trace::Cpu;
use holdup_trace::Cut;

fn cut_of(bytes: &[u8], which: Cut) -> (Result<u64, CutError>, bool) {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("trace"), folder.path().join("cut"));
    std::fs::write(&input, bytes).unwrap();
    let reader = holdup_open::open(&input).unwrap();
    let written = cut(&*reader, &input, &which, &output);
    (written.map(|w| w.inside), output.exists())
}

#[test]
fn a_part_that_does_not_open_alone_is_refused_and_nothing_stays() {
    let (last_tenth, exists) = cut_of(
        include_bytes!("damaged/without_cpu"),
        Cut { time: Some((615_578_770_900, 615_578_783_000)), ..Cut::default() },
    );
    assert!(matches!(last_tenth, Err(CutError::Unreadable { .. })), "{last_tenth:?}");
    assert!(!exists);
    let (nameless, exists) = cut_of(
        include_bytes!("damaged/unknown_kind"),
        Cut { cpus: Some(vec![Cpu(0)]), anonymous: true, ..Cut::default() },
    );
    assert!(matches!(nameless, Err(CutError::Unreadable { .. })), "{nameless:?}");
    assert!(!exists);
}

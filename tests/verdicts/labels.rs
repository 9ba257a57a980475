//! The labelled recordings: what each was made to show.

use std::path::{Path, PathBuf};

/// A recording and what it is known to be.
pub(crate) struct Labelled {
    /// File name without folder and endings.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The truth, then what is right too, given what the recording can show.
    pub(crate) right: Vec<String>,
    /// The same work on one CPU, to compare with.
    pub(crate) baseline: Option<PathBuf>,
}

impl Labelled {
    /// In the half that rules were made on; the other half checks them. Which one depends on the
    /// name alone, so that new recordings fall where nobody chose.
    pub(crate) fn is_to_tune(&self) -> bool {
        // FNV-1a
        self.name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ b as u64).wrapping_mul(0x100_0000_01b3))
            & 1
            == 0
    }

    pub(crate) fn is_healthy(&self) -> bool {
        self.right == ["healthy"]
    }
}

/// Those of the laboratory.
pub(crate) fn labelled() -> Vec<Labelled> {
    labelled_in("vm")
}

/// Those of a folder; none if it is not there.
pub(crate) fn labelled_in(folder: &str) -> Vec<Labelled> {
    let dir = holdup_testkit::corpus().join(folder);
    let Ok(labels) = std::fs::read_to_string(dir.join("LABELS.tsv")) else { return Vec::new() };
    let mut out = Vec::new();
    for line in labels.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let path = dir.join(fields[0]);
        if !path.is_file() {
            continue; // counters only, no trace
        }
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let name = stem(&path);
        let mut baseline = None;
        if fields[7] == "mp_up_overhead" {
            // Recorded in pairs; the uniprocessor's is what the other is compared with.
            match name.strip_suffix("_smp") {
                Some(stem) => {
                    baseline = Some(path.with_file_name(file.replace(&name, &format!("{stem}_up"))))
                }
                None => continue,
            }
        }
        out.push(Labelled {
            name,
            path,
            right: fields[7].split('|').map(class).collect(),
            baseline,
        });
    }
    out
}

/// The name of a recording: its file's up to the first point.
pub(crate) fn stem(path: &Path) -> String {
    let file = path.file_name().expect("a file").to_string_lossy();
    file.split('.').next().expect("the first part").to_owned()
}

/// The class as holdup spells it.
pub(crate) fn class(label: &str) -> String {
    match label {
        "kernel_lock" => "kernel-lock-conflict".to_owned(),
        "overload" => "cpu-overload".to_owned(),
        other => other.replace('_', "-"),
    }
}

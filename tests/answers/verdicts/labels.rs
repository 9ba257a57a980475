//! The labelled recordings: what each was made to show.

use std::path::{Path, PathBuf};

/// The heading of the last section of `docs/verdicts.md`, which
/// `crates/diagnose/tests/it/sensitivity.rs` writes.
pub(crate) const LIMITS: &str = "\n## What each threshold decides\n";

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

/// The repository: tests of two packages use this file.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().find(|dir| dir.join("fixtures").is_dir()).expect("the repository")
}

/// The fixtures with a truth.
pub(crate) fn fixtures() -> Vec<Labelled> {
    let mut out = Vec::new();
    for dir in std::fs::read_dir(root().join("fixtures")).expect("fixtures").flatten() {
        let path = dir.path().join("perf.data");
        let Ok(truth) = std::fs::read_to_string(dir.path().join("truth.json")) else { continue };
        if !path.exists() {
            continue;
        }
        let truth: serde_json::Value = serde_json::from_str(&truth).expect("JSON");
        let also = truth["also_right"].as_array().into_iter().flatten();
        let right = std::iter::once(&truth["true_class"]).chain(also);
        out.push(Labelled {
            name: dir.file_name().to_string_lossy().into_owned(),
            path,
            right: right.filter_map(|c| c.as_str()).map(str::to_owned).collect(),
            baseline: None,
        });
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    out
}

/// The recordings of real programs that are kept here.
pub(crate) fn kept() -> Vec<Labelled> {
    let dir = root().join("fixtures/real");
    kept_rows()
        .iter()
        .map(|fields| Labelled {
            name: stem(Path::new(&fields[0])),
            path: dir.join(&fields[0]),
            right: fields[5].split('|').map(class).collect(),
            baseline: None,
        })
        .filter(|of| of.path.is_file())
        .collect()
}

/// The rows of their table: `file, program, half, where, recorder, true_class, twin, how_known`.
pub(crate) fn kept_rows() -> Vec<[String; 8]> {
    let labels = std::fs::read_to_string(root().join("fixtures/real/LABELS.tsv")).expect("labels");
    let row = |line: &str| -> [String; 8] {
        let fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        fields.try_into().unwrap_or_else(|_| panic!("eight columns: {line}"))
    };
    labels.lines().skip(1).map(row).collect()
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

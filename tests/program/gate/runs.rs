//! Runs of one workload, as files to compare.

use crate::support::{fixture, holdup};
use serde_json::{Value, json};
use std::ops::Range;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder for the files of one test.
pub(crate) struct Folder(TempDir);

/// How a run ended and what it wrote to standard error, with the folder's name taken out.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The baseline file `fixtures/gate/sides/NAME.json`: runs that stay, whatever the experiment
/// records.
pub(crate) fn baseline(name: &str) -> Value {
    let text = std::fs::read_to_string(fixture(&format!("gate/sides/{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Only these runs of a baseline.
pub(crate) fn only(mut baseline: Value, which: Range<usize>) -> Value {
    let cut = |list: &mut Value| {
        *list = json!(list.as_array().unwrap()[which.clone()]);
    };
    cut(&mut baseline["runs"]);
    baseline["figures"].as_object_mut().unwrap().values_mut().for_each(cut);
    baseline
}

/// The text of a baseline file. The schema comes first: by that holdup knows such a file.
pub(crate) fn text(mut baseline: Value) -> String {
    let schema = baseline.as_object_mut().unwrap().remove("schema").unwrap();
    baseline.to_string().replacen('{', &format!("{{\"schema\":{schema},"), 1)
}

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Write a file.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Write some runs of a workload as a baseline file.
    pub(crate) fn runs(&self, name: &str, of: &str, which: Range<usize>) -> PathBuf {
        self.file(name, text(only(baseline(of), which)))
    }

    /// Run holdup in this folder. Arguments are separated by spaces.
    pub(crate) fn holdup(&self, args: &str) -> Ended {
        let mut holdup = holdup();
        holdup.current_dir(self.path()).env_remove("GITHUB_ACTIONS");
        let out = holdup.args(args.split_whitespace()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ended { code: out.status.code(), stdout: text(out.stdout), stderr: text(out.stderr) }
    }
}

impl Ended {
    /// Standard error of a run that must end with this code and print nothing else.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stdout, "");
        self.stderr
    }

    /// Standard output of a run that must end with this code and complain of nothing.
    #[track_caller]
    pub(crate) fn says(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        self.stdout
    }
}

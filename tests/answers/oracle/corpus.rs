//! The recordings: the repository's fixtures, and the corpus beside it if it is there.

use holdup_passes::{Analysis, Options};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{fs, io, io::Read};

/// One recording, unpacked.
pub(crate) struct Recording {
    /// Its name in messages: where it lies in the corpus or the repository.
    pub(crate) name: String,
    /// The plain file.
    pub(crate) path: PathBuf,
}

impl Recording {
    /// One of the labelled recordings: these are whole and of formats holdup reads.
    pub(crate) fn is_labelled(&self) -> bool {
        let ends = [".perf.data", ".perf.pipe.data", ".trace.dat", ".ftrace.txt"];
        self.name.starts_with("vm/") && ends.iter().any(|end| self.name.ends_with(end))
    }

    /// What holdup makes of it, whole.
    pub(crate) fn analyze(&self) -> Analysis {
        let reader = holdup_open::open(&self.path).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        holdup_attribution::analyze(&*reader, &Options::default())
            .unwrap_or_else(|e| panic!("{}: {e}", self.name))
    }
}

/// Every perf.data of the fixtures and the corpus in which threads are the kernel's, as perf has
/// them: where Go's runtime tells of its goroutines, these are holdup's threads.
pub(crate) fn perf_recordings() -> &'static [Recording] {
    static FILES: LazyLock<Vec<Recording>> = LazyLock::new(|| {
        all_files().into_iter().filter(|f| is_perf(&f.path) && !has_goroutines(&f.path)).collect()
    });
    &FILES
}

fn has_goroutines(path: &Path) -> bool {
    let opened = holdup_open::open(path);
    opened.is_ok_and(|reader| reader.info().events.iter().any(|e| e.system == "go"))
}

fn is_perf(path: &Path) -> bool {
    let mut magic = [0; 8];
    fs::File::open(path).and_then(|mut f| f.read_exact(&mut magic)).is_ok()
        && matches!(&magic, b"PERFILE2" | b"2ELIFREP")
}

/// Every file of the fixtures and the corpus that may be a trace: for holdup to decide.
pub(crate) fn all_files() -> Vec<Recording> {
    find(|name| !NOT_TRACES.iter().any(|end| name.ends_with(end)))
}

/// What lies beside the traces in the corpus: notes, tables, what other tools printed about them.
const NOT_TRACES: &[&str] = &[
    ".md",
    ".tsv",
    ".json",
    ".log",
    ".env.txt",
    ".before.txt",
    ".after.txt",
    "-report.txt",
    "-stat.txt",
    "-stats.txt",
    "-header.txt",
    "-sched.txt",
    "-contention.txt",
    "-head.txt",
    "-trace.txt",
    ".rs",
    ".c",
    ".sh",
    ".toml",
];

fn find(wanted: impl Fn(&str) -> bool) -> Vec<Recording> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut out = Vec::new();
    // A folder that is not there has no files.
    let roots = [(fixtures.as_path(), "fixtures"), (holdup_testkit::corpus(), "")];
    for (root, prefix) in roots {
        for file in walk(root) {
            let name = Path::new(prefix)
                .join(file.strip_prefix(root).expect("below its root"))
                .display()
                .to_string();
            let plain = name.strip_suffix(".zst").unwrap_or(&name);
            if wanted(plain) {
                let path = if plain == name { file } else { unpacked(&file, plain) };
                out.push(Recording { name: plain.to_owned(), path });
            }
        }
    }
    out
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(dir) = todo.pop() {
        let metadata = dir.join("metadata");
        if metadata.is_file() {
            // Any file of a CTF trace opens all of it.
            out.push(metadata);
            continue;
        }
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { todo.push(path) } else { out.push(path) }
        }
    }
    out.sort();
    out
}

/// The plain form of a `.zst`, kept between runs where cargo keeps what tests write.
fn unpacked(packed: &Path, name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("corpus").join(name.replace('/', "+"));
    let modified = |p: &Path| fs::metadata(p).and_then(|m| m.modified()).ok();
    if modified(&path).is_some_and(|t| Some(t) > modified(packed)) {
        return path;
    }
    let unpack = || -> io::Result<()> {
        fs::create_dir_all(path.parent().expect("below the target directory"))?;
        // Tests may run in several processes: whoever is done first puts it in place.
        let mut part = tempfile::NamedTempFile::new_in(path.parent().expect("as above"))?;
        zstd::stream::copy_decode(fs::File::open(packed)?, &mut part)?;
        part.persist(&path)?;
        Ok(())
    };
    unpack().unwrap_or_else(|e| panic!("{}: {e}", packed.display()));
    path
}

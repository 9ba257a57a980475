//! Helps to search folders for traces: recognises files that are certainly none.

use crate::wrap::Wrapper;
use crate::{foreign, read_head, recognise};
use std::fs::File;
use std::io;
use std::path::Path;

/// What this regular file is, if it is certainly no trace: a program, a picture, plain text. `None`
/// for anything that may be a damaged trace.
///
/// # Errors
/// It cannot be read.
pub fn no_trace(path: &Path) -> io::Result<Option<String>> {
    let head = read_head(&mut File::open(path)?)?;
    let is_trace = Wrapper::of(&head).is_some() || recognise(&head).is_ok();
    Ok(if is_trace { None } else { foreign::other(&head) })
}

/// Whether this folder as a whole is one trace: of `perf record --threads`, a dump of ftrace's raw
/// buffers with the descriptions of its events, or CTF. Unlike [`crate::open`], this does not look
/// for traces in folders below.
pub fn is_trace_folder(path: &Path) -> bool {
    let begins = |name: &str, sniff: &dyn Fn(&[u8]) -> bool| {
        let file = path.join(name);
        file.is_file()
            && File::open(file).and_then(|mut f| read_head(&mut f)).is_ok_and(|head| sniff(&head))
    };
    let has = |names: &[&str]| names.iter().any(|name| path.join(name).exists());
    begins("data", &holdup_perfdata::sniff)
        || begins("metadata", &|head| {
            holdup_ctf::sniff(head).is_some_and(|p| p == holdup_ctf::Part::Metadata)
        })
        || (has(&["traces", "per_cpu", "cpu0"]) && has(&["formats", "events"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_certainly_no_trace_is_named_and_damage_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let look = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            no_trace(&path).unwrap()
        };
        assert_eq!(look(b"# A title\n").as_deref(), Some("text of an unknown kind"));
        assert_eq!(look(b"{\"a\": 1}").as_deref(), Some("JSON"));
        assert_eq!(look(b"\x89PNG\r\n").as_deref(), Some("a picture (PNG)"));
        for damaged in
            [&b""[..], &[0; 4096], b"\x01\x02\x03", b"PERFILE2", b"BZh9", b"\x1f\x8b\x08"]
        {
            assert_eq!(look(damaged), None, "{damaged:?}");
        }
        assert!(no_trace(&folder.path().join("absent")).is_err());
    }

    #[test]
    fn a_folder_is_a_trace_only_if_what_makes_it_one_lies_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let (perf, raw) = (folder.path().join("perf"), folder.path().join("raw"));
        fs::create_dir_all(&perf).unwrap();
        fs::create_dir_all(raw.join("traces")).unwrap();
        fs::write(perf.join("data"), "words").unwrap();
        assert!(!is_trace_folder(&perf), "anything may be called data");
        assert!(!is_trace_folder(&raw), "anything may be called traces");
        fs::write(perf.join("data"), b"PERFILE2........").unwrap();
        fs::create_dir_all(raw.join("formats")).unwrap();
        assert!(is_trace_folder(&perf) && is_trace_folder(&raw));
        assert!(!is_trace_folder(folder.path()), "the traces are below");
    }
}

//! Traces in gzip, xz, zstd and zip: the same events as uncompressed, wherever the wrapper is cut.

use holdup_trace::{Batch, ErrorKind, Event, EventId, QualityCode, Reader, merge};
use proptest::prelude::*;
use std::collections::HashSet;
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Kernel text of `n` lines.
fn text(n: usize) -> Vec<u8> {
    let mut t = b"# tracer: nop\n#\n".to_vec();
    for i in 0..n {
        let line = format!(
            "  worker-{:<5} [{:03}] d..2. {:5}.{:06}: sched_switch: prev_comm=worker prev_pid={} \
                prev_prio=120 prev_state=S ==> \
             next_comm=swapper/0 next_pid=0 next_prio=120\n",
            100 + i % 7,
            i % 4,
            100 + i / 1000,
            i % 1000 * 1000 + i * 7919 % 997,
            100 + i % 7
        );
        t.extend(line.bytes());
    }
    t
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)).unwrap()
}

fn gz(data: &[u8]) -> Vec<u8> {
    let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    e.write_all(data).unwrap();
    e.finish().unwrap()
}

fn xz(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    liblzma::read::XzEncoder::new(data, 1).read_to_end(&mut out).unwrap();
    out
}

fn zst(data: &[u8]) -> Vec<u8> {
    zstd::encode_all(data, 1).unwrap()
}

/// An archive of deflated entries.
fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut list) = (Vec::new(), Vec::new());
    for (name, data) in entries {
        let mut e = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        e.write_all(data).unwrap();
        let packed = e.finish().unwrap();
        let method = if data.is_empty() { 0u16 } else { 8 };
        let packed: &[u8] = if data.is_empty() { &[] } else { &packed };
        let offset = out.len() as u32;
        let mut common = Vec::new();
        common.extend([20u8, 0, 0, 0]);
        common.extend(method.to_le_bytes());
        common.extend([0; 8]);
        common.extend((packed.len() as u32).to_le_bytes());
        common.extend((data.len() as u32).to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(name.bytes());
        out.extend(packed);
        list.extend(b"PK\x01\x02\x14\0");
        list.extend(&common);
        list.extend([0; 10]);
        list.extend(offset.to_le_bytes());
        list.extend(name.bytes());
    }
    let (at, len, n) = (out.len() as u32, list.len() as u32, entries.len() as u16);
    out.extend(list);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(n.to_le_bytes());
    out.extend(n.to_le_bytes());
    out.extend(len.to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend([0, 0]);
    out
}

struct File(tempfile::TempDir, PathBuf);

/// A file whose name does not show its format.
fn file(data: &[u8]) -> File {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jpeg");
    std::fs::write(&path, data).unwrap();
    File(dir, path)
}

fn open(data: &[u8]) -> Result<Box<dyn Reader>, ErrorKind> {
    let f = file(data);
    let reader = holdup_open::open(&f.1).map_err(|e| e.kind);
    drop(f.0);
    reader
}

fn refusal(data: &[u8]) -> String {
    open(data).err().expect("refused").to_string()
}

fn events(reader: &dyn Reader) -> Vec<Event> {
    let mut all = Vec::new();
    merge::drive(reader, 1, &mut |events: &[Event], _: &Batch| {
        all.extend(events.iter().copied().filter(|e| e.id != EventId::SIDEBAND));
        ControlFlow::Continue(())
    })
    .unwrap();
    all
}

/// Fields that are equal in two readings of the same trace; ids of names differ.
fn keys(reader: &dyn Reader) -> Vec<(u64, u32, u16, u16)> {
    events(reader).iter().map(|e| (e.ts, e.tid.0, e.cpu.0, e.id.0)).collect()
}

/// A way to wrap.
type Wrap = fn(&[u8]) -> Vec<u8>;
const WRAPS: [(&str, Wrap); 4] = [
    ("gzip", gz),
    ("xz", xz),
    ("zstd", zst),
    ("zip", |data| zip(&[("dir/", b""), ("dir/trace", data)])),
];

#[test]
fn every_format_in_every_wrapper() {
    let traces = [
        ("ftrace text", text(3000)),
        ("perf.data", fixture("ser_flock_c4/perf.data")),
        (
            "trace.dat v7",
            zstd::decode_all(&fixture("tracedat-small/imb_single_c2.trace.dat.zst")[..]).unwrap(),
        ),
    ];
    for (format, data) in &traces {
        let bare = open(data).unwrap();
        assert_eq!(bare.info().format, *format);
        let want = keys(&*bare);
        assert!(want.len() > 100);
        for (name, wrap) in WRAPS {
            let reader = open(&wrap(data)).unwrap();
            assert_eq!(reader.info().format, format!("{format} in {name}"));
            let why = &reader.info().extra[0];
            assert!(
                why.0 == "recognised by"
                    && why.1.ends_with(&format!(", inside {name} data (by the magic number)")),
                "{why:?}"
            );
            assert!(keys(&*reader) == want, "{format} in {name}");
            assert_eq!(reader.quality().count(QualityCode::Truncated), 0);
            for (outer, again) in WRAPS {
                let reader = open(&again(&wrap(data))).unwrap();
                assert_eq!(reader.info().format, format!("{format} in {name} in {outer}"));
                assert!(keys(&*reader) == want, "{format} in {name} in {outer}");
            }
        }
        let thrice = refusal(&gz(&xz(&zst(data))));
        assert!(thrice.contains("more than 2 layers") && thrice.contains("gzip -dc"), "{thrice}");
    }
}

#[test]
fn members_one_behind_the_other_are_read_through() {
    let whole = text(2000);
    let want = keys(&*open(&whole).unwrap());
    let (a, b) = whole.split_at(whole.len() / 3);
    for wrap in [gz as Wrap, xz, zst] {
        let joined = [wrap(a), wrap(b)].concat();
        assert!(keys(&*open(&joined).unwrap()) == want);
    }
}

#[test]
fn archives_with_several_files_name_them() {
    let message = refusal(&zip(&[("a/trace.dat", b"x"), ("b/readme", b"y")]));
    assert!(
        message.contains("2 files (a/trace.dat, b/readme)") && message.contains("unzip -p"),
        "{message}"
    );
    let message = refusal(&zip(&[("only/", b"")]));
    assert!(message.contains("without files"), "{message}");
    let trace = text(20);
    assert!(open(&zip(&[("__MACOSX/._t", b"junk"), ("t", &trace)])).is_ok());
}

#[test]
fn what_a_wrapper_holds_is_named_too() {
    let message = refusal(&gz(b"{\"traceEvents\":[]}"));
    assert!(message.contains("a Chrome JSON trace (inside gzip)"), "{message}");
    let mut tar = vec![b'a'; 512];
    tar[257..262].copy_from_slice(b"ustar");
    let message = refusal(&gz(&tar));
    assert!(
        message.contains("a tar archive without a CTF trace (inside gzip)")
            && message.contains("tar xf"),
        "{message}"
    );
    assert!(refusal(&zst(b"")).contains("an empty file"));
}

#[test]
fn a_damaged_middle_ends_the_trace_there() {
    let whole = text(20_000);
    let want = keys(&*open(&whole).unwrap());
    for (name, wrap) in WRAPS {
        let mut data = wrap(&whole);
        let middle = data.len() / 2;
        data[middle..middle + 64].fill(0xa5);
        let Ok(reader) = open(&data) else { continue };
        let got = keys(&*reader);
        // Without a checksum damage may decode to other text; the text before it is unchanged.
        let got: HashSet<_> = got.into_iter().collect();
        let sound = want.iter().take_while(|k| got.contains(k)).count();
        assert!(sound > 1000, "{name}: {sound}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Wherever the file is cut, the rest is read and the loss counted, or the error says why.
    #[test]
    fn cut_wrappers(cut in 0.0f64..1.0, which in 0..4usize, twice in any::<bool>()) {
        let whole = text(4000);
        let (name, wrap) = WRAPS[which];
        let data = if twice { gz(&wrap(&whole)) } else { wrap(&whole) };
        let cut = (data.len() as f64 * cut) as usize;
        match open(&data[..cut]) {
            Ok(reader) => {
                let got = events(&*reader).len();
                prop_assert!(got <= 4000);
                prop_assert!(reader.quality().count(QualityCode::Truncated) > 0, "{} at \
                    {}", name, cut);
                prop_assert!(reader.info().extra.iter().any(|(label, _)| label == "unpacking"));
            }
            Err(kind) => prop_assert!(kind.to_string().len() > 10),
        }
    }

    /// Any bytes after a magic number are either refused or read.
    #[test]
    fn wild_wrappers(
        which in 0..4usize,
        mut body in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        let magic: [&[u8]; 4] =
            [b"\x1f\x8b\x08", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"];
        body.splice(0..0, magic[which].iter().copied());
        let _ = open(&body);
        body.extend(b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0");
        let _ = open(&body);
    }
}

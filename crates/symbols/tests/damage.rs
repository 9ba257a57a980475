//! Files that are cut off, changed, or malicious.

use holdup_symbols::{Code, Options, Symbols};
use holdup_trace::{Mapping, Pid, TraceInfo};
use std::fs;
use std::path::Path;

const PROGRAM: &str = "../../fixtures/profile_convoy/root/tmp/demo/convoy";

/// A folder with one file, and the mapping of that file.
struct Case {
    folder: tempfile::TempDir,
    info: TraceInfo,
    mapping: Mapping,
}

impl Case {
    fn new(file: &str) -> Case {
        let info = TraceInfo::new("trace".into(), "by hand");
        let mapping = Mapping {
            start: 0x5000_0000,
            len: 0x1000,
            offset: 0x1000,
            file: info.names.intern(file.as_bytes()),
            kernel: false,
            build_id: None,
        };
        Case { folder: tempfile::tempdir().unwrap(), info, mapping }
    }

    fn put(&self, path: &str, bytes: &[u8]) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn code(&self, address: u64) -> Code {
        Code { pid: Pid(7), mapping: Some(self.mapping), named: None, address, kernel: false }
    }

    fn options(&self) -> Options {
        Options { symfs: Some(self.folder.path().to_owned()), ..Options::default() }
    }

    /// Names and lines of the code in the mapping.
    fn names(&self) -> Vec<(Option<String>, Option<String>)> {
        let mut symbols = Symbols::new(&self.info, None, self.options());
        let at = |offset| {
            let code = self.code(self.mapping.start + offset);
            let named = symbols.name(&code);
            let inlined = symbols.functions(&code, offset % 32 == 0).1.len();
            assert!(inlined > 0, "the function itself is always there");
            (named.function.map(|f| f.to_string()), symbols.line(&code).map(|l| l.to_string()))
        };
        (0..0x1000).step_by(16).map(at).collect()
    }
}

/// A cheap generator of a fixed pseudo-random sequence.
fn numbers(mut x: u64) -> impl FnMut(usize) -> usize {
    move |n| {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (x >> 33) as usize % n
    }
}

#[test]
fn a_sound_file_has_names_and_lines() {
    let case = Case::new("/bin/prog");
    case.put("bin/prog", &fs::read(PROGRAM).unwrap());
    let names = case.names();
    let has = |function: &str, line: bool| {
        names.iter().any(|(f, l)| f.as_deref() == Some(function) && l.is_some() == line)
    };
    assert!(has("update_balance", true) && has("main", true) && has("_start", false), "{names:?}");
    assert!(has("pthread_mutex_lock@plt", false), "{names:?}");
}

#[test]
fn a_call_says_which_function_returns_behind_it() {
    let case = Case::new("/bin/prog");
    let program = fs::read(PROGRAM).unwrap();
    let called = |bytes: &[u8], options: Options| {
        case.put("bin/prog", bytes);
        let mut symbols = Symbols::new(&case.info, None, options);
        // handle_request, at 13d0: two instructions, two calls of 5 bytes each, the end.
        [0x13d4, 0x13d9, 0x13dd, 0x13de].map(|virtual_address| {
            let code = case.code(case.mapping.start + virtual_address - case.mapping.offset);
            symbols.called(&code).and_then(|named| named.function).map(|name| name.to_string())
        })
    };
    let name = |name: &str| Some(name.to_owned());
    let of = called(&program, case.options());
    assert_eq!(of, [None, name("parse_request"), None, name("update_balance")]);
    let off = Options { off: true, ..case.options() };
    assert_eq!(called(&program, off), [const { None }; 4]);
    // A call into the middle of a function does not count.
    let mut changed = program.clone();
    changed[0x13da] += 1;
    let of = called(&changed, case.options());
    assert_eq!(of, [None, name("parse_request"), None, None]);
}

#[test]
fn a_file_that_is_cut_off_or_changed_gives_fewer_names_and_no_panic() {
    let sound = fs::read(PROGRAM).unwrap();
    let case = Case::new("/bin/prog");
    for end in (0..sound.len()).step_by(sound.len() / 97) {
        case.put("bin/prog", &sound[..end]);
        case.names();
    }
    let mut random = numbers(7);
    for round in 0..200 {
        let mut bytes = sound.clone();
        // The headers of file and sections first: they locate everything else.
        for _ in 0..1 + round % 8 {
            let at = match round % 3 {
                0 => random(64.min(bytes.len())),
                1 => bytes.len() - 1 - random(64 * 40),
                _ => random(bytes.len()),
            };
            bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random(256) as u8][random(6)];
        }
        case.put("bin/prog", &bytes);
        case.names();
    }
}

#[test]
fn a_section_that_claims_to_unpack_to_too_much_is_left() {
    let mut bytes = fs::read(PROGRAM).unwrap();
    // SHF_COMPRESSED in the flags of every section header: the section's data is then read as a
    // header.
    let word = |b: &[u8], at: usize| u64::from_le_bytes(b[at..at + 8].try_into().unwrap());
    let (headers, count) = (word(&bytes, 40) as usize, bytes[60] as usize);
    for i in 0..count {
        bytes[headers + i * 64 + 9] |= 8;
    }
    let case = Case::new("/bin/prog");
    case.put("bin/prog", &bytes);
    assert!(case.names().iter().all(|(_, line)| line.is_none()));
}

#[test]
fn what_a_compiler_wrote_at_run_time_names_memory_without_a_file() {
    let case = Case::new("//anon");
    case.put("tmp/perf-7.map", b"50000000 20 LazyCompile:work app.js:3\nnonsense\n50000020 fff");
    let mut symbols = Symbols::new(&case.info, None, case.options());
    let named = symbols.name(&case.code(0x5000_0010));
    assert_eq!(named.function.as_deref(), Some("LazyCompile:work app.js:3"));
    assert_eq!(named.dso.as_deref(), Some("[JIT] tid 7"));
    assert_eq!(symbols.name(&case.code(0x5000_0020)).function, None);
    let other = Code { pid: Pid(8), ..case.code(0x5000_0010) };
    assert_eq!(symbols.name(&other).function, None, "another process");
    assert!(symbols.remarks()[0].ends_with("not known: perf-7.map"), "{:?}", symbols.remarks());
}

/// Regression: addr2line overflowed at the last possible address.
#[test]
fn the_last_address_of_all_has_no_line() {
    holdup_symbols::try_all(&fs::read(PROGRAM).unwrap());
}

#[test]
fn addresses_outside_of_everything_have_no_name() {
    let case = Case::new("/bin/prog");
    case.put("bin/prog", &fs::read(PROGRAM).unwrap());
    let mut symbols = Symbols::new(&case.info, None, case.options());
    for address in [0, 1, u64::MAX, 1 << 63, 0x4fff_f000] {
        assert_eq!(symbols.name(&case.code(address)).function, None, "{address:x}");
        assert_eq!(symbols.line(&case.code(address)), None);
    }
    let nowhere = Code { mapping: None, ..case.code(7) };
    assert_eq!(symbols.name(&nowhere), Default::default());
    assert!(symbols.remarks()[0].starts_with("unverified"), "{:?}", symbols.remarks());
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let case = Case::new("/dev");
    let everything = Options { symfs: None, ..case.options() };
    let mut symbols = Symbols::new(&case.info, None, everything);
    assert_eq!(symbols.name(&case.code(0x5000_0010)).function, None);
    assert!(Path::new("/dev").is_dir());
}

#[test]
fn what_the_kernel_made_has_the_name_it_was_mapped_by() {
    let info = TraceInfo::new("x".into(), "perf.data");
    let mapped = |file: &str| Mapping {
        start: 0xffff_ffff_c000_0000,
        len: 96,
        offset: 0,
        file: info.names.intern(file.as_bytes()),
        kernel: true,
        build_id: None,
    };
    let off = Options { off: true, ..Options::default() };
    let mut symbols = Symbols::new(&info, None, off);
    let mut name = |file: &str| {
        let mapping = Some(mapped(file));
        symbols.name(&Code { pid: Pid(7), mapping, named: None, address: 5, kernel: true })
    };
    let program = "bpf_prog_6deef7357e7b4530_on_switch";
    let named = name(program);
    assert_eq!((named.dso.as_deref(), named.function.as_deref()), (Some(program), Some(program)));
    let module = name("/lib/modules/6.1/kernel/fs/ext4/ext4.ko");
    assert_eq!((module.dso.as_deref(), module.function), (Some("[ext4]"), None));
}

/// A sample in a trampoline of ftrace, which is in no mapping, counted as the kernel's own code.
#[test]
fn what_the_kernel_made_outside_of_its_code_has_no_file() {
    let case = Case::new("[kernel.kallsyms]_text");
    let start = 0xffff_ffff_8100_0000;
    let text = Mapping { start, offset: start, kernel: true, ..case.mapping };
    case.put("kallsyms", b"ffffffff81000000 T _text\nffffffff81000100 T do_it\n");
    let listed = Some(case.folder.path().join("kallsyms"));
    let options = Options { kallsyms: listed, ..case.options() };
    let mut symbols = Symbols::new(&case.info, Some(text), options);
    let mut name = |address, mapping| {
        let named = symbols.name(&Code { kernel: true, mapping, ..case.code(address) });
        (named.dso.map(|d| d.to_string()), named.function.map(|f| f.to_string()))
    };
    let kernel = Some("[kernel.kallsyms]".to_owned());
    assert_eq!(name(start + 0x104, Some(text)), (kernel, Some("do_it".to_owned())));
    assert_eq!(name(0xffff_ffff_c021_1004, None), (None, None));
}

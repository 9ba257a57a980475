//! System calls in the layouts of 64-bit kernels: `raw_syscalls` and `syscalls`.

use holdup_trace::{Batch, LocalNames, Names, What};
use holdup_tracepoint::{Abi, Big, CallNumber, Endian, Format, Little, Plan};

const COMMON: &str = "ID: 77\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
const RAW: &str = "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n";
const NAMED: &str = "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n\
    \tfield:unsigned int fd;\toffset:16;\tsize:8;\tsigned:0;\n\
    \tfield:char * buf;\toffset:24;\tsize:8;\tsigned:0;\n";
const TEXT: &str = "\tfield:__data_loc char[] __buf_val;\toffset:32;\tsize:4;\tsigned:0;\n";
const RAW_EXIT: &str = "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n";
const NAMED_EXIT: &str = "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n\
    \tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n";

fn plan(system: &str, name: &str, fields: &str) -> Plan {
    let text = format!("name: {name}\n{COMMON}{fields}\nprint fmt: \"\"\n");
    Plan::compile(&Format::parse(&text, system).unwrap(), Abi { long_size: 8 })
}

/// The number and the arguments or the result that a plan decodes.
fn decoded<E: Endian>(plan: &Plan, raw: &[u8]) -> Option<(u32, Vec<u64>)> {
    let (mut names, mut batch) = (LocalNames::new(Names::new()), Batch::new());
    match plan.decode::<E>(raw, &mut names, &mut batch)? {
        What::SysEnter { nr, args } => Some((nr, batch.args(args)?.to_vec())),
        What::SysExit { nr, ret } => Some((nr, vec![ret as u64])),
        what => panic!("{what:?}"),
    }
}

/// A record in both byte orders; what is after a number of 4 bytes is not always 0.
fn records(nr_size: usize, words: &[u64]) -> [Vec<u8>; 2] {
    let head = [77, 0, 0, 0, 7, 0, 0, 0];
    let little = |w: &u64| w.to_le_bytes();
    let big = |w: &u64| w.to_be_bytes();
    let nr = match nr_size {
        4 => [[45, 0, 0, 0, 9, 9, 9, 9], [0, 0, 0, 45, 9, 9, 9, 9]],
        _ => [[45, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 45]],
    };
    let record = |nr: [u8; 8], words: Vec<u8>| [&head[..], &nr, &words].concat();
    [
        record(nr[0], words.iter().flat_map(little).collect()),
        record(nr[1], words.iter().flat_map(big).collect()),
    ]
}

#[test]
fn each_layout_is_recognised_and_decoded_in_both_byte_orders() {
    let cases = [
        (
            plan("raw_syscalls", "sys_enter", RAW),
            8,
            &[1, 2, 3, 4, 5, 6][..],
            &[1, 2, 3, 4, 5, 6][..],
        ),
        (plan("syscalls", "sys_enter_read", NAMED), 4, &[1, 2], &[1, 2, 0, 0, 0, 0]),
        (
            plan("syscalls", "sys_enter_read", &format!("{NAMED}{TEXT}")),
            4,
            &[1, 2, 3],
            &[1, 2, 0, 0, 0, 0],
        ),
        (
            plan("syscalls", "sys_enter_sync", &NAMED[..NAMED.find('\n').unwrap() + 1]),
            4,
            &[],
            &[0; 6],
        ),
        (plan("raw_syscalls", "sys_exit", RAW_EXIT), 8, &[u64::MAX], &[u64::MAX]),
        (plan("syscalls", "sys_exit_read", NAMED_EXIT), 4, &[u64::MAX], &[u64::MAX]),
    ];
    for (plan, nr_size, words, expected) in cases {
        let nr = if nr_size == 8 { CallNumber::Long } else { CallNumber::Int };
        assert!(
            matches!(&plan, Plan::SysEnter64 { nr: n, .. } | Plan::SysExit64 { nr: n } if *n == nr),
            "{plan:?}"
        );
        let [little, big] = records(nr_size, words);
        assert_eq!(decoded::<Little>(&plan, &little), Some((45, expected.to_vec())), "{plan:?}");
        assert_eq!(decoded::<Big>(&plan, &big), Some((45, expected.to_vec())), "{plan:?}");
        let short = &little[..plan.min_len() - 1];
        assert_eq!(decoded::<Little>(&plan, short), None, "cut off: {plan:?}");
    }
}

#[test]
fn other_layouts_are_decoded_field_by_field() {
    // A 32-bit kernel, and arguments with a gap.
    for (from, to) in [("offset:24;\tsize:8", "offset:24;\tsize:4"), ("offset:24", "offset:32")] {
        let plan = plan("syscalls", "sys_enter_read", &NAMED.replace(from, to));
        assert!(matches!(plan, Plan::SysEnterNamed { .. }), "{plan:?}");
    }
}

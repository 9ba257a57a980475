//! `sched_blocked_reason` in the layout of Android kernels.

use holdup_trace::{Batch, LocalNames, NameId, Names, Tid, What};
use holdup_tracepoint::{Abi, Format, Little, Plan};

const FORMAT: &str = "name: sched_blocked_reason\nID: 77\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\
    \tfield:void* caller;\toffset:16;\tsize:8;\tsigned:0;\n\
    \tfield:bool io_wait;\toffset:24;\tsize:1;\tsigned:0;\n\n\
    print fmt: \"pid=%d iowait=%d caller=%pS\", REC->pid, REC->io_wait, REC->caller\n";

#[test]
fn the_reason_of_a_sleep_is_decoded() {
    let format = Format::parse(FORMAT, "sched").unwrap();
    let plan = Plan::compile(&format, Abi { long_size: 8 });
    let mut raw = [0u8; 28];
    raw[8..12].copy_from_slice(&269u32.to_le_bytes());
    raw[16..24].copy_from_slice(&0xffff_ffc0_0008_59bcu64.to_le_bytes());
    raw[24] = 1;
    let (mut names, mut batch) = (LocalNames::new(Names::new()), Batch::new());
    let mut decode = |raw: &[u8]| plan.decode::<Little>(raw, &mut names, &mut batch);
    let caller = 0xffff_ffc0_0008_59bc;
    let want =
        |io_wait| Some(What::BlockedReason { tid: Tid(269), io_wait, caller, name: NameId::NONE });
    assert_eq!(decode(&raw), want(true));
    raw[24] = 0;
    assert_eq!(decode(&raw), want(false));
    assert_eq!(decode(&raw[..20]), None);
}

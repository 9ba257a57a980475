//! `lock:contended_release`, from Linux 7.2 on; there is no real recording of it yet.

use holdup_trace::{Batch, LocalNames, Names, What};
use holdup_tracepoint::{Abi, Big, Format, Little, Plan};

const FORMAT: &str = "name: contended_release\nID: 77\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n\n\
    print fmt: \"%p\", REC->lock_addr\n";
const LOCK: u64 = 0xffff_8880_0000_1000;

#[test]
fn the_lock_that_is_released_is_decoded() {
    let format = Format::parse(FORMAT, "lock").unwrap();
    let plan = Plan::compile(&format, Abi { long_size: 8 });
    let (mut names, mut batch) = (LocalNames::new(Names::new()), Batch::new());
    let record = |lock: [u8; 8]| [&[77, 0, 0, 0, 7, 0, 0, 0][..], &lock].concat();
    let released = Some(What::ContendedRelease { lock: LOCK });
    let little = record(LOCK.to_le_bytes());
    assert_eq!(plan.decode::<Little>(&little, &mut names, &mut batch), released);
    let big = record(LOCK.to_be_bytes());
    assert_eq!(plan.decode::<Big>(&big, &mut names, &mut batch), released);
    assert_eq!(plan.decode::<Little>(&little[..15], &mut names, &mut batch), None, "cut off");
    let other = Format::parse(&FORMAT.replace("lock_addr", "lock"), "lock").unwrap();
    assert_eq!(Plan::compile(&other, Abi { long_size: 8 }), Plan::Incomplete("lock_addr"));
}

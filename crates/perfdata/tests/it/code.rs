//! Which code ran: call chains, mappings, build ids.

use crate::common::{Builder, Container, open_bytes};
use holdup_perfdata::{PerfData, open};
use holdup_trace::{Batch, BuildId, EventId, Mapping, Pid, QualityCode, Reader, What, merge};
use std::ops::ControlFlow;
use std::path::Path;

const CONTAINERS: [Container; 3] = [Container::File, Container::Pipe, Container::Compressed];
const KERNEL: u64 = -128i64 as u64;
const USER: u64 = -512i64 as u64;
const DEFERRED: u64 = -640i64 as u64;
const GUEST: u64 = -2048i64 as u64;
const IN_KERNEL: u64 = 0xffff_ffff_8100_0010;

/// Call `each` with every event.
fn events(file: &PerfData, mut each: impl FnMut(EventId, What, &Batch)) {
    merge::drive(file, 1, &mut |events: &[holdup_trace::Event], batch: &Batch| {
        events.iter().for_each(|e| each(e.id, e.what, batch));
        ControlFlow::Continue(())
    })
    .unwrap();
}

/// Addresses of all chains, and how many of each are in the kernel.
fn chains(file: &PerfData) -> Vec<(Vec<u64>, usize)> {
    let mut found = Vec::new();
    events(file, |_, what, batch| {
        let stack = match what {
            What::Stack { of } => of,
            What::Sample { stack, .. } | What::ContentionBegin { stack, .. } => stack,
            _ => return,
        };
        found.push((batch.stack(stack).to_vec(), stack.in_kernel()));
    });
    found
}

fn mappings(file: &PerfData) -> Vec<(Pid, Mapping, String)> {
    let mut found = Vec::new();
    events(file, |_, what, batch| {
        if let What::Mapped { pid, mapping } = what {
            let m = *batch.mapping(mapping).unwrap();
            found.push((pid, m, file.info().names.get(m.file)));
        }
    });
    found
}

#[test]
fn a_switch_with_the_kernels_chain_and_a_register_says_in_which_call_it_happens() {
    for big in [false, true] {
        for container in CONTAINERS {
            let mut b = Builder::new(big);
            b.calls = true;
            b.switch_in(10, 7, &[KERNEL, IN_KERNEL, IN_KERNEL + 16], Some(5));
            b.switch_in(20, 2, &[KERNEL, IN_KERNEL], None);
            b.switch_in(30, 8, &[], Some(6));
            let file = open_bytes(&b.build(container)).unwrap();
            let (mut said, mut switches) = (Vec::new(), 0);
            events(&file, |_, what, batch| match what {
                What::Leaves { of, argument } => said.push((batch.stack(of).to_vec(), argument)),
                What::Switch { .. } => switches += 1,
                What::Stack { .. } => panic!("that is no call chain of a program"),
                _ => {}
            });
            assert_eq!(said, [(vec![IN_KERNEL, IN_KERNEL + 16], 5)], "{container:?}");
            assert_eq!(switches, 3);
            // The file does not show which code waits, calls and runs.
            assert!(!file.info().capabilities.stacks);
        }
    }
}

#[test]
fn the_chain_of_any_event_comes_before_it_with_the_kernels_part_told_from_the_programs() {
    for big in [false, true] {
        for container in CONTAINERS {
            let mut b = Builder::new(big);
            b.chains = true;
            b.switch_from(10, 0, 7, 8, &[KERNEL, IN_KERNEL, IN_KERNEL + 16, USER, 0x40_1000, 16]);
            b.switch_from(20, 0, 8, 7, &[]);
            let file = open_bytes(&b.build(container)).unwrap();
            let chain = vec![IN_KERNEL, IN_KERNEL + 16, 0x40_1000, 16];
            assert_eq!(chains(&file), [(chain, 2)], "{big} {container:?}");
            let mut order = Vec::new();
            events(&file, |id, _, _| order.push(id));
            let (side, switch) = (EventId::SIDEBAND, EventId(0));
            assert_eq!(order, [side, switch, switch], "an empty chain is none");
        }
    }
}

#[test]
fn marks_decide_whose_addresses_are_and_what_is_no_address_is_left_out() {
    let mut b = Builder::new(false);
    // On some machines kernel and user addresses are in the same half of the address space.
    b.contention(10, 0, 7, &[KERNEL, 0x10_0000, USER, 0x10_0000]);
    b.contention(20, 0, 7, &[IN_KERNEL, 0x40_1000]);
    b.contention(30, 0, 7, &[GUEST, 0x77, GUEST + 1, 0x78, KERNEL, IN_KERNEL]);
    b.contention(40, 0, 7, &[KERNEL, IN_KERNEL, DEFERRED, 12345]);
    b.contention(50, 0, 7, &[USER, 0x40_1000, KERNEL, IN_KERNEL]);
    let file = open_bytes(&b.build(Container::File)).unwrap();
    assert_eq!(
        chains(&file),
        [
            (vec![0x10_0000, 0x10_0000], 1),
            (vec![IN_KERNEL, 0x40_1000], 1),
            (vec![IN_KERNEL], 1),
            (vec![IN_KERNEL], 1),
            (vec![0x40_1000, IN_KERNEL], 0),
        ]
    );
}

#[test]
fn mappings_come_with_file_offset_and_build_id() {
    let id = [7u8; 20];
    for big in [false, true] {
        for container in CONTAINERS {
            let mut b = Builder::new(big);
            b.counters = true;
            b.mmap(0, 1, u32::MAX, [IN_KERNEL, 4096, IN_KERNEL], "[kernel.kallsyms]_text");
            b.mmap2(5, 7, [0x40_0000, 8192, 4096], Some(&id), "/usr/bin/prog");
            b.mmap2(6, 7, [0x7f00_0000, 4096, 0], Some(&id[..16]), "/usr/lib/short.so");
            b.mmap2(7, 7, [0x7f10_0000, 4096, 0], None, "/usr/lib/a name with\u{e4}.so");
            b.mmap(8, 2, 7, [0x7f20_0000, 4096, 0], "[vdso]");
            b.mmap(9, 2 | 1 << 13, 7, [0x7f30_0000, 4096, 0], "/data");
            b.cycles(10, 0, 7, 0x40_1000, 1);
            let file = open_bytes(&b.build(container)).unwrap();
            let found = mappings(&file);
            let of = |i: usize| {
                let (pid, m, file) = &found[i];
                (pid.0, [m.start, m.len, m.offset], m.kernel, m.build_id, file.as_str())
            };
            let at = |a| [a, 4096, 0];
            let (id, short) = (BuildId::new(&id), BuildId::new(&id[..16]));
            let text = "[kernel.kallsyms]_text";
            assert_eq!(of(0), (u32::MAX, [IN_KERNEL, 4096, IN_KERNEL], true, None, text));
            assert_eq!(of(1), (7, [0x40_0000, 8192, 4096], false, id, "/usr/bin/prog"));
            assert_eq!(of(2), (7, at(0x7f00_0000), false, short, "/usr/lib/short.so"));
            let name = "/usr/lib/a name with\u{e4}.so";
            assert_eq!(of(3), (7, at(0x7f10_0000), false, None, name));
            assert_eq!(of(4), (7, at(0x7f20_0000), false, None, "[vdso]"));
            assert_eq!(found.len(), 5, "data is no code");
            assert_eq!(short.unwrap().to_string(), "07".repeat(16));
        }
    }
}

#[test]
fn where_no_sample_says_which_code_ran_mappings_are_not_read() {
    let file = open(Path::new("../../fixtures/imb_server_c4/perf.data")).unwrap();
    assert!(!file.info().capabilities.stacks, "choose a fixture without chains");
    assert_eq!(mappings(&file), []);
}

#[test]
fn a_mapping_that_is_cut_off_is_counted_and_left_out() {
    let mut b = Builder::new(false);
    b.mmap2(5, 7, [0x40_0000, 8192, 4096], None, "/usr/bin/prog");
    let body = b.words(&[7, 7, 1, 2, 3, 4, 5, 6, 7]);
    b.side(10, 2, &body, 6, 0, 7);
    b.push(1, 2, &[]);
    b.contention(20, 0, 7, &[]);
    let file = open_bytes(&b.build(Container::File)).unwrap();
    assert_eq!(mappings(&file).len(), 1);
    let mut batch = Batch::new();
    while file.decoder(0).fill(&mut batch).unwrap() {}
    assert_eq!(batch.quality.count(QualityCode::BadRecords), 2);
}

#[test]
fn build_ids_come_from_the_section_of_a_file_and_the_records_of_a_pipe() {
    let mut b = Builder::new(true);
    let mut body = b.words(&[u32::MAX]);
    body.extend([0xab; 20]);
    body.extend([16, 0, 0, 0]);
    body.extend(b"/usr/bin/prog\0\0\0");
    b.push(67, 2 | 1 << 15, &body);
    b.push(67, 2 | 1 << 15, &body[..20]);
    b.switch(10, 0, 7, 8);
    let pipe = open_bytes(&b.build(Container::Pipe)).unwrap();
    let [built] = &pipe.info().built[..] else { panic!("{:?}", pipe.info().built) };
    assert_eq!((built.file.as_str(), built.build_id.bytes()), ("/usr/bin/prog", &[0xab; 16][..]));
    let file = open(Path::new("../../fixtures/imb_server_c4/perf.data")).unwrap();
    let kernel = file.info().built.iter().find(|b| b.file == "[kernel.kallsyms]").unwrap();
    assert_eq!(kernel.build_id.bytes().len(), 20);
}

#[test]
fn code_that_the_kernel_made_is_mapped_by_its_name() {
    let name = "bpf_prog_6deef7357e7b4530_on_switch";
    for big in [false, true] {
        for container in CONTAINERS {
            let mut b = Builder::new(big);
            b.chains = true;
            b.ksymbol(5, (IN_KERNEL, 96), false, name);
            b.ksymbol(6, (IN_KERNEL, 96), true, name);
            b.ksymbol(7, (IN_KERNEL, 96), false, "");
            b.side(17, 0, &[0; 8], 8, 0, 0);
            b.switch_from(10, 0, 7, 8, &[KERNEL, IN_KERNEL + 16]);
            let file = open_bytes(&b.build(container)).unwrap();
            let found = mappings(&file);
            let [(pid, m, file)] = &found[..] else { panic!("{found:?}") };
            assert_eq!((pid.0, m.start, m.len, m.kernel), (u32::MAX, IN_KERNEL, 96, true));
            assert_eq!(file, name);
        }
    }
}

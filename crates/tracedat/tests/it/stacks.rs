//! Call chains, which are separate records.

use crate::support::writer::{BufferSpec, FileSpec};
use holdup_trace::{Batch, Event, QualityCode, Reader, What, merge};
use holdup_tracedat::{TraceDat, open_stream};
use std::ops::ControlFlow;
use std::path::Path;

const RECORDER: u64 = 0xffff_ffff_8100_1010;
const WAKE: u64 = 0xffff_ffff_8100_2010;
const CALLER: u64 = 0xffff_ffff_8100_2110;
const USER: u64 = 0x55_5555_0010;

/// A file with these pages of one CPU.
fn open(spec: FileSpec, pages: impl FnOnce(&FileSpec) -> Vec<Vec<u8>>) -> TraceDat {
    let mut spec = spec.with_stacks();
    let pages = pages(&spec).concat();
    spec.buffers.push(BufferSpec { name: "", cpus: vec![(0, pages)] });
    open_stream(Path::new("-"), spec.build().as_slice()).unwrap()
}

/// For every wake-up and system call: thread, addresses and how many of them are kernel addresses.
fn chains(dat: &TraceDat) -> Vec<(u32, Vec<u64>, usize)> {
    let mut found = Vec::new();
    let mut before = None;
    let quality = merge::drive(dat, 1, &mut |events: &[Event], batch: &Batch| {
        for e in events {
            match e.what {
                What::Stack { of } => {
                    before = Some((e.ts, batch.stack(of).to_vec(), of.in_kernel()))
                }
                What::Wakeup { .. } | What::SysEnter { .. } => {
                    let (ts, stack, kernel) = before.take().unwrap_or((e.ts, Vec::new(), 0));
                    assert_eq!(ts, e.ts, "a chain has the time of its event");
                    found.push((e.tid.0, stack, kernel));
                }
                _ => assert!(before.is_none()),
            }
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(quality.count(QualityCode::BadRecords), 0);
    found
}

/// An address as wide as the machine's.
fn narrow(long: usize, address: u64) -> u64 {
    if long == 8 { address } else { address & u64::from(u32::MAX) }
}

#[test]
fn chains_belong_to_the_event_before_them_on_every_machine() {
    for (big, long) in [(false, 4), (false, 8), (true, 4), (true, 8)] {
        let dat = open(FileSpec { big, long, ..FileSpec::new(7) }, |s| {
            // More addresses than the format says there are, and one more value that is no address.
            let frames: Vec<u64> = (0..10).map(|i| WAKE + i).chain([7]).collect();
            vec![
                s.page(1000)
                    .wakeup(1, 7, 8)
                    .kernel_stack(1, 7, 10, &frames)
                    .user_stack(1, 7, &[USER, USER + 1, 0, 0])
                    .sys_enter(1, 7, 202)
                    .user_stack(1, 7, &[USER, u64::MAX])
                    .wakeup(1, 0, 9)
                    .kernel_stack(1, 0, 1, &[CALLER])
                    .user_stack(1, 0, &[0; 8])
                    .wakeup(1, 0, 9)
                    .build(),
            ]
        });
        let of = |addresses: &[u64]| -> Vec<u64> {
            addresses.iter().map(|&a| narrow(long, a)).collect()
        };
        let long_chain: Vec<u64> = (0..10).map(|i| WAKE + i).chain([USER, USER + 1]).collect();
        let wanted =
            [(7, of(&long_chain), 10), (7, of(&[USER]), 0), (0, of(&[CALLER]), 1), (0, vec![], 0)];
        assert_eq!(chains(&dat), wanted, "big={big} long={long}");
        assert!(dat.info().capabilities.stacks);
    }
}

#[test]
fn a_chain_is_of_its_own_thread_and_of_an_event_without_one() {
    let dat = open(FileSpec::new(6), |s| {
        vec![
            s.page(1000)
                // An interrupt comes before the stack of the event is written.
                .wakeup(1, 7, 8)
                .sys_enter(1, 7, 1)
                .kernel_stack(1, 7, 1, &[WAKE])
                .kernel_stack(1, 7, 1, &[CALLER])
                .wakeup(1, 6, 8)
                .kernel_stack(1, 5, 1, &[WAKE])
                .build(),
        ]
    });
    let wanted = [(7, vec![CALLER], 1), (7, vec![WAKE], 1), (6, vec![], 0)];
    assert_eq!(chains(&dat), wanted);
}

#[test]
fn what_the_kernel_does_to_write_an_event_is_no_part_of_its_chain() {
    let dat = open(FileSpec::new(7), |s| {
        let page = s.page(1000).wakeup(1, 7, 8);
        vec![page.kernel_stack(1, 7, 3, &[RECORDER, WAKE, RECORDER]).build()]
    });
    assert_eq!(chains(&dat), [(7, vec![WAKE, RECORDER], 2)]);
}

#[test]
fn chains_on_the_next_page_and_in_the_next_batch_find_their_event() {
    let n = 3 * Batch::TARGET as u64;
    let dat =
        open(FileSpec::new(7), |s| {
            let mut pages = vec![s.page(0).wakeup(1, 7, 8).build()];
            pages.extend((1..n).map(|i| {
                s.page(i * 1000).kernel_stack(0, 7, 1, &[WAKE + i]).wakeup(1, 7, 8).build()
            }));
            pages
        });
    let found = chains(&dat);
    assert_eq!(found.len() as u64, n);
    // A batch must end somewhere, so at most this many chains are lost.
    let lost = found.iter().filter(|(_, chain, _)| chain.is_empty()).count();
    assert!(lost <= 1 + n as usize / Batch::TARGET, "{lost}");
    assert!(found.iter().zip(1..).all(|((_, c, _), i)| c.is_empty() || *c == [WAKE + i]));
}

#[test]
fn a_chain_that_says_it_is_longer_than_its_record_ends_with_it() {
    let dat = open(FileSpec::new(7), |s| {
        let page = s.page(1000).wakeup(1, 7, 8).kernel_stack(1, 7, u32::MAX, &[WAKE, CALLER]);
        vec![page.wakeup(1, 7, 8).kernel_stack(1, 7, 0, &[WAKE]).build()]
    });
    assert_eq!(chains(&dat), [(7, vec![WAKE, CALLER], 2), (7, vec![], 0)]);
}

#[test]
fn without_chains_nothing_is_said_of_them() {
    let dat = open(FileSpec::new(7), |s| vec![s.page(1000).wakeup(1, 7, 8).build()]);
    assert!(!dat.info().capabilities.stacks);
    assert_eq!(chains(&dat), [(7, vec![], 0)]);
}

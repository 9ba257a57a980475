//! Locks that threads try for between naps, in ways that a trace does not show.

use crate::estimate::Depth;
use crate::tests::estimated;
use holdup_attribution::Resource;
use holdup_testkit::Napping;

/// Two processes of one program compute in turn, each for nine naps of the other. That they take
/// turns is known only after some turns; without the lock all of them are saved.
#[test]
fn the_naps_before_the_lock_is_known_are_waits_for_it_too() {
    let turns = Napping::in_turn(12, Napping::TRY);
    let (_, program, found) = estimated(turns, Depth::Resources);
    let service = found.rows.iter().find(|row| row.resource == Resource::Service).unwrap();
    // Each computes for 55 of 122 ms.
    assert!((2.1..2.2).contains(&service.worth), "{service:?}");
    assert!(program.objects.iter().any(|o| o.waits > 90), "{:?}", program.objects);
}

//! Tests of `holdup-gate` from outside.

mod change_points;
mod false_alarms;
mod properties;
mod rounds;
mod scaling_alarms;
mod scipy;

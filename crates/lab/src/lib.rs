//! The lab: programs with one deliberate bottleneck, which they measure themselves.
//!
//! A [`Workload`] of the list [`WORKLOADS`] makes one class of bottleneck, as strongly as its
//! [`Settings`] say, and has a fixed variant whose settings remove the bottleneck. [`run`] runs it,
//! and returns what it [`Counted`]: the ground truth with which a diagnosis of a recording can be
//! compared. This crate does not depend on recordings or verdicts.

mod clock;
mod count;
mod make;
mod needs;
mod param;
mod run;
mod site;
mod table;

pub use clock::Pace;
pub use count::{Counted, SCHEMA, Tally};
pub use needs::{Lack, Need, cpus};
pub use param::{Param, ParamError, Settings, Unit, halves};
pub use run::{Order, run, work};
pub use site::Error;
pub use table::{COMMON, HEALTHY, WORKLOADS, Workload};

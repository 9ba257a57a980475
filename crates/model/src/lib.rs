//! What happens to a program as processors are added: pure functions of published models. No I/O,
//! no dependencies.
//!
//! | file | question | source |
//! |---|---|---|
//! | `lock` | what does one lock cost on N processors? | Bier and Vernon 1988 |
//! | `network` | several locks, or one that several may hold at once? | Reiser and Lavenberg 1980 |
//! | `classes` | threads of unlike habits? | Reiser and Lavenberg 1980 |
//! | `ladder` | the same work on 1, 2, 4 … processors: what grew? | Amdahl 1967, Karp and Flatt 1990 |
//! | `usl` | where does it stop growing? | Gunther 1993, 2007 |
//!
//! docs/models.md has the formulas, what they suppose, and when not to believe them.

mod classes;
mod ladder;
mod lock;
mod network;
mod usl;

pub use classes::{Class, Mix};
pub use ladder::{Ladder, Rung, amdahl_speedup};
pub use lock::{Lock, Measured, OPTIMISM, Prediction};
pub use network::{Network, Solution, Station};
pub use usl::{Interval, Usl};

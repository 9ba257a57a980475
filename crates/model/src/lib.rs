//! What happens to a program as processors are added: pure functions of published models. No I/O,
//! no dependencies.
//!
//! | file | question | source |
//! |---|---|---|
//! | `lock` | what does one lock cost on N processors? | Bier and Vernon 1988 |
//! | `arrivals` | how long was a lock held of which only waits are seen? | Sevcik, Mitrani 1981 |
//! | `network` | what do several locks cost, or a busy server? | Reiser, Lavenberg 1980 |
//! | `machine` | what if more threads than CPUs sleep for it? | Chandy et al. 1975 |
//! | `classes` | what if the threads are of unlike habits? | the same; Schweitzer 1979 |
//! | `ladder` | the same work on 1, 2, 4 … processors: what grew? | Amdahl 1967, Karp, Flatt 1990 |
//! | `usl` | where does it stop growing? | Gunther 1993, 2007 |
//!
//! docs/models.md has the formulas, what they assume, and when not to believe them.

mod arrivals;
mod classes;
mod ladder;
mod lock;
mod machine;
mod network;
mod usl;

pub use arrivals::Arrivals;
pub use classes::{Class, Mix, Served};
pub use ladder::{Ladder, Rung};
pub use lock::{Lock, Measured, OPTIMISM, Prediction};
pub use machine::Load;
pub use network::{Network, Solution, Station};
pub use usl::{Interval, Usl};

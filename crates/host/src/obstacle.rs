//! What prevents a recording, or a part of it, and what to do about it.

use serde::Serialize;
use std::fmt;

/// Something a recording lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// What it is, with the setting or file that shows it; a sentence without the full stop.
    pub what: String,
    /// What is lost because of it.
    pub costs: Costs,
    /// What helps, the simplest first; empty if nothing is known to help.
    pub ways_out: Vec<WayOut>,
}

/// What is lost by an obstacle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Costs {
    /// Everything: nothing can be recorded.
    Recording,
    /// A part, named in a sentence without the full stop.
    Part(String),
}

impl Costs {
    /// The loss in words.
    pub fn words(&self) -> &str {
        match self {
            Costs::Recording => "nothing can be recorded",
            Costs::Part(what) => what,
        }
    }
}

/// One way to remove an obstacle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct WayOut {
    /// What to do, in words.
    pub what: String,
    /// The shell commands that do it; empty if there are none.
    pub commands: Vec<String>,
}

impl WayOut {
    /// A way out by commands.
    pub fn commands(what: impl Into<String>, commands: &[&str]) -> WayOut {
        let commands = commands.iter().map(|c| (*c).to_owned()).collect();
        WayOut { what: what.into(), commands }
    }

    /// A way out that no command does.
    pub fn words(what: impl Into<String>) -> WayOut {
        WayOut::commands(what, &[])
    }
}

impl Obstacle {
    /// An obstacle that forbids the recording.
    pub fn stops(what: impl Into<String>, ways_out: Vec<WayOut>) -> Obstacle {
        Obstacle { what: what.into(), costs: Costs::Recording, ways_out }
    }

    /// An obstacle that costs a part of the diagnosis.
    pub fn costs(
        what: impl Into<String>,
        costs: impl Into<String>,
        ways_out: Vec<WayOut>,
    ) -> Obstacle {
        Obstacle { what: what.into(), costs: Costs::Part(costs.into()), ways_out }
    }
}

impl fmt::Display for Obstacle {
    /// For a message: the obstacle on one line, then each way out with its commands.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        for way in &self.ways_out {
            write!(f, "\n  way out: {}", way.what)?;
            for command in &way.commands {
                write!(f, "\n    {command}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_the_obstacle_on_a_line_and_the_way_out_below() {
        let ways = vec![
            WayOut::commands("mount it", &["sudo mount -t tracefs nodev /sys/kernel/tracing"]),
            WayOut::words("or ask whoever runs the machine"),
        ];
        let obstacle = Obstacle::stops("tracefs is not mounted", ways);
        assert_eq!(
            obstacle.to_string(),
            "tracefs is not mounted\n  way out: mount it\n    \
             sudo mount -t tracefs nodev /sys/kernel/tracing\n  \
             way out: or ask whoever runs the machine"
        );
    }
}

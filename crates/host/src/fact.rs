//! One thing that a recording depends on, and its state.

use crate::{Costs, Obstacle};
use serde::Serialize;
use std::fmt;

/// A thing a recording depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Its name, part of the JSON.
    pub name: &'static str,
    /// Its state.
    pub state: State,
}

/// The state of such a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "HostState")]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// The property is sufficient for any recording.
    Ok,
    /// The property limits recordings.
    Limited,
    /// The property is missing.
    Missing,
    /// It is not known whether the host has the property.
    Unknown,
}

impl fmt::Display for Word {
    /// As in the JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The state of a thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is sufficient for any recording.
    Ok {
        /// What was found.
        found: String,
    },
    /// It is limited.
    Limited(Obstacle),
    /// It is missing.
    Missing(Obstacle),
    /// It is unknown.
    Unknown {
        /// Why.
        why: String,
    },
}

impl State {
    /// Everything is fine.
    pub(crate) fn ok(found: impl Into<String>) -> State {
        State::Ok { found: found.into() }
    }

    /// The state is not known.
    pub(crate) fn unknown(why: impl Into<String>) -> State {
        State::Unknown { why: why.into() }
    }

    /// The state as one word.
    pub fn in_a_word(&self) -> Word {
        match self {
            State::Ok { .. } => Word::Ok,
            State::Limited(_) => Word::Limited,
            State::Missing(_) => Word::Missing,
            State::Unknown { .. } => Word::Unknown,
        }
    }

    /// What was found, or why nothing was; a sentence without the full stop.
    pub fn words(&self) -> &str {
        match self {
            State::Ok { found } => found,
            State::Limited(obstacle) | State::Missing(obstacle) => &obstacle.what,
            State::Unknown { why } => why,
        }
    }

    /// The obstacle, if there is one.
    pub fn obstacle(&self) -> Option<&Obstacle> {
        match self {
            State::Limited(obstacle) | State::Missing(obstacle) => Some(obstacle),
            State::Ok { .. } | State::Unknown { .. } => None,
        }
    }

    /// The obstacle, if it forbids the recording.
    pub(crate) fn stop(&self) -> Option<&Obstacle> {
        self.obstacle().filter(|o| o.costs == Costs::Recording)
    }
}

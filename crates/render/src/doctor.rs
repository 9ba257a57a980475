//! What a host allows a recorder: `holdup doctor`.

use crate::SCHEMA;
use crate::text::{self, TextOptions};
use holdup_host::{Costs, Fact, Obstacle, State, WayOut, Word, can_record};
use serde::Serialize;
use std::io::{self, Write};

/// The answer of `doctor` in JSON. It is about a host, not about a trace.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Doctor<'a> {
    /// Version of this format.
    schema: &'static str,
    /// The verb.
    command: &'static str,
    /// Whether `holdup record` works on this host, for this user; null if that could not be tested.
    can_record: Option<bool>,
    /// The properties of the host that a recording depends on, in the order in which a recorder
    /// meets them.
    rows: Vec<Row<'a>>,
}

/// A property of the host that a recording depends on.
#[derive(Serialize, schemars::JsonSchema)]
#[schemars(rename = "HostFact")]
struct Row<'a> {
    /// Name of the property.
    name: &'static str,
    /// State of the property.
    state: Word,
    /// What was found, or why nothing was found.
    found: &'a str,
    /// What the recording lacks because of the obstacle; null if there is no obstacle, or if this
    /// is unknown.
    costs: Option<&'a str>,
    /// Whether the obstacle prevents every recording.
    stops_recording: bool,
    /// Ways to remove the obstacle, the simplest first.
    ways_out: &'a [WayOut],
}

impl<'a> From<&'a Fact> for Row<'a> {
    fn from(fact: &'a Fact) -> Row<'a> {
        let obstacle = fact.state.obstacle();
        Row {
            name: fact.name,
            state: fact.state.in_a_word(),
            found: fact.state.words(),
            costs: obstacle.map(|o| o.costs.words()),
            stops_recording: obstacle.is_some_and(|o| o.costs == Costs::Recording),
            ways_out: obstacle.map_or(&[], |o| &o.ways_out),
        }
    }
}

/// Write `facts` as JSON, with a final newline.
pub fn write_json(facts: &[Fact], out: &mut dyn Write) -> io::Result<()> {
    let doctor = Doctor {
        schema: SCHEMA,
        command: "doctor",
        can_record: can_record(facts),
        rows: facts.iter().map(Row::from).collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &doctor)?;
    out.write_all(b"\n")
}

/// Write `facts` as text: whether recording works, what is available, and each obstacle with its
/// effect and its remedy, fatal obstacles first.
pub fn write_text(facts: &[Fact], options: &TextOptions, out: &mut dyn Write) -> io::Result<()> {
    let paint = options.paint();
    let works = can_record(facts);
    match works {
        Some(true) if facts.iter().any(|f| f.name == "threads" && f.state.obstacle().is_some()) => {
            let words = "holdup record works here, but in its recordings most threads have no name \
                         or number: for a diagnosis of the whole machine, apply the remedy below \
                         (threads).";
            text::prose(words, "", "", options, out)?;
        }
        Some(true) => writeln!(out, "holdup record works on this host.")?,
        Some(false) => {
            writeln!(out, "{}", paint.error("holdup record does not work on this host."))?;
        }
        None => {
            let words = "It could not be tested whether holdup record works on this host.";
            writeln!(out, "{}", paint.warning(words))?;
        }
    }
    if options.verbose {
        for fact in facts.iter().filter(|f| f.state.obstacle().is_none()) {
            let first = format!("{}: {}: ", fact.state.in_a_word(), fact.name);
            text::prose(fact.state.words(), &first, "    ", options, out)?;
        }
    } else if !options.quiet {
        let well = facts.iter().filter(|f| matches!(f.state, State::Ok { .. }));
        names(well, "OK: ", options, out)?;
        let unknown = || facts.iter().filter(|f| matches!(f.state, State::Unknown { .. }));
        if works == Some(false) {
            names(unknown(), "Unknown until recording works: ", options, out)?;
        } else {
            for fact in unknown() {
                let first = format!("Unknown: {}: ", fact.name);
                text::prose(fact.state.words(), &first, "    ", options, out)?;
            }
        }
    }
    let obstacles = facts.iter().filter_map(|f| Some((f, f.state.obstacle()?)));
    let mut obstacles: Vec<_> = obstacles.collect();
    obstacles.sort_by_key(|(_, obstacle)| obstacle.costs != Costs::Recording);
    let mut shown = Vec::new();
    for (fact, obstacle) in obstacles {
        writeln!(out)?;
        write_obstacle(fact, obstacle, &mut shown, options, out)?;
    }
    Ok(())
}

/// The names of `facts` in one line, if there are any.
fn names<'a>(
    facts: impl Iterator<Item = &'a Fact>,
    first: &str,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let names: Vec<&str> = facts.map(|f| f.name).collect();
    match names.is_empty() {
        true => Ok(()),
        false => text::prose(&names.join(", "), first, "    ", options, out),
    }
}

fn write_obstacle<'a>(
    fact: &'a Fact,
    obstacle: &'a Obstacle,
    shown: &mut Vec<(&'a WayOut, &'static str)>,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let paint = options.paint();
    let name = match obstacle.costs {
        Costs::Recording => paint.error(fact.name),
        Costs::Part(_) => paint.warning(fact.name),
    };
    writeln!(out, "{name} ({})", fact.state.in_a_word())?;
    text::prose(&obstacle.what, "  what     ", "           ", options, out)?;
    text::prose(obstacle.costs.words(), "  costs    ", "           ", options, out)?;
    for way in &obstacle.ways_out {
        // In a container several things are missing for the same reason.
        if let Some((_, of)) = shown.iter().find(|(known, _)| *known == way) {
            let words = format!("{} (see {of})", way.what);
            text::prose(&words, "  way out  ", "           ", options, out)?;
            continue;
        }
        text::prose(&way.what, "  way out  ", "           ", options, out)?;
        for command in &way.commands {
            writeln!(out, "             {}", text::escape(command))?;
        }
        shown.push((way, fact.name));
    }
    Ok(())
}

//! The names of figures and metrics.
//!
//! ```text
//!  syscalls.futex.blocked_ns        a figure: what one recording measured
//!  syscalls.futex.blocked_per_work  a metric: the same for a unit of work
//!  waits["mutex work"].wait_per_s   a key with spaces or dots stands in brackets
//!  runq.delay_p99                   a table of one row has no key
//! ```
//!
//! Figures are what a baseline stores: whole nanoseconds and counts. Metrics are what people
//! compare: figures divided by the time, the CPUs or the work of their recording. Both have one
//! grammar.

use std::fmt;

/// What kind of numbers a measure has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Nanoseconds that add up: twice the work has twice as many.
    Time,
    /// Counts, which add up too.
    Count,
    /// A longest or typical span in nanoseconds: it does not grow with the work.
    Span,
    /// A fraction, in billionths; as a metric in per cent. More of it is better.
    Part,
}

/// A column of figures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Measure {
    /// Its name in metrics: `wait`, `blocked`, `delay_p99` ...
    pub name: &'static str,
    /// The kind of its numbers.
    pub kind: Kind,
}

const fn time(name: &'static str) -> Measure {
    Measure { name, kind: Kind::Time }
}

const fn count(name: &'static str) -> Measure {
    Measure { name, kind: Kind::Count }
}

const fn span(name: &'static str) -> Measure {
    Measure { name, kind: Kind::Span }
}

const fn part(name: &'static str) -> Measure {
    Measure { name, kind: Kind::Part }
}

macro_rules! tables {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal, $keyed:literal, $needs:literal:
        [$($measure:expr),+];)+) => {
        /// A table of figures.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Table { $($(#[doc = $doc])+ $name),+ }

        impl Table {
            /// All, in the order of the verbs.
            pub const ALL: &'static [Table] = &[$(Table::$name),+];

            /// Its name in metrics.
            pub fn name(self) -> &'static str {
                match self { $(Table::$name => $word),+ }
            }

            /// Whether it has rows by key.
            pub fn keyed(self) -> bool {
                match self { $(Table::$name => $keyed),+ }
            }

            /// What must have been recorded for it, as in [`holdup_trace::Capabilities::list`].
            pub fn needs(self) -> &'static str {
                match self { $(Table::$name => $needs),+ }
            }

            /// Its measures. The first is the default of a metric that names none, and orders a
            /// comparison.
            pub fn measures(self) -> &'static [Measure] {
                match self { $(Table::$name => const { &[$($measure),+] }),+ }
            }
        }
    };
}

tables! {
    /// The capacity ledger; keys are its paths with dots: `idle.thread-sync`.
    Ledger = "ledger", true, "switches": [time("cpu")];
    /// System calls of the work, by name.
    Syscalls = "syscalls", true, "syscalls": [
        time("total"), time("cpu"), time("runnable"), time("blocked"), count("count"),
        count("errors"), span("max"), span("p99")
    ];
    /// What threads of the work waited for: all that counts as contention.
    Contention = "contention", false, "switches": [time("wait"), count("waits"), span("wait_max")];
    /// Waits by kind of object and program: `mutex server`, `pipe sh` ...
    Waits = "waits", true, "switches": [time("wait"), count("waits"), span("wait_max")];
    /// Kernel locks, all together.
    Lock = "lock", false, "contention": [time("wait"), count("contended"), span("wait_max")];
    /// Kernel locks by class or caller, and by type if neither is known.
    Locks = "locks", true, "contention": [time("wait"), count("contended"), span("wait_max")];
    /// CPU time by role of the process: its name without numbers.
    Procs = "procs", true, "switches": [
        time("cpu"), time("runnable"), time("blocked"), count("voluntary"), count("involuntary"),
        count("migrations")
    ];
    /// Context switches of the work.
    Switches = "switches", false, "switches": [
        count("all"), count("voluntary"), count("involuntary"), count("migrations")
    ];
    /// Waiting for a CPU: all threads of the machine except the kernel's.
    Runq = "runq", false, "wakeups": [
        time("delay"), count("delays"), span("delay_p50"), span("delay_p90"), span("delay_p99"),
        span("delay_max")
    ];
    /// Interrupts, softirqs and kernel work, by name.
    Irqs = "irqs", true, "irqs": [time("total"), count("count"), span("max")];
    /// Events whose meaning only the program knows: writes to trace_marker, probes.
    Events = "events", true, "": [count("count")];
    /// The same work on several numbers of CPUs, or by several numbers of threads (the keys): what
    /// fraction of the added CPUs or threads helped, and how long the work (or a unit of work)
    /// took. Only rounds ([`crate::rounds`]) have these figures, not a single recording.
    Scaling = "scaling", true, "": [part("efficiency"), span("time")];
}

impl Table {
    /// The table of this name.
    pub fn named(name: &str) -> Option<Table> {
        Table::ALL.iter().copied().find(|t| t.name() == name)
    }

    /// Its measure of this name.
    pub fn measure(self, name: &str) -> Option<Measure> {
        self.measures().iter().copied().find(|m| m.name == name)
    }
}

/// What a figure is divided by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Per {
    /// Nothing: the figure of the whole recording.
    Recording,
    /// The seconds of the recording.
    Second,
    /// CPUs x seconds, as a percentage: of capacity.
    Capacity,
    /// The units of work done.
    Work,
}

impl Per {
    fn suffix(self) -> &'static str {
        match self {
            Per::Recording => "",
            Per::Second => "per_s",
            Per::Capacity => "pct",
            Per::Work => "per_work",
        }
    }
}

/// The name of a figure.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Figure {
    /// Its table.
    pub table: Table,
    /// Its row; empty in a table of one row.
    pub key: String,
    /// Its column.
    pub measure: Measure,
}

/// The name of a metric: a figure and what it is divided by, or the verdict's class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Metric {
    /// A number.
    Number {
        /// What was measured.
        figure: Figure,
        /// What it is divided by.
        per: Per,
    },
    /// `verdict.class`: the bottleneck.
    Class,
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.row(f)?;
        let ns = match self.measure.kind {
            Kind::Count | Kind::Part => "",
            Kind::Time | Kind::Span => "_ns",
        };
        write!(f, ".{}{ns}", self.measure.name)
    }
}

impl Figure {
    /// The first measure of a row.
    pub fn first(table: Table, key: &str) -> Figure {
        Figure { table, key: key.to_owned(), measure: table.measures()[0] }
    }

    fn row(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.table.name())?;
        if self.key.is_empty() {
            return Ok(());
        }
        let plain = self.table == Table::Ledger || !self.key.contains('.');
        let word = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if plain && self.key.chars().all(word) {
            return write!(f, ".{}", self.key);
        }
        write!(f, "[\"{}\"]", self.key.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Metric::Number { figure, per } = self else { return f.write_str("verdict.class") };
        figure.row(f)?;
        let plain = matches!(figure.table, Table::Ledger | Table::Waits);
        match (per, figure.measure == figure.table.measures()[0]) {
            (Per::Recording, _) => write!(f, ".{}", figure.measure.name),
            // The suffix that is expected: `ledger.idle.io.pct`, `waits["mutex app"].per_work`.
            (per, true) if plain => write!(f, ".{}", per.suffix()),
            (per, _) => write!(f, ".{}_{}", figure.measure.name, per.suffix()),
        }
    }
}

/// Why a text is no metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown metric '{}': {why}", text.escape_default())]
pub struct UnknownMetric {
    /// The text.
    pub text: String,
    /// What is wrong, and the valid alternatives.
    pub why: String,
}

/// The text split into table, key and column.
fn cut(text: &str) -> Result<(&str, String, &str), String> {
    let end = text.find(['.', '[']).ok_or("a metric is TABLE.KEY.COLUMN")?;
    let (table, rest) = text.split_at(end);
    if let Some(quoted) = rest.strip_prefix("[\"") {
        let mut key = String::new();
        let mut chars = quoted.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => key.extend(chars.next().map(|(_, c)| c)),
                '"' => {
                    let column = quoted[at + 1..].strip_prefix("].");
                    return Ok((
                        table,
                        key,
                        column.ok_or("the key must be followed by \"].COLUMN")?,
                    ));
                }
                c => key.push(c),
            }
        }
        return Err("the key in [\"...\"] does not end".to_owned());
    }
    let rest = rest.strip_prefix('.').ok_or("a key in brackets must be in quotes: [\"...\"]")?;
    Ok(match rest.rsplit_once('.') {
        Some((key, column)) => (table, key.to_owned(), column),
        None => (table, String::new(), rest),
    })
}

/// The table's measure, and what it is divided by.
fn column(table: Table, text: &str) -> Option<(Measure, Per)> {
    if let Some(m) = table.measure(text) {
        return Some((m, Per::Recording));
    }
    for per in [Per::Second, Per::Work, Per::Capacity] {
        if text == per.suffix() {
            return Some((table.measures()[0], per));
        }
        let name = text.strip_suffix(per.suffix()).and_then(|t| t.strip_suffix('_'));
        if let Some(m) = name.and_then(|name| table.measure(name)) {
            return Some((m, per));
        }
    }
    None
}

impl Metric {
    /// Read a name.
    ///
    /// # Errors
    /// [`UnknownMetric`], which lists the valid names.
    pub fn parse(text: &str) -> Result<Metric, UnknownMetric> {
        let unknown = |why: String| UnknownMetric { text: text.to_owned(), why };
        let text = text.trim();
        if text == "verdict.class" {
            return Ok(Metric::Class);
        }
        let (name, key, rest) = cut(text).map_err(&unknown)?;
        let Some(table) = Table::named(name) else {
            let names: Vec<&str> = Table::ALL.iter().map(|t| t.name()).collect();
            let all = format!("the tables are {}, and verdict.class", names.join(", "));
            return Err(unknown(format!("there is no table '{}'; {all}", name.escape_default())));
        };
        if table.keyed() == key.is_empty() {
            return Err(unknown(match table.keyed() {
                true => format!("table '{name}' has several rows: write {name}[\"KEY\"].{rest}"),
                false => {
                    format!("table '{name}' has a single row, without a key: write {name}.{rest}")
                }
            }));
        }
        let Some((measure, per)) = column(table, rest) else {
            let names: Vec<&str> = table.measures().iter().map(|m| m.name).collect();
            return Err(unknown(format!(
                "table '{name}' has no column '{}'; the columns are {}, each also with _per_s, \
                 _per_work or _pct",
                rest.escape_default(),
                names.join(", ")
            )));
        };
        let adds_up = match measure.kind {
            Kind::Time | Kind::Count => None,
            Kind::Span => Some("a single duration, which is not a sum"),
            Kind::Part => Some("already a ratio"),
        };
        if let Some(what) = adds_up.filter(|_| per != Per::Recording) {
            let (name, suffix) = (measure.name, per.suffix());
            return Err(unknown(format!("'{name}' is {what}; write it without _{suffix}")));
        }
        if measure.kind == Kind::Count && per == Per::Capacity {
            return Err(unknown(format!("'{}' is a count, not a part of CPU time", measure.name)));
        }
        Ok(Metric::Number { figure: Figure { table, key, measure }, per })
    }

    /// The unit: `ns`, `ns/s`, `%`, `per s` ...
    pub fn unit(&self) -> &'static str {
        let Metric::Number { figure, per } = self else { return "" };
        match (figure.measure.kind, per) {
            (Kind::Part, _) => "%",
            (Kind::Count, Per::Recording) => "",
            (Kind::Count, Per::Second) => "/s",
            (Kind::Count, _) => "/unit",
            (_, Per::Recording) => "ns",
            (_, Per::Second) => "ns/s",
            (_, Per::Work) => "ns/unit",
            (_, Per::Capacity) => "%",
        }
    }
}

impl Figure {
    /// Read a name as [`Figure`] writes it.
    pub fn parse(text: &str) -> Option<Figure> {
        let (name, key, rest) = cut(text).ok()?;
        let table = Table::named(name)?;
        let named = |m: &&Measure| match m.kind {
            Kind::Count | Kind::Part => m.name == rest,
            Kind::Time | Kind::Span => rest.strip_suffix("_ns") == Some(m.name),
        };
        let measure = *table.measures().iter().find(named)?;
        (table.keyed() != key.is_empty()).then_some(Figure { table, key, measure })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in [
            "lock.wait_per_s",
            "locks[\"rwsem:W do_mmap\"].wait_max",
            "waits[\"mutex work\"].per_work",
            "syscalls.futex.blocked_per_work",
            "switches.involuntary_per_s",
            "runq.delay_p99",
            "ledger.idle.thread-sync.pct",
            "verdict.class",
            "events[\"ftrace:print\"].count",
            "scaling.4.efficiency",
            "scaling.4.time",
        ] {
            assert_eq!(Metric::parse(text).unwrap().to_string(), text);
        }
        // The first measure of a keyed table may be left out.
        let named = Metric::parse("waits[\"mutex work\"].wait_per_work").unwrap();
        assert_eq!(named, Metric::parse("waits[\"mutex work\"].per_work").unwrap());
        for figure in [
            "scaling.4.efficiency",
            "syscalls.futex.blocked_ns",
            "waits[\"a.b \\\" c\"].waits",
            "lock.wait_ns",
        ] {
            assert_eq!(Figure::parse(figure).unwrap().to_string(), figure);
        }
    }

    #[test]
    fn what_is_no_metric_is_said() {
        for (text, words) in [
            ("locks", "TABLE.KEY.COLUMN"),
            ("lokcs.wait", "the tables are ledger, "),
            ("syscalls.blocked", "write syscalls[\"KEY\"].blocked"),
            ("runq.all.delay", "has a single row"),
            ("runq.delay_p98", "the columns are delay, delays, delay_p50"),
            ("runq.delay_p99_per_s", "which is not a sum"),
            ("scaling.4.efficiency_per_s", "is already a ratio; write it without _per_s"),
            ("locks[\"a", "does not end"),
        ] {
            let error = Metric::parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}

//! `holdup locks`: from a trace, or from dumps of /proc/lock_stat.

use crate::cli::{LocksArgs, LocksBy, LocksEvents, LocksView};
use crate::code;
use crate::config::Config;
use crate::exit::{Result, usage};
use crate::tables::{ENTRIES, HISTS, missing, sort};
use crate::write;
use holdup_attribution::analyze;
use holdup_lockstat::LockStat;
use holdup_passes::{LockBy, LockKind, LockSource, Options};
use holdup_profile::KnowsCode;
use holdup_render::{Body, Format, Report, Table, TraceHead, schema};
use holdup_trace::{Capabilities, ErrorKind, SymbolTable};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Bytes that show whether a file is a dump of lock_stat.
const HEAD: u64 = 64;

/// Run the verb.
pub(crate) fn run(args: &LocksArgs) -> Result<()> {
    let by = group(args.by);
    sort(&args.table, &mut schema::locks(&[], by))?;
    let config = Config::new(&args.table.common)?.named_by(&args.symbols)?;
    if args.view != LocksView::Holdup && !matches!(config.format, Format::Text(_)) {
        return Err(usage(
            "--view changes text output only; JSON and CSV always have holdup's own columns",
        ));
    }
    if is_lock_stat(&config.trace) {
        if args.hist {
            return Err(usage("--hist: a dump of /proc/lock_stat has sums, not single waits"));
        }
        return lock_stat(args, config, by);
    }
    if args.before.is_some() {
        return Err(usage(format!(
            "--before: {} is not a dump of /proc/lock_stat",
            config.trace.display()
        )));
    }
    let reader = holdup_open::open(&config.trace)?;
    let mut options = config.options(&*reader)?;
    select(args, &mut options)?;
    let (analysis, code) = match by {
        LockBy::Lock if !args.hist => code::analyze_with_code(&*reader, &options, &args.symbols)?,
        _ => (analyze(&*reader, &options)?, None),
    };
    let source = match args.events {
        LocksEvents::Auto => analysis.lock_source(by),
        LocksEvents::Contention => LockSource::Contention,
        LocksEvents::Lockdep => LockSource::Lockdep,
    };
    write::write("locks", config, &*reader, &analysis, |reader, analysis, config| {
        let capabilities = &reader.info().capabilities;
        if args.hist {
            let most = config.entries(args.table.entries.entries, HISTS).unwrap_or(usize::MAX);
            let mut table = schema::hist(&analysis.lock_hists(by, source, most));
            table.missing = missing("locks", capabilities);
            table.notes = notes(&table, capabilities, by, source);
            return Ok(Body::Table(table));
        }
        let mut rows = analysis.locks_from(by, source);
        for row in &mut rows {
            let at = row.address.flatten();
            row.code = code.as_ref().zip(at).and_then(|(code, at)| code.lock(at)?.words());
        }
        let mut table = schema::locks(&rows, by);
        table.missing = missing("locks", capabilities);
        table.notes = notes(&table, capabilities, by, source);
        table.notes.extend(code.into_iter().flat_map(|code| code.remarks()));
        finish(table, args, config)
    })
}

fn finish(mut table: Table, args: &LocksArgs, config: &Config) -> Result<Body> {
    sort(&args.table, &mut table)?;
    table.view = view(args.view);
    table.entries = config.entries(args.table.entries.entries, ENTRIES);
    Ok(Body::Table(table))
}

fn group(by: LocksBy) -> LockBy {
    match by {
        LocksBy::Lock => LockBy::Lock,
        LocksBy::Class => LockBy::Class,
        LocksBy::Caller => LockBy::Caller,
        LocksBy::Type => LockBy::Type,
        LocksBy::Task => LockBy::Task,
    }
}

fn view(view: LocksView) -> &'static str {
    match view {
        LocksView::Holdup => "",
        LocksView::Aix => "aix",
        LocksView::Perf => "perf",
        LocksView::Solaris => "solaris",
        LocksView::LockStat => "lock_stat",
    }
}

fn select(args: &LocksArgs, options: &mut Options) -> Result<()> {
    for text in &args.types {
        let kinds = LockKind::parse(text).ok_or_else(|| {
            let known: Vec<&str> = LockKind::ALL.iter().map(|k| k.name()).collect();
            usage(format!(
                "--type: '{}' is not a type of lock; the types are {}",
                text.escape_default(),
                known.join(", ")
            ))
        })?;
        options.filter.lock_kinds.extend(kinds);
    }
    for text in &args.locks {
        let hex = text.strip_prefix("0x").unwrap_or(text);
        match u64::from_str_radix(hex, 16) {
            // Addresses are long; a short word of hex digits is a name (`dead`).
            Ok(address) if text.starts_with("0x") || hex.len() >= 8 => {
                options.filter.lock_addresses.push(address)
            }
            _ => options.filter.lock_names.push(text.clone()),
        }
    }
    if let Some(path) = &args.symbols.kallsyms {
        let text = fs::read(path).map_err(|e| ErrorKind::from(e).in_file(path))?;
        let symbols = SymbolTable::from_kallsyms(&text);
        if symbols.is_empty() {
            return Err(usage(format!(
                "--kallsyms: {}: no symbols; /proc/kallsyms shows addresses to root only",
                path.display()
            )));
        }
        options.symbols = Some(Arc::new(symbols));
    }
    Ok(())
}

/// What the table cannot show, and how to record it.
fn notes(
    table: &Table,
    capabilities: &Capabilities,
    by: LockBy,
    source: LockSource,
) -> Vec<String> {
    let mut notes = Vec::new();
    if !capabilities.contention && !capabilities.lockdep && table.rows.is_empty() {
        notes.push(
            "to record waits for kernel locks: holdup record --preset locks -g (Linux 5.19 or \
             newer)"
                .to_owned(),
        );
        return notes;
    }
    if source == LockSource::Contention {
        notes.push(
            "the kernel reports neither waits for an rwsem that spin while the owner of the rwsem \
             runs, nor waits for the test-and-set spinlocks of guests: these waits appear as \
             kernel CPU time"
                .to_owned(),
        );
    }
    if capabilities.lockdep && source == LockSource::Contention {
        notes.push(
            "on a kernel with lockdep every mutex_lock counts as contended: compare times, not \
             counts, or use --events lockdep"
                .to_owned(),
        );
    }
    if by == LockBy::Caller && !capabilities.stacks {
        notes.push(
            "no call chains were recorded (holdup record -g, perf record -g), so callers are not \
             known"
                .to_owned(),
        );
    }
    if !capabilities.switches {
        notes.push(
            "spinning and sleeping cannot be distinguished without sched:sched_switch".to_owned(),
        );
    }
    notes
}

// ---- /proc/lock_stat -----------------------------------------------------------------------

fn is_lock_stat(path: &Path) -> bool {
    let mut head = Vec::new();
    // An error here occurs again, with its message, when the trace is opened.
    path.is_file()
        && fs::File::open(path).is_ok_and(|f| f.take(HEAD).read_to_end(&mut head).is_ok())
        && holdup_lockstat::sniff(&head)
}

fn read(path: &Path) -> Result<LockStat> {
    let text = fs::read(path).map_err(|e| ErrorKind::from(e).in_file(path))?;
    let unreadable = |e: holdup_lockstat::Error| ErrorKind::Unsupported {
        what: e.to_string(),
        way_out: "cat /proc/lock_stat > FILE makes a dump".to_owned(),
    };
    Ok(LockStat::parse(&text).map_err(|e| unreadable(e).in_file(path))?)
}

fn lock_stat(args: &LocksArgs, config: Config, by: LockBy) -> Result<()> {
    let stat = read(&config.trace)?;
    let mut notes = Vec::new();
    let stat = match &args.before {
        None => {
            notes.push(
                "the figures are sums since the last reset of /proc/lock_stat; for the figures of \
                 an interval, name an earlier dump with --before"
                    .to_owned(),
            );
            stat
        }
        Some(path) => match stat.since(&read(path)?) {
            Some(between) => between,
            None => {
                notes.push(
                    "the counters of /proc/lock_stat were reset between the two dumps: the figures \
                     are the sums since the reset"
                        .to_owned(),
                );
                stat
            }
        },
    };
    let rows = stat.rows(by).ok_or_else(|| {
        usage(
            "--by: a dump of /proc/lock_stat has locks by class and by caller, not by type or \
             thread",
        )
    })?;
    notes.push(
        "a dump of /proc/lock_stat has no time stamps: rates, percentages of capacity, and what \
         threads did while they waited are not known"
            .to_owned(),
    );
    let mut table = schema::locks(&rows, by);
    if !args.locks.is_empty() {
        let at = table.column("name");
        table.rows.retain(|row| at.is_none_or(|at| args.locks.iter().any(|l| row[at].text() == l)));
    }
    table.notes = notes;
    let report = Report {
        command: "locks",
        trace: TraceHead::dump(&config.trace, format!("lock_stat {}", stat.version)),
        quality: Vec::new(),
        body: finish(table, args, &config)?,
    };
    config.output.write(&report, &config.format)
}

//! holdup: finds the bottleneck of a multiprocessor Linux system.

mod ascii;
mod choice;
mod cli;
mod code;
mod commands;
mod config;
mod cut;
mod defaults;
mod diagnose;
mod doctor;
mod events;
mod exit;
mod export;
mod files;
mod fleet;
mod gate;
mod guide;
mod info;
mod lab;
mod latency;
mod ledger;
mod locks;
mod man;
mod measured;
mod output;
mod page;
mod pager;
mod path;
mod phases;
mod places;
mod predict;
mod profile;
mod progress;
mod query;
mod record;
mod replay;
mod report;
mod rules;
mod summary;
mod syscalls;
mod tables;
mod thresholds;
mod unit;
mod units;
mod waits;
mod whatif;
mod window;
mod write;

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = defaults::added(cli::typed(std::env::args_os())).and_then(|words| {
        let cli = cli::Cli::of(words);
        if cli.no_pager {
            pager::off();
        }
        commands::run(&cli.command)
    });
    progress::end();
    let code = match done {
        Ok(code) => code,
        Err(error) => {
            let code = error.code();
            if code != exit::OK {
                let message = error.to_string();
                // Messages quote the trace, which may contain anything. The remedy for an obstacle
                // is on separate lines.
                let lines: Vec<_> = match error {
                    exit::Failure::Denied(_) => {
                        message.lines().map(holdup_render::escape).collect()
                    }
                    _ => vec![holdup_render::escape(&message)],
                };
                let _ = writeln!(std::io::stderr(), "holdup: {}", lines.join("\n"));
            }
            code
        }
    };
    ExitCode::from(code)
}

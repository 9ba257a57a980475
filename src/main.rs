//! holdup: says what holds a multiprocessor Linux system up.

mod cli;
mod commands;
mod config;
mod exit;
mod locks;
mod output;
mod window;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let code = match commands::run(&cli.command) {
        Ok(code) => code,
        Err(error) => {
            let code = exit::code(&error);
            if code != exit::OK {
                // Messages quote the trace, which may hold anything.
                let _ = writeln!(std::io::stderr(), "holdup: {}", holdup_render::escape(&format!("{error:#}")));
            }
            code
        }
    };
    ExitCode::from(code)
}

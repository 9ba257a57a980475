//! The rules, as a list and as manual pages.

use super::TextOptions;
use super::diagnosis::{WIDTH, wrapped};
use holdup_diagnose::Thresholds;
use holdup_diagnose::rules::{ALL, Rule, shared_thresholds};
use std::io::{self, Write};

/// One line per rule.
pub fn write_list(options: &TextOptions, out: &mut dyn Write) -> io::Result<()> {
    let columns = options.width.unwrap_or(WIDTH).clamp(60, 140);
    let names = ALL.iter().map(|r| r.id.len()).max().unwrap_or(0);
    for rule in ALL {
        wrapped(
            &rule.title(),
            &format!("{:names$}  ", rule.id),
            &" ".repeat(names + 2),
            columns,
            out,
        )?;
    }
    if !options.quiet {
        writeln!(
            out,
            "\nholdup rules ID shows one rule. Thresholds shared by all rules, for diagnose \
                --thresholds FILE:"
        )?;
        for t in shared_thresholds() {
            wrapped(
                &format!("{} {}: {}", t.default, t.unit, t.meaning),
                &format!("  {}  ", t.key),
                "      ",
                columns,
                out,
            )?;
        }
    }
    Ok(())
}

/// The manual page of one rule.
pub fn write_page(rule: &Rule, options: &TextOptions, out: &mut dyn Write) -> io::Result<()> {
    let paint = options.paint();
    let columns = options.width.unwrap_or(WIDTH).clamp(60, 140);
    writeln!(out, "{}", paint.title(format!("{} (class {})", rule.id, rule.class.id())))?;
    writeln!(out)?;
    for line in rule.manual().lines() {
        match line.strip_prefix("# ") {
            Some(heading) => writeln!(out, "{}", paint.title(heading))?,
            None => writeln!(out, "{}{line}", if line.is_empty() { "" } else { "  " })?,
        }
    }
    writeln!(out, "\n{}", paint.title("Needs"))?;
    writeln!(out, "  {}", rule.needs.join(", "))?;
    writeln!(out, "\n{}", paint.title("Thresholds"))?;
    for t in rule.thresholds {
        writeln!(out, "  {} = {} ({})", t.key, Thresholds::default().get(t), t.unit)?;
        wrapped(&format!("{}.", t.meaning), "      ", "      ", columns, out)?;
        wrapped(&format!("Source: {}.", t.source), "      ", "      ", columns, out)?;
    }
    writeln!(out, "\n{}", paint.title("Fixtures"))?;
    writeln!(
        out,
        "  the rule fires on fixtures/{}, but not on fixtures/{}",
        rule.fixtures.positive, rule.fixtures.negative
    )
}

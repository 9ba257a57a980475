//! The colours of text output.

use anstyle::{AnsiColor, Effects, Style};
use std::fmt::Display;

/// Styles that vanish when colour is off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    pub(crate) fn new(on: bool) -> Paint {
        Paint { on }
    }

    fn paint(self, style: Style, text: impl Display) -> String {
        if self.on { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    /// Titles.
    pub(crate) fn title(self, text: impl Display) -> String {
        self.paint(Style::new().effects(Effects::BOLD), text)
    }

    /// Column headers, footers, what is not recorded.
    pub(crate) fn dim(self, text: impl Display) -> String {
        self.paint(Style::new().effects(Effects::DIMMED), text)
    }

    /// A warning: figures may be inaccurate.
    pub(crate) fn warning(self, text: impl Display) -> String {
        self.paint(AnsiColor::Yellow.on_default().effects(Effects::BOLD), text)
    }

    /// An error: part of the trace is missing.
    pub(crate) fn error(self, text: impl Display) -> String {
        self.paint(AnsiColor::Red.on_default().effects(Effects::BOLD), text)
    }

    /// Bars.
    pub(crate) fn bar(self, text: impl Display) -> String {
        self.paint(AnsiColor::Cyan.on_default(), text)
    }
}

//! Aligns cells that are already text.

use super::escape::width;
use super::paint::Paint;
use std::io::{self, Write};

const GAP: usize = 2;

/// Heading of one column.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    /// Adjacent columns with the same group share a line above their titles.
    pub(crate) group: String,
    pub(crate) title: String,
    /// Shown below the title.
    pub(crate) unit: &'static str,
    pub(crate) left: bool,
    /// When space is short, columns with the highest rank are dropped first; 0 always stays.
    pub(crate) rank: u8,
}

/// Headings and rows of text.
#[derive(Default)]
pub(crate) struct Grid {
    pub(crate) heads: Vec<Head>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Grid {
    /// Drop columns by rank until the rest fits into `limit`; returns their names.
    pub(crate) fn fit(&mut self, limit: usize) -> Vec<String> {
        let mut dropped = Vec::new();
        while self.widths().iter().map(|w| w + GAP).sum::<usize>().saturating_sub(GAP) > limit {
            let Some(at) = (0..self.heads.len())
                .filter(|&i| self.heads[i].rank > 0)
                .max_by_key(|&i| self.heads[i].rank)
            else {
                break;
            };
            let head = self.heads.remove(at);
            for row in &mut self.rows {
                row.remove(at);
            }
            let group = head.group.split(" (").next().unwrap_or_default();
            dropped.push(format!("{group} {}", head.title).trim().to_owned());
        }
        dropped
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> =
            self.heads.iter().map(|h| width(&h.title).max(width(h.unit))).collect();
        for row in &self.rows {
            for (w, cell) in widths.iter_mut().zip(row) {
                *w = (*w).max(width(cell));
            }
        }
        for (start, end) in self.groups() {
            let span = widths[start..end].iter().sum::<usize>() + GAP * (end - start - 1);
            widths[end - 1] += width(&self.heads[start].group).saturating_sub(span);
        }
        widths
    }

    /// Ranges of columns with one non-empty group.
    fn groups(&self) -> Vec<(usize, usize)> {
        let mut groups: Vec<(usize, usize)> = Vec::new();
        for (i, head) in self.heads.iter().enumerate().filter(|(_, h)| !h.group.is_empty()) {
            match groups.last_mut() {
                Some((start, end)) if *end == i && self.heads[*start].group == head.group => {
                    *end = i + 1
                }
                _ => groups.push((i, i + 1)),
            }
        }
        groups
    }

    /// Write headings and rows.
    pub(crate) fn write(&self, paint: Paint, out: &mut dyn Write) -> io::Result<()> {
        let widths = self.widths();
        let groups = self.groups();
        if !groups.is_empty() {
            let mut line = String::new();
            let mut at = 0;
            for (start, end) in groups {
                let begin: usize = widths[..start].iter().map(|w| w + GAP).sum();
                let span = widths[start..end].iter().sum::<usize>() + GAP * (end - start - 1);
                line.push_str(&" ".repeat(begin - at));
                line.push_str(&centred(&self.heads[start].group, span));
                at = begin + span;
            }
            writeln!(out, "{}", paint.dim(line.trim_end()))?;
        }
        writeln!(
            out,
            "{}",
            paint.dim(self.line(self.heads.iter().map(|h| h.title.as_str()), &widths))
        )?;
        if self.heads.iter().any(|h| !h.unit.is_empty()) {
            writeln!(out, "{}", paint.dim(self.line(self.heads.iter().map(|h| h.unit), &widths)))?;
        }
        for row in &self.rows {
            writeln!(out, "{}", self.line(row.iter().map(String::as_str), &widths))?;
        }
        Ok(())
    }

    fn line<'a>(&self, cells: impl Iterator<Item = &'a str>, widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, head), w) in cells.zip(&self.heads).zip(widths) {
            let pad = " ".repeat(w.saturating_sub(width(cell)));
            if head.left {
                line.push_str(cell);
                line.push_str(&pad);
            } else {
                line.push_str(&pad);
                line.push_str(cell);
            }
            line.push_str(&" ".repeat(GAP));
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// `text` between dashes that fill `span`.
fn centred(text: &str, span: usize) -> String {
    let free = span.saturating_sub(width(text));
    if free < 4 {
        return format!("{}{text}{}", " ".repeat(free / 2), " ".repeat(free - free / 2));
    }
    let left = (free - 2) / 2;
    format!("{} {text} {}", "-".repeat(left), "-".repeat(free - 2 - left))
}

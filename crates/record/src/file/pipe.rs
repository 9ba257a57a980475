//! The beginning of a recording that goes through a pipe: everything that a file has in its header
//! and its sections, as records.
//!
//! perf ends the features with a feature of an unused number. Here this record is left out: each
//! version of perf uses another number, and rejects those of others.

use super::bytes::Bytes;
use super::host::Roots;
use super::{Description, Form, sections};
use holdup_perfdata::format::{self, feature, header, record};

/// The header and the records before the data.
pub(crate) fn head(description: &Description, roots: &Roots) -> Bytes {
    let mut b = Bytes::default();
    b.put(format::MAGIC[cfg!(target_endian = "big") as usize]).u64(header::PIPE_SIZE);
    for e in &description.events {
        b.record(record::HEADER_ATTR, 0, |b| {
            b.put(&e.attr);
            e.ids.iter().for_each(|&id| {
                b.u64(id);
            });
        });
    }
    for e in &description.events {
        // The name belongs to the event; any of its ids identifies it.
        b.record(record::EVENT_UPDATE, 0, |b| {
            b.u64(format::EVENT_UPDATE_NAME).u64(e.ids.first().copied().unwrap_or(0));
            b.name(e.name.as_bytes());
        });
    }
    for (number, section) in sections::of(description, Form::Pipe, roots) {
        match number {
            feature::TRACING_DATA => tracing_data(&mut b, &section),
            // Here they are records of their own.
            feature::BUILD_ID => {
                b.put(&section.0);
            }
            // A feature that is too long for a record (a list of very many events) is left out,
            // like in perf.
            _ => {
                b.record(record::HEADER_FEATURE, 0, |b| {
                    b.u64(number.into()).put(&section.0);
                });
            }
        }
    }
    b
}

/// The record, then the data that it announces.
fn tracing_data(b: &mut Bytes, section: &Bytes) {
    let size = section.0.len().next_multiple_of(8);
    b.record(record::HEADER_TRACING_DATA, 0, |b| {
        b.count(size);
    });
    b.put(&section.0).zeros(size - section.0.len());
}

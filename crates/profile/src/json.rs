//! Writes JSON piece by piece, because it may be larger than the memory.

use std::fmt::Display;
use std::io::{self, Write};

/// The output, and whether the next value needs a comma.
pub(crate) struct Json<'a> {
    out: &'a mut dyn Write,
    first: bool,
}

impl<'a> Json<'a> {
    pub(crate) fn new(out: &'a mut dyn Write) -> Json<'a> {
        Json { out, first: true }
    }

    fn separate(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.first, false) {
            self.out.write_all(b",")?;
        }
        Ok(())
    }

    /// Write a value of a list; the value is JSON already.
    pub(crate) fn item(&mut self, value: impl Display) -> io::Result<()> {
        self.separate()?;
        write!(self.out, "{value}")
    }

    /// Write a member of an object; the value is JSON already.
    pub(crate) fn member(&mut self, key: &str, value: impl Display) -> io::Result<()> {
        self.separate()?;
        write!(self.out, "\"{key}\":{value}")
    }

    /// Write a member of an object whose value is an object.
    pub(crate) fn object(
        &mut self,
        key: &str,
        write: impl FnOnce(&mut Json<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.nested(Some(key), b"{}", write)
    }

    /// Write a member of an object whose value is a list.
    pub(crate) fn list(
        &mut self,
        key: &str,
        write: impl FnOnce(&mut Json<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.nested(Some(key), b"[]", write)
    }

    /// Write a member of an object whose value is a list of values that are JSON already.
    pub(crate) fn column<T: Display>(
        &mut self,
        key: &str,
        values: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        self.list(key, |json| values.into_iter().try_for_each(|value| json.item(value)))
    }

    /// Write an object as a value of a list or as the whole document.
    pub(crate) fn record(
        &mut self,
        write: impl FnOnce(&mut Json<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.nested(None, b"{}", write)
    }

    fn nested(
        &mut self,
        key: Option<&str>,
        brackets: &[u8; 2],
        write: impl FnOnce(&mut Json<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.separate()?;
        if let Some(key) = key {
            write!(self.out, "\"{key}\":")?;
        }
        self.out.write_all(&brackets[..1])?;
        write(&mut Json { out: &mut *self.out, first: true })?;
        self.out.write_all(&brackets[1..])
    }
}

/// A number, or `null`.
pub(crate) struct Maybe<T>(pub(crate) Option<T>);

impl<T: Display> Display for Maybe<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("null"),
        }
    }
}

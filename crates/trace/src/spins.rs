//! What a recorder found in the code that it sampled: where threads spin.
//!
//! Only the bytes of the code tell whether a thread at an address spins, and the files with these
//! bytes are on the recorded machine. So the recorder looks at them at the end of a recording, and
//! the recording keeps the answer wherever it is moved.

use crate::mapping::BuildId;
use std::collections::BTreeMap;
use std::fmt::Write;

/// How an instruction belongs to a loop in which a thread spins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Spin {
    /// The instruction that tells the CPU that the thread spins (`pause`, `yield`), or the one
    /// after it.
    Pause,
    /// Another instruction of the loop around it. A thread that does not spin may run it too.
    Loop,
}

impl Spin {
    fn word(self) -> &'static str {
        match self {
            Spin::Pause => "pause",
            Spin::Loop => "loop",
        }
    }

    fn of_word(word: &str) -> Option<Spin> {
        [Spin::Pause, Spin::Loop].into_iter().find(|spin| spin.word() == word)
    }
}

/// A sampled place in a file at which threads spin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spot {
    /// How it belongs to the loop.
    pub spin: Spin,
    /// The function; empty if it has no name.
    pub function: String,
}

/// A file whose sampled code the recorder has looked at.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sampled {
    /// Its build id, if it has one.
    pub build: Option<BuildId>,
    /// By offset in the file: the places at which threads spin. At all others they do not.
    pub spots: BTreeMap<u64, Spot>,
}

/// The files with sampled code, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spins(pub BTreeMap<String, Sampled>);

/// The first line of the text.
const MAGIC: &str = "holdup spins 1";

impl Spins {
    /// As text, which [`Spins::parse`] reads.
    pub fn text(&self) -> String {
        let mut text = format!("{MAGIC}\n");
        let fits = |name: &str| !name.contains(char::is_control);
        for (name, file) in self.0.iter().filter(|(name, _)| fits(name)) {
            let build = file.build.map_or("-".to_owned(), |build| build.to_string());
            let _ = writeln!(text, "file {build} {name}");
            for (offset, spot) in &file.spots {
                let function = if fits(&spot.function) { &*spot.function } else { "" };
                let _ = writeln!(text, "{} {offset:x} {function}", spot.spin.word());
            }
        }
        text
    }

    /// Parses the text of [`Spins::text`]. Damaged lines and lines of unknown kinds are skipped;
    /// `None` if it is not such a text.
    pub fn parse(text: &[u8]) -> Option<Spins> {
        let text = String::from_utf8_lossy(text);
        let mut lines = text.lines();
        if lines.next()? != MAGIC {
            return None;
        }
        let (mut spins, mut last) = (Spins::default(), None);
        for line in lines {
            let mut words = line.splitn(3, ' ');
            let (Some(kind), Some(word), Some(rest)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            if kind == "file" {
                let file = Sampled { build: BuildId::of_hex(word), ..Sampled::default() };
                spins.0.insert(rest.to_owned(), file);
                last = Some(rest);
            } else if let (Some(spin), Ok(offset), Some(file)) = (
                Spin::of_word(kind),
                u64::from_str_radix(word, 16),
                last.and_then(|name| spins.0.get_mut(name)),
            ) {
                file.spots.insert(offset, Spot { spin, function: rest.to_owned() });
            }
        }
        Some(spins)
    }

    /// What is known of the byte at `offset` of a file: `None` if the recorder has not looked at
    /// it, `Some(None)` if threads do not spin there.
    pub fn at(&self, name: &str, build: Option<BuildId>, offset: u64) -> Option<Option<&Spot>> {
        let file = self.0.get(name)?;
        let is_other = matches!((file.build, build), (Some(a), Some(b)) if a != b);
        (!is_other).then(|| file.spots.get(&offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_read_again() {
        let spot = |spin, function: &str| Spot { spin, function: function.to_owned() };
        let spots = [(0x12, spot(Spin::Pause, "lock(a b)")), (0x20, spot(Spin::Loop, ""))];
        let build = BuildId::new(&[1, 2, 0xab]);
        let spins = Spins(
            [
                ("/a b".to_owned(), Sampled { build, spots: spots.into_iter().collect() }),
                ("/c".to_owned(), Sampled::default()),
            ]
            .into_iter()
            .collect(),
        );
        assert_eq!(Spins::parse(spins.text().as_bytes()), Some(spins.clone()));
        assert!(spins.at("/a b", None, 0x12).unwrap().is_some_and(|s| s.spin == Spin::Pause));
        assert_eq!(spins.at("/c", build, 0x12), Some(None), "looked at, and no spinning");
        assert_eq!(spins.at("/a b", BuildId::new(&[9]), 0x12), None, "another build");
        assert_eq!(spins.at("/d", None, 0x12), None);
    }

    #[test]
    fn damaged_lines_tell_nothing() {
        assert_eq!(Spins::parse(b"something else"), None);
        let text = format!("{MAGIC}\npause 1 f\nfile\nfile - /a\npause x f\nother 1 f\nloop 2 g");
        let spins = Spins::parse(text.as_bytes()).unwrap();
        assert_eq!(spins.0.len(), 1);
        assert_eq!(spins.0["/a"].spots.keys().collect::<Vec<_>>(), [&2]);
    }
}

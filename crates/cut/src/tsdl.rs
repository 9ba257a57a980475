//! The metadata of CTF without names.
//!
//! What the tracer says of the machine and of itself is removed, except for what is listed here.
//! Comments are removed too, and so are user-defined names of events and their fields. Types, and
//! what the kernel calls its events, stay: the bytes of the streams mean nothing without.

use crate::fields::is_private;
use crate::names::Names;
use holdup_trace::EventKind;
use std::ops::Range;

/// Entries of `env` that stay: the identity of the tracer, which determines how its events are
/// read.
const FACTS: &[&str] = &[
    "domain",
    "sysname",
    "tracer_name",
    "tracer_major",
    "tracer_minor",
    "tracer_patchlevel",
    "architecture_bit_width",
    "holdup_cut",
];
/// Entries of `env` of which only the numbers and the machine type stay.
const VERSIONS: &[&str] = &["kernel_release", "release", "machine", "architecture"];
/// Machine types.
const MACHINES: &[&str] =
    &["x86_64", "aarch64", "arm64", "amd64", "i686", "armv7l", "armhf", "riscv64", "ppc64le"];
/// Tracers' names of clocks.
const CLOCKS: &[&[u8]] = &[b"monotonic", b"perf_clock", b"boottime", b"monotonic_raw", b"realtime"];
/// Prefixes before the kernel's own name of an event.
const BEFORE: &[&str] = &[
    "syscall_entry_",
    "syscall_exit_",
    "compat_syscall_entry_",
    "compat_syscall_exit_",
    "compat_sys_",
    "sys_",
    "exit_syscall",
    "lttng_statedump_",
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Blank,
    Comment,
    Word,
    Number,
    Text,
    Mark(u8),
}

struct Token {
    kind: Kind,
    at: Range<usize>,
}

/// What the innermost braces around a word belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Fields,
    /// A type, whose words belong to the language.
    Properties,
    /// The values of an enumeration, which have names.
    Values,
}

/// Rewrites metadata.
struct Writer<'a> {
    text: &'a [u8],
    /// The tokens that are neither blank nor comment.
    tokens: Vec<Token>,
    /// Ranges of bytes, and their replacements.
    other: Vec<(Range<usize>, Vec<u8>)>,
    names: &'a mut Names,
}

/// `text` without names.
pub(crate) fn nameless(text: &[u8], names: &mut Names) -> Vec<u8> {
    let mut other = Vec::new();
    let mut tokens = Vec::new();
    for token in all(text) {
        match token.kind {
            Kind::Blank => {}
            Kind::Comment if token.at.start == 0 && text.starts_with(b"/* CTF 1.8 */") => {}
            Kind::Comment => other.push((token.at, b" ".to_vec())),
            _ => tokens.push(token),
        }
    }
    let mut writer = Writer { text, tokens, other, names };
    writer.blocks();
    writer.written()
}

/// The tokens of the text, including blanks and comments.
fn all(text: &[u8]) -> Vec<Token> {
    let (mut at, mut tokens) = (0, Vec::new());
    while let Some(&first) = text.get(at) {
        let rest = &text[at..];
        let to = |end: &[u8]| {
            let found = memchr::memmem::find(&rest[2.min(rest.len())..], end);
            found.map_or(rest.len(), |n| 2 + n + end.len())
        };
        let is_word = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'_' || **b >= 0x80;
        let (kind, len) = match rest {
            [b'/', b'*', ..] => (Kind::Comment, to(b"*/")),
            [b'/', b'/', ..] => (Kind::Comment, to(b"\n")),
            [b'"' | b'\'', ..] => (Kind::Text, quoted(rest)),
            [b'0'..=b'9', ..] => (Kind::Number, rest.iter().take_while(is_word).count()),
            [b, ..] if is_word(&b) => (Kind::Word, rest.iter().take_while(is_word).count()),
            [b, ..] if b.is_ascii_whitespace() || *b == 0 => (Kind::Blank, 1),
            _ => (Kind::Mark(first), 1),
        };
        tokens.push(Token { kind, at: at..at + len.max(1) });
        at += len.max(1);
    }
    tokens
}

/// Length in bytes of a string with its quotes.
fn quoted(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&b) = text.get(at) {
        at += if b == b'\\' { 2 } else { 1 };
        if b == text[0] {
            break;
        }
    }
    at.min(text.len())
}

impl Writer<'_> {
    fn word(&self, token: usize) -> &[u8] {
        self.tokens.get(token).map_or(&[], |t| &self.text[t.at.clone()])
    }

    fn is(&self, token: usize, mark: u8) -> bool {
        self.tokens.get(token).is_some_and(|t| t.kind == Kind::Mark(mark))
    }

    fn kind(&self, token: usize) -> Option<Kind> {
        self.tokens.get(token).map(|t| t.kind)
    }

    /// The token after the bracket that closes the one at `open`.
    fn behind(&self, open: usize) -> usize {
        let mut depth = 0usize;
        for token in open..self.tokens.len() {
            depth += self.is(token, b'{') as usize;
            if self.is(token, b'}') {
                depth -= 1;
                if depth == 0 {
                    return token + 1;
                }
            }
        }
        self.tokens.len()
    }

    /// Process everything, block by block.
    fn blocks(&mut self) {
        let mut at = 0;
        while at < self.tokens.len() {
            let block = self.is(at + 1, b'{');
            let end = if block { self.behind(at + 1) } else { at + 1 };
            match self.word(at) {
                b"env" if block => self.env(at + 2..end),
                b"clock" if block => self.clock(at + 2..end),
                b"event" if block => self.event(at + 2..end),
                b"trace" | b"stream" | b"struct" | b"variant" | b"typealias" | b"typedef" => {
                    // They contain names of clocks.
                    self.clock_names(at..end);
                }
                b"callsite" if block => self.drop(at..end),
                _ => self.clock_names(at..end),
            }
            at = end;
        }
    }

    /// Remove tokens.
    fn drop(&mut self, range: Range<usize>) {
        let (Some(first), Some(last)) =
            (self.tokens.get(range.start), self.tokens.get(range.end.saturating_sub(1)))
        else {
            return;
        };
        self.other.push((first.at.start..last.at.end, Vec::new()));
    }

    fn replace(&mut self, token: usize, with: Vec<u8>) {
        if let Some(token) = self.tokens.get(token) {
            self.other.push((token.at.clone(), with));
        }
    }

    /// Replace the words of a token, except for the underscore that LTTng puts before names.
    fn rename(&mut self, token: usize) {
        let mut word = self.word(token).to_vec();
        let start = word.iter().take_while(|b| matches!(b, b'_' | b'"' | b'\'')).count();
        // Replacements are no shorter than the words that have a meaning here.
        self.names.replace(&mut word[start..]);
        self.replace(token, word);
    }

    /// Entries of a block, each from its key to its semicolon.
    fn entries(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let (mut entries, mut start, mut depth) = (Vec::new(), range.start, 0usize);
        for token in range {
            depth += self.is(token, b'{') as usize;
            depth = depth.saturating_sub(self.is(token, b'}') as usize);
            if depth == 0 && self.is(token, b';') {
                entries.push(start..token + 1);
                start = token + 1;
            }
        }
        entries
    }

    fn env(&mut self, range: Range<usize>) {
        for entry in self.entries(range) {
            let key = String::from_utf8_lossy(self.word(entry.start)).into_owned();
            let value = entry.start + 2;
            let is_number = self.kind(value) == Some(Kind::Number);
            if FACTS.contains(&&*key) && (is_number || self.is_plain(value)) {
                continue;
            }
            if VERSIONS.contains(&&*key) && self.kind(value) == Some(Kind::Text) {
                let noted = version(self.word(value));
                self.replace(value, noted);
                continue;
            }
            self.drop(entry);
        }
    }

    /// Whether the string is a tracer's own name or version.
    fn is_plain(&self, token: usize) -> bool {
        const NAMES: &[&[u8]] =
            &[b"kernel", b"ust", b"Linux", b"lttng-modules", b"lttng-ust", b"perf", b"barectf"];
        let text = self.word(token);
        let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or(&[]);
        NAMES.contains(&inner)
            || inner.starts_with(b"holdup cut ")
            || !inner.is_empty() && inner.iter().all(|b| b.is_ascii_digit() || *b == b'.')
    }

    fn clock(&mut self, range: Range<usize>) {
        for entry in self.entries(range) {
            let value = entry.start + 2;
            match (self.word(entry.start), self.kind(value)) {
                (b"uuid", Some(Kind::Text)) => {
                    let number = self.uuid(value);
                    self.replace(value, number);
                }
                (b"name", _) => {
                    let name = self.word(value);
                    let name = name.strip_prefix(b"\"").unwrap_or(name);
                    let name = name.strip_suffix(b"\"").unwrap_or(name);
                    if !CLOCKS.contains(&name) {
                        self.rename(value);
                    }
                }
                (_, Some(Kind::Text)) => self.drop(entry),
                _ => {}
            }
        }
    }

    /// A replacement for the clock's uuid, which identifies a boot of the machine.
    fn uuid(&mut self, token: usize) -> Vec<u8> {
        // The same clock in other traces of the recording must stay the same.
        let mut letters = self.word(token).to_vec();
        self.names.replace(&mut letters);
        let sum = letters.iter().fold(0u64, |n, &b| n.wrapping_mul(31).wrapping_add(b.into()));
        format!("\"00000000-0000-4000-8000-{:012x}\"", sum & 0xffff_ffff_ffff).into_bytes()
    }

    /// Replace names of clocks in `clock.NAME.value`.
    fn clock_names(&mut self, range: Range<usize>) {
        for at in range {
            let path = self.word(at) == b"clock" && self.is(at + 1, b'.') && self.is(at + 3, b'.');
            if path && !CLOCKS.contains(&self.word(at + 2)) {
                self.rename(at + 2);
            }
        }
    }

    fn event(&mut self, range: Range<usize>) {
        self.clock_names(range.clone());
        let mut known = true;
        for entry in self.entries(range.clone()) {
            let value = entry.start + 2;
            match self.word(entry.start) {
                b"name" => {
                    let name = self.word(value).to_vec();
                    let name = String::from_utf8_lossy(&name).into_owned();
                    known = is_of_kernel(name.trim_matches('"'));
                    if !known {
                        self.rename(value);
                    }
                }
                b"model" => self.drop(entry),
                _ => {}
            }
        }
        if !known {
            self.fields(range);
        }
    }

    /// Replace names of fields and of enumeration values.
    fn fields(&mut self, range: Range<usize>) {
        let (mut open, mut is_enum): (Vec<Inside>, bool) = (Vec::new(), false);
        let start = range.clone().find(|&at| self.word(at) == b"fields");
        for at in start.unwrap_or(range.end)..range.end {
            let before = at.checked_sub(1);
            let here = open.last().copied().unwrap_or(Inside::Fields);
            if self.is(at, b'{') {
                let head = before.map_or(&b""[..], |b| self.word(b));
                open.push(match head {
                    b"integer" | b"string" | b"floating_point" => Inside::Properties,
                    _ if std::mem::take(&mut is_enum) => Inside::Values,
                    _ => Inside::Fields,
                });
            } else if self.is(at, b'}') {
                open.pop();
            } else if self.word(at) == b"enum" {
                is_enum = true;
            } else if here == Inside::Values {
                if matches!(self.kind(at), Some(Kind::Word | Kind::Text)) {
                    self.rename(at);
                }
            } else if self.kind(at) == Some(Kind::Word) && here == Inside::Fields {
                let ends = self.is(at + 1, b';') || self.is(at + 1, b'[') || self.is(at + 1, b',');
                let typed = before.is_some_and(|b| {
                    self.kind(b) == Some(Kind::Word)
                        || self.is(b, b'}')
                        || self.is(b, b'>')
                        || self.is(b, b',')
                });
                let length = before.is_some_and(|b| self.is(b, b'['));
                let tag = before.is_some_and(|b| self.is(b, b'<')) && self.is(at + 1, b'>');
                if ends && typed || length || tag {
                    self.rename(at);
                }
            }
        }
    }

    /// The text with all replacements.
    fn written(mut self) -> Vec<u8> {
        self.other.sort_by_key(|(at, _)| (at.start, std::cmp::Reverse(at.end)));
        let (mut out, mut at) = (Vec::with_capacity(self.text.len()), 0);
        for (range, with) in self.other {
            if range.start < at {
                continue;
            }
            out.extend_from_slice(&self.text[at..range.start]);
            out.extend(with);
            at = range.end;
        }
        out.extend_from_slice(&self.text[at..]);
        out
    }
}

/// `"6.1.0-amd64"` of `"6.1.0-56-acme-amd64"`.
fn version(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text).into_owned();
    let text = text.trim_matches('"');
    let numbers = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let machine = MACHINES.iter().find(|m| text.contains(**m)).copied().unwrap_or("");
    let dash = if numbers > 0 && !machine.is_empty() { "-" } else { "" };
    format!("\"{}{dash}{machine}\"", &text[..numbers]).into_bytes()
}

/// Whether an event of this name belongs to the kernel or the tracer.
fn is_of_kernel(name: &str) -> bool {
    let (system, short) = name.split_once(':').unwrap_or(("", name));
    let known = BEFORE.iter().any(|before| {
        let call = short.strip_prefix(before);
        call.is_some_and(|c| {
            c.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        })
    });
    let word = |s: &str| s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    word(system)
        && !is_private(system)
        && (known || EventKind::of_lttng(short).is_some() || holdup_perfetto::is_event(short))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nameless(text: &str) -> String {
        String::from_utf8(super::nameless(text.as_bytes(), &mut Names::default())).unwrap()
    }

    #[test]
    fn facts_about_the_machine_go() {
        let text = "/* CTF 1.8 */\nenv { hostname = \"acme\"; domain = \"kernel\"; \
            kernel_release = \"6.1.0-acme-amd64\"; tracer_major = 2; };\n\
            clock { name = \"monotonic\"; uuid = \"be7bda01-6038-4da4-8662-0779c68fb040\"; \
            description = \"of acme\"; freq = 1; /* acme */ };\n";
        let made = nameless(text);
        assert!(!made.contains("acme") && !made.contains("be7bda01"), "{made}");
        for stays in
            ["/* CTF 1.8 */", "domain = \"kernel\"", "\"6.1.0-amd64\"", "major = 2", "freq"]
        {
            assert!(made.contains(stays), "{made}");
        }
    }

    #[test]
    fn events_that_somebody_made_have_other_names() {
        let known = "event { name = \"sched_switch\"; id = 1; fields := struct { \
            integer { size = 8; encoding = UTF8; } _prev_comm[16]; }; };\n";
        assert_eq!(nameless(known), known);
        let text = "event { name = \"acme_probe\"; id = 1; fields := struct { \
            integer { size = 8; encoding = none; } _acme_len; string _acme; \
            enum : integer { size = 8; } { \"acme_a\" = 0, acme_b = 1 } tag; \
            variant <tag> { string acme_a; string acme_b; } v; \
            uint8_t _x[_acme_len]; }; };\n";
        let made = nameless(text);
        assert!(!made.contains("acme"), "{made}");
        assert_eq!(made.len(), text.len());
        for stays in ["size = 8", "encoding = none", "string", "variant <"] {
            assert!(made.contains(stays), "{stays}: {made}");
        }
    }

    #[test]
    fn text_that_ends_anywhere_is_no_harm() {
        let text = "/* CTF 1.8 */ env { a = \"\\\"\"; }; \
            clock { uuid = \"x\"; map = clock.a.value; }; \
            event { name = \"x\"; fields := struct { enum { a = 1 } b; string c[d]; }; };";
        for n in 0..text.len() {
            nameless(&text[..n]);
            nameless(&text[n..]);
        }
    }
}

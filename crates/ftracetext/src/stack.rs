//! The call chain of an event: the lines after it, one frame each.
//!
//! ```text
//! prog 8 [000] 10.000001: sched:sched_switch: …     prog-8 [000] d..2. 10.000001: sched_switch: …
//!      ffffffff81a2e schedule+0x32 ([kernel])       prog-8 [000] d..2. 10.000003: <stack trace>
//!               1377 work+0x17 (/usr/bin/prog)       => schedule
//! ```
//!
//! perf prints a chain below its event. The kernel records it as a separate event that follows on
//! the same CPU; events of other CPUs may come in between. Either way the text has the functions'
//! names, so no files are needed. A chain is read together with its event, by looking ahead.

use crate::line::{Line, Other, Syntax, other, parse};
use crate::lines::line_end;
use crate::scan::{blank, hex, trim};
use holdup_trace::{Batch, Frame, FrameName, LocalNames, StackRef, is_recorder};

/// Most frames of a chain that are kept.
const DEEPEST: usize = u16::MAX as usize;

/// Lines of other CPUs, chains included, that may come between an event and its chain.
const ASTRAY: usize = 512;

/// A frame as its line describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Spelt<'a> {
    /// 0 if there is none.
    pub(crate) address: u64,
    /// The function without the offset; empty if the line does not name it.
    pub(crate) function: &'a [u8],
    /// How far into the function the address is; `None` if the line does not say.
    pub(crate) offset: Option<u64>,
    /// The file; empty if the line does not name it.
    pub(crate) dso: &'a [u8],
    /// Whether it was inlined into the function of the next frame, which has the same address.
    pub(crate) inlined: bool,
}

/// Parse the frame of a line.
pub(crate) fn spelt(syntax: Syntax, line: &[u8]) -> Option<Spelt<'_>> {
    let text = trim(line);
    match syntax {
        Syntax::Perf => of_perf(text),
        Syntax::Kernel => Some(of_kernel(trim(text.strip_prefix(b"=>")?))),
    }
}

/// `ffffffff813af60a update_se+0x13a ([kernel.kallsyms])`; everything except the address may be
/// missing.
fn of_perf(text: &[u8]) -> Option<Spelt<'_>> {
    let (address, n) = hex(text)?;
    let rest = match text.get(n) {
        None => &b""[..],
        Some(&b) if blank(b) => trim(&text[n..]),
        Some(_) => return None,
    };
    let (rest, inlined) = match rest.strip_suffix(b"(inlined)") {
        Some(rest) => (trim(rest), true),
        None => (rest, false),
    };
    let (function, dso) = split(rest);
    let (function, offset) = without_offset(function);
    let (dso, _) = without_offset(dso);
    Some(Spelt { address, function: known(function), offset, dso: known(dso), inlined })
}

/// `vfs_read`, `vfs_read (ffffffff812d)`, `vfs_read+0x9c/0x2d0 [ext4] <ffffffff812d>`,
/// `/usr/lib/libc.so.6[+0x98531]`, `<00007f12…>`, `ffffffff812d`.
fn of_kernel(text: &[u8]) -> Spelt<'_> {
    let whole = |text: &[u8]| {
        let digits = text.strip_prefix(b"0x").unwrap_or(text);
        // Names of functions may look like short numbers.
        let is_long = digits.len() < text.len() || digits.len() >= 8;
        hex(digits).filter(|(_, n)| is_long && *n == digits.len()).map(|(address, _)| address)
    };
    // The address comes last, alone or in brackets.
    let (name, address) = match text.iter().rposition(|&b| blank(b)) {
        Some(at) => match bracketed(&text[at + 1..]).and_then(whole) {
            Some(address) => (trim(&text[..at]), address),
            None => (text, 0),
        },
        None => match whole(bracketed(text).unwrap_or(text)) {
            Some(address) => return Spelt { address, ..Spelt::default() },
            None => (text, 0),
        },
    };
    if name.starts_with(b"/") {
        let dso = name.iter().rposition(|&b| b == b'[').map_or(name, |at| &name[..at]);
        return Spelt { address, dso, ..Spelt::default() };
    }
    // The module comes after the function.
    let (name, dso) = match name.iter().rposition(|&b| blank(b)) {
        Some(at) if name.ends_with(b"]") => (trim(&name[..at]), &name[at + 1..]),
        _ => (name, &b""[..]),
    };
    let name = match name.iter().rposition(|&b| b == b'/') {
        Some(at) if name[at..].starts_with(b"/0x") => &name[..at],
        _ => name,
    };
    let (function, offset) = without_offset(name);
    let function = if function == b"??" { b"" } else { function };
    Spelt { address, function, offset, dso, ..Spelt::default() }
}

/// What is in the brackets of `(text)` and `<text>`.
fn bracketed(text: &[u8]) -> Option<&[u8]> {
    let round = text.strip_prefix(b"(").and_then(|t| t.strip_suffix(b")"));
    round.or_else(|| text.strip_prefix(b"<").and_then(|t| t.strip_suffix(b">")))
}

/// The name; empty if it is perf's placeholder for an unknown one.
fn known(name: &[u8]) -> &[u8] {
    if name == b"[unknown]" { b"" } else { name }
}

/// A name without the offset in it: `work` and 23 of `work+0x17`.
fn without_offset(name: &[u8]) -> (&[u8], Option<u64>) {
    if let Some(at) = memchr::memmem::rfind(name, b"+0x")
        && let Some((offset, n)) = hex(&name[at + 3..])
        && at + 3 + n == name.len()
    {
        return (&name[..at], Some(offset));
    }
    (name, None)
}

/// Function and file of `function (file)`. Functions may contain spaces and brackets, as in C++,
/// and so may names of files: `(/tmp/prog (deleted))`.
fn split(text: &[u8]) -> (&[u8], &[u8]) {
    let Some(inner) = text.strip_suffix(b")") else { return (text, b"") };
    let apart = |at: usize| (&text[..at], &inner[at + 2..]);
    if text.starts_with(b"[unknown] (") {
        return apart(b"[unknown]".len());
    }
    // An offset always ends the function's name.
    let mut from = 0;
    while let Some(at) = memchr::memmem::find(&text[from..], b"+0x").map(|at| from + at) {
        match hex(&text[at + 3..]) {
            Some((_, n)) if text[at + 3 + n..].starts_with(b" (") => return apart(at + 3 + n),
            _ => from = at + 3,
        }
    }
    let last = |what: &[u8]| memchr::memmem::rfind(text, what);
    if let Some(at) = last(b" (/").max(last(b" ([")).or_else(|| last(b" (")) {
        return apart(at);
    }
    match inner {
        [b'(', dso @ ..] if matches!(dso, [b'/' | b'[', ..]) => (b"", dso),
        _ => (text, b""),
    }
}

impl Spelt<'_> {
    /// Whether the code is the kernel's. The vsyscall page is in the upper half but belongs to user
    /// code.
    fn is_kernel(&self) -> bool {
        self.dso.starts_with(b"[kernel")
            || Frame::by_half(self.address).kernel && self.dso != b"[vsyscall]"
    }
}

/// Frames remembered; a power of two.
const SLOTS: usize = 1024;

/// A line read before, and its frame.
type Seen<'a> = (&'a [u8], Option<(Frame, FrameName)>);

/// Reads chains of one part of the text.
pub(crate) struct Chains<'a> {
    text: &'a [u8],
    syntax: Syntax,
    /// Recently read lines, by their address: few lines of a chain are new.
    seen: Vec<Seen<'a>>,
    frames: Vec<(Frame, FrameName)>,
}

impl<'a> Chains<'a> {
    pub(crate) fn new(text: &'a [u8], syntax: Syntax) -> Chains<'a> {
        Chains { text, syntax, seen: Vec::new(), frames: Vec::new() }
    }

    /// The chain of the event `of`, whose line ends at `end`.
    pub(crate) fn of(
        &mut self,
        of: &Line<'_>,
        end: usize,
        names: &mut LocalNames,
        batch: &mut Batch,
    ) -> StackRef {
        match self.syntax {
            Syntax::Perf => {
                self.below(end, false, names);
            }
            // An event that is a chain has no chain itself.
            Syntax::Kernel if matches!(of.name, b"kernel_stack" | b"user_stack") => {}
            Syntax::Kernel => self.ahead(of, end, names),
        }
        self.push(batch)
    }

    /// The one frame that perf prints after an event without a chain.
    pub(crate) fn lone(
        &mut self,
        of: &Line<'a>,
        names: &mut LocalNames,
        batch: &mut Batch,
    ) -> StackRef {
        self.frame(of.body, false, names);
        self.push(batch)
    }

    fn push(&mut self, batch: &mut Batch) -> StackRef {
        match self.frames.is_empty() {
            true => StackRef::NONE,
            false => batch.push_named_stack(self.frames.drain(..)),
        }
    }

    /// Read the frames below the line that ends at `end`. Returns the start of the line after them.
    fn below(&mut self, end: usize, user: bool, names: &mut LocalNames) -> usize {
        let mut at = end + 1;
        while let Some((line, next)) = self.line(at) {
            match other(self.syntax, line) {
                // Events of perf may begin with a blank, too.
                Other::Frame | Other::Attached
                    if line[0] == b'\t' || parse(self.syntax, line).is_none() =>
                {
                    self.frame(line, user, names);
                }
                _ => break,
            }
            at = next;
        }
        at
    }

    /// Look for the stacks of the kernel and of the program that belong to `of`.
    fn ahead(&mut self, of: &Line<'_>, end: usize, names: &mut LocalNames) {
        let mut at = end + 1;
        let mut astray = 0;
        while astray < ASTRAY
            && let Some((line, next)) = self.line(at)
        {
            let Some(stack) = parse(self.syntax, line).filter(|l| l.cpu == of.cpu) else {
                astray += 1;
                at = next;
                continue;
            };
            let user = stack.name == b"user_stack";
            if stack.tid != of.tid || !(user || stack.name == b"kernel_stack") {
                return;
            }
            // trace-cmd puts the first frame of the program after the name of the event.
            if stack.body.starts_with(b"=>") {
                self.frame(stack.body, user, names);
            }
            at = self.below(next - 1, user, names);
        }
    }

    /// The line that starts at `at`, and where the next line starts.
    fn line(&self, at: usize) -> Option<(&'a [u8], usize)> {
        let end = line_end(self.text, at.min(self.text.len()))?;
        self.text.get(at..end).filter(|line| !line.is_empty()).map(|line| (line, end + 1))
    }

    fn frame(&mut self, line: &'a [u8], user: bool, names: &mut LocalNames) {
        if self.frames.len() >= DEEPEST {
            return;
        }
        if self.seen.is_empty() {
            self.seen = vec![(&[], None); SLOTS];
        }
        let slot = slot(line);
        if self.seen[slot].0 != line {
            let spelt = spelt(self.syntax, line).filter(|spelt| match self.syntax {
                Syntax::Perf => !spelt.inlined,
                Syntax::Kernel => {
                    *spelt != Spelt::default()
                        && !std::str::from_utf8(spelt.function).is_ok_and(is_recorder)
                }
            });
            let frame = spelt.map(|spelt| {
                let kernel = match self.syntax {
                    Syntax::Perf => spelt.is_kernel(),
                    Syntax::Kernel => !user,
                };
                let mut name = |name: &[u8]| names.name(spelt.address as u32, name);
                let name = FrameName { dso: name(spelt.dso), function: name(spelt.function) };
                (Frame { address: spelt.address, kernel }, name)
            });
            self.seen[slot] = (line, frame);
        }
        self.frames.extend(self.seen[slot].1);
    }
}

/// The cache slot of a line, from the last digits of its address or the first letters of its name.
fn slot(line: &[u8]) -> usize {
    let at = |i: usize| line.get(i).copied().unwrap_or(0) as usize;
    let n = line.len();
    (n * 37 + (12..18).fold(0, |sum, i| sum * 11 + at(i)) + at(n / 2)) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn perf(line: &str) -> Option<(u64, String, Option<u64>, String, bool)> {
        let s = spelt(Syntax::Perf, line.as_bytes())?;
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        Some((s.address, text(s.function), s.offset, text(s.dso), s.inlined))
    }

    #[track_caller]
    fn is(line: &str, address: u64, function: &str, offset: Option<u64>, dso: &str) {
        let want = (address, function.to_owned(), offset, dso.to_owned(), false);
        assert_eq!(perf(line), Some(want), "{line}");
    }

    #[test]
    fn frames_of_perf() {
        is("\t  13f5 worker+0x15 (/tmp/demo/prog)", 0x13f5, "worker", Some(21), "/tmp/demo/prog");
        is("\tffff81 [unknown] ([kernel.kallsyms])", 0xffff81, "", None, "[kernel.kallsyms]");
        is("\t  891f5 [unknown] ([unknown])", 0x891f5, "", None, "");
        is("\t  891f5", 0x891f5, "", None, "");
        is("\t  891f5 main", 0x891f5, "main", None, "");
        is("\t  891f5 main+0x4", 0x891f5, "main", Some(4), "");
        is("\t  891f5 (/usr/lib/libc.so.6)", 0x891f5, "", None, "/usr/lib/libc.so.6");
        is("\t  1 main (/a b/c (deleted))", 1, "main", None, "/a b/c (deleted)");
        is("\t  1 main+0x0 (/a (/b) (deleted))", 1, "main", Some(0), "/a (/b) (deleted)");
        is("\t  1 f+0x1f (/lib/x.so+0x2f)", 1, "f", Some(31), "/lib/x.so");
        is("\t  1 run<void (*)(int)>+0xe (/x)", 1, "run<void (*)(int)>", Some(14), "/x");
        is("\t  1 run<void (*)(int)> (/x)", 1, "run<void (*)(int)>", None, "/x");
        is("\t  1 (anonymous namespace)::f (/x)", 1, "(anonymous namespace)::f", None, "/x");
        is("\t  1 a::operator()(int)", 1, "a::operator()(int)", None, "");
        is("        b3cea6c4\tLock::unlock() (/x)", 0xb3cea6c4, "Lock::unlock()", None, "/x");
        is(
            "\t  1 bpf_prog_6deef7357e7b4530_x+0x1 (bpf)",
            1,
            "bpf_prog_6deef7357e7b4530_x",
            Some(1),
            "bpf",
        );
        assert!(perf("\t  13f5 small (inlined)").unwrap().4);
        for no_frame in ["  prog.c:31", "\t", "\t12345678901234567 f (/x)", "  main.c"] {
            assert_eq!(perf(no_frame), None, "{no_frame}");
        }
    }

    #[test]
    fn frames_of_the_kernel() {
        let k = |line: &str| {
            let s = spelt(Syntax::Kernel, line.as_bytes()).unwrap();
            let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
            (s.address, text(s.function), text(s.dso))
        };
        let of = |address, function: &str, dso: &str| (address, function.into(), dso.into());
        let high = 0xffffffff812d0010;
        assert_eq!(k(" => vfs_read"), of(0, "vfs_read", ""));
        assert_eq!(k("=> vfs_read (ffffffff812d0010)"), of(high, "vfs_read", ""));
        assert_eq!(k("=> vfs_read+0x10 (ffffffff812d0010)"), of(high, "vfs_read", ""));
        assert_eq!(k("=> ffffffff812d0010"), of(high, "", ""));
        let long = " => ext4_sync+0x9c/0x2d0 [ext4] <ffffffff812d0010>";
        assert_eq!(k(long), of(high, "ext4_sync", "[ext4]"));
        assert_eq!(k(" =>  <00007f1200000010>"), of(0x7f1200000010, "", ""));
        assert_eq!(k(" => /usr/lib/libc.so.6[+0x98531]"), of(0, "", "/usr/lib/libc.so.6"));
        let both = " => /usr/lib/libc.so.6[+0x98531] <00007f1200000010>";
        assert_eq!(k(both), of(0x7f1200000010, "", "/usr/lib/libc.so.6"));
        assert_eq!(k("\t=> 0x7f1200000010"), of(0x7f1200000010, "", ""));
        for unknown in [" => ??", " => ", "\t=> 0x0"] {
            assert_eq!(k(unknown), of(0, "", ""), "{unknown}");
        }
        assert_eq!(k(" => fade"), of(0, "fade", ""), "too short for an address");
    }
}

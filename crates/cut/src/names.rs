//! Replaces names: equal names stay equal, and every name keeps its length.
//!
//! A name, path or text is replaced word by word; characters between words stay, so that a path
//! keeps its number of folders. A number at the end of a word stays too: numbered threads
//! (`worker-12`) remain a group. Names of kernel threads and of recorders stay, because they are no
//! secret and holdup needs them.

use rustc_hash::FxHashMap;

/// The replacements for one file.
#[derive(Default)]
pub(crate) struct Names {
    words: FxHashMap<Box<[u8]>, Box<[u8]>>,
    /// The number of words of each length so far.
    of_length: Vec<u32>,
}

/// Longer numbers may reveal something: dates, customer numbers.
const DIGITS: usize = 3;

/// Whether a byte is part of a word.
fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

/// Names that mean the same on every machine.
const COMMON: &[&[u8]] = &[
    b"perf",
    b"trace-cmd",
    b"holdup",
    b"holdup-closing",
    b"lttng",
    b"lttng-sessiond",
    b"lttng-consumerd",
    b"lttng-relayd",
    b"traced",
    b"traced_probes",
    b"swapper",
    b"<idle>",
    b"<...>",
    b"[kernel.kallsyms]",
    b"[kernel.kallsyms]_text",
    b"[kernel.kallsyms]_stext",
    b"[vdso]",
    b"[vsyscall]",
    b"[heap]",
    b"[stack]",
    b"//anon",
    b"[uprobes]",
    b"anon_inode:[perf_event]",
    b"[guest.kernel.kallsyms]",
];

impl Names {
    /// Replace the words of `text`, such as a thread's name, in place.
    pub(crate) fn replace(&mut self, text: &mut [u8]) {
        if COMMON.contains(&&*text) {
            return;
        }
        let kernel = holdup_trace::kernel_thread(text);
        let mut at = kernel.unwrap_or(0);
        while at < text.len() {
            if !is_word(text[at]) {
                at += 1;
                continue;
            }
            let len = text[at..].iter().position(|&b| !is_word(b)).unwrap_or(text.len() - at);
            // Numbers between dots are network addresses; other short numbers are counters and
            // stay.
            let dotted = at > 0 && text[at - 1] == b'.' || text.get(at + len) == Some(&b'.');
            let word = &mut text[at..at + len];
            let counts = word.iter().all(u8::is_ascii_digit)
                && (kernel.is_some() || len <= DIGITS && !dotted);
            if !counts {
                self.word(word);
            }
            at += len;
        }
    }

    /// [`Names::replace`] for a NUL-terminated text; clears the bytes after the NUL.
    pub(crate) fn replace_c(&mut self, field: &mut [u8]) {
        let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
        let (text, rest) = field.split_at_mut(end);
        self.replace(text);
        rest.fill(0);
    }

    fn word(&mut self, word: &mut [u8]) {
        let digits = word.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let stem = if digits <= DIGITS { word.len() - digits } else { word.len() };
        let stem = if stem == 0 { word.len() } else { stem };
        let word = &mut word[..stem];
        if word.is_empty() {
            return;
        }
        if let Some(known) = self.words.get(&*word) {
            return word.copy_from_slice(known);
        }
        if self.of_length.len() <= word.len() {
            self.of_length.resize(word.len() + 1, 0);
        }
        let number = &mut self.of_length[word.len()];
        let made = made(*number, word.len());
        *number += 1;
        self.words.insert((&*word).into(), made.clone());
        word.copy_from_slice(&made);
    }
}

/// The word of this number and length: letters only, so that its trailing number is not extended.
/// There are 26 words of one letter; words of a length repeat when they run out.
fn made(mut number: u32, len: usize) -> Box<[u8]> {
    let mut made = vec![b'x'; len];
    for letter in made.iter_mut().rev() {
        *letter = b'a' + (number % 26) as u8;
        number /= 26;
        if number == 0 {
            break;
        }
    }
    // Words are padded with x in front.
    made.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(names: &[&str]) -> Vec<String> {
        let mut n = Names::default();
        let replaced = |name: &&str| {
            let mut bytes = name.as_bytes().to_vec();
            n.replace(&mut bytes);
            String::from_utf8(bytes).unwrap()
        };
        names.iter().map(replaced).collect()
    }

    #[test]
    fn equal_stays_equal_and_lengths_stay() {
        let names = ["worker-1", "worker-12", "/srv/acme/worker", "réseau", "postgres", "worker"];
        let made = all(&names);
        for (name, made) in names.iter().zip(&made) {
            assert_eq!(name.len(), made.len(), "{name}: {made}");
            assert!(!made.contains("worker") && !made.contains("acme"), "{made}");
        }
        assert_eq!(made[0].strip_suffix("-1"), made[1].strip_suffix("-12"));
        assert!(made[2].ends_with(&made[5]) && made[2].matches('/').count() == 3);
        assert_ne!(made[4], made[5]);
    }

    #[test]
    fn names_of_the_kernel_and_the_recorders_stay() {
        let names = ["kworker/0:1", "ksoftirqd/3", "swapper", "[kernel.kallsyms]_text", "perf"];
        assert_eq!(all(&names), names);
        let made = all(&["jbd2/acme1-8", "kworker/u8:2-acme_wq"]);
        assert!(made[0].starts_with("jbd2/") && !made[0].contains("acme"), "{}", made[0]);
        assert!(made[1].starts_with("kworker/") && !made[1].contains("acme"), "{}", made[1]);
    }

    #[test]
    fn numbers_that_tell_go() {
        let made = all(&["10.20.30.40", "backup20260117", "a", "x264", "7"]);
        assert!(!made[0].contains(['1', '2', '3', '4']), "{}", made[0]);
        assert!(!made[1].contains("2026"), "{}", made[1]);
        assert_eq!((made[3].len(), made[4].as_str()), (4, "7"));
    }

    #[test]
    fn what_stood_behind_a_name_goes() {
        let mut field = *b"sh\0restofold\0\0\0\0";
        Names::default().replace_c(&mut field);
        assert_eq!(&field[2..], [0; 14]);
    }
}

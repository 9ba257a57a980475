//! What the print format of `sched_switch` says about `prev_state`.
//!
//! ```text
//! "… prev_state=%s%s ==> …", …, (REC->prev_state & MASK) ? __print_flags(REC->prev_state & MASK,
//! "|", { 0x1, "S" }, { 0x2, "D" }, …) : "R", REC->prev_state & PREEMPTED ? "+" : "", …
//! ```
//!
//! MASK and PREEMPTED are the preprocessed macros of the kernel: constant expressions such as
//! `((((0x0 | 0x1 | 0x2) + 1) << 1) - 1)`. They are evaluated. Other expressions are not guessed
//! at; then the format gives no table.

use crate::Format;
use holdup_trace::StateTable;

/// A list of more flags than a number has bits is not a list of flags.
const MAX_FLAGS: usize = 64;
/// Brackets nest a few deep in real formats; a hostile format may nest without limit.
const MAX_DEPTH: u32 = 32;

/// The letters of the states in the print format; `None` if it has none, or not in an understood
/// form.
pub fn states(format: &Format) -> Option<StateTable> {
    let arguments = split(&format.print_fmt, b',');
    let (mask, mut flags) = arguments.iter().find_map(|a| letters(a))?;
    let preempted = arguments.iter().find_map(|a| preempted(a)).unwrap_or(0);
    for bit in (0..u64::BITS).map(|i| 1 << i).filter(|bit| preempted & bit != 0) {
        flags.push((bit, "+"));
    }
    let mask = mask | preempted;
    Some(StateTable::of_format(mask, flags.into_iter().map(|(bits, t)| (bits, t.as_bytes()))))
}

/// Bits and the letters they are printed as.
type Flags<'a> = Vec<(u64, &'a str)>;

/// Mask and flags of the `__print_flags` in this argument, if it is about `prev_state`.
fn letters(argument: &str) -> Option<(u64, Flags<'_>)> {
    let (_, call) = argument.split_once("__print_flags(")?;
    let mut parts = split(inside(call)?, b',').into_iter();
    let Value::State(mask) = evaluate(parts.next()?)? else { return None };
    parts.next()?;
    let mut flags = Vec::new();
    // The comma within `{ 0x1, "S" }` does not separate: brackets of both kinds are skipped.
    for part in parts {
        let entry = part.trim().strip_prefix('{')?.strip_suffix('}')?;
        let (bits, text) = entry.split_once(',')?;
        let Value::Number(bits) = evaluate(bits)? else { return None };
        let text = text.trim().strip_prefix('"')?.strip_suffix('"')?;
        if flags.len() >= MAX_FLAGS {
            return None;
        }
        flags.push((bits, text));
    }
    (!flags.is_empty()).then_some((mask, flags))
}

/// The bits of `REC->prev_state & BITS ? "+" : ""`.
fn preempted(argument: &str) -> Option<u64> {
    let (condition, choice) = argument.split_once('?')?;
    choice.trim_start().strip_prefix("\"+\"")?;
    match evaluate(condition)? {
        Value::State(bits) => Some(bits),
        Value::Number(_) => None,
    }
}

/// The text before the bracket that closes the one open at the start of `text`.
fn inside(text: &str) -> Option<&str> {
    let mut depth = 0usize;
    let mut quoted = Quoted::default();
    for (i, &b) in text.as_bytes().iter().enumerate() {
        match b {
            _ if quoted.holds(b) => {}
            b'(' => depth += 1,
            b')' if depth == 0 => return text.get(..i),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The parts of `text` between separators that are neither in brackets nor in quotes.
fn split(text: &str, separator: u8) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0usize);
    let mut quoted = Quoted::default();
    for (i, &b) in text.as_bytes().iter().enumerate() {
        match b {
            _ if quoted.holds(b) => {}
            b'(' | b'{' => depth += 1,
            b')' | b'}' => depth = depth.saturating_sub(1),
            _ if b == separator && depth == 0 => {
                parts.extend(text.get(start..i));
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

/// Whether the bytes of a text are within a C string; asked for one byte after the other.
#[derive(Default)]
struct Quoted {
    open: bool,
    escaped: bool,
}

impl Quoted {
    /// Whether `b` belongs to a string, including its quotes.
    fn holds(&mut self, b: u8) -> bool {
        let was = self.open;
        if self.escaped {
            self.escaped = false;
        } else if was && b == b'\\' {
            self.escaped = true;
        } else if b == b'"' {
            self.open = !was;
        }
        was || self.open
    }
}

/// The value of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Number(u64),
    /// These bits of `prev_state`.
    State(u64),
}

/// Binary operators of C by binding strength, weakest first.
const OPERATORS: [&[&str]; 5] = [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"]];

/// Evaluates a constant expression that may contain `REC->prev_state` once, perhaps masked.
fn evaluate(text: &str) -> Option<Value> {
    let mut rest = text.trim_start();
    let value = binary(&mut rest, 0, 0)?;
    rest.is_empty().then_some(value)
}

fn binary(rest: &mut &str, level: usize, depth: u32) -> Option<Value> {
    let Some(operators) = OPERATORS.get(level) else { return operand(rest, depth) };
    let mut value = binary(rest, level + 1, depth)?;
    while let Some(operator) = operators.iter().find(|o| rest.starts_with(**o)) {
        *rest = rest.get(operator.len()..)?.trim_start();
        value = apply(operator, value, binary(rest, level + 1, depth)?)?;
    }
    Some(value)
}

fn apply(operator: &str, a: Value, b: Value) -> Option<Value> {
    use Value::{Number, State};
    Some(match (operator, a, b) {
        ("&", State(mask), Number(n)) | ("&", Number(n), State(mask)) => State(mask & n),
        ("|", Number(a), Number(b)) => Number(a | b),
        ("^", Number(a), Number(b)) => Number(a ^ b),
        ("&", Number(a), Number(b)) => Number(a & b),
        ("+", Number(a), Number(b)) => Number(a.wrapping_add(b)),
        ("-", Number(a), Number(b)) => Number(a.wrapping_sub(b)),
        ("<<", Number(a), Number(b)) => Number(a.checked_shl(u32::try_from(b).ok()?)?),
        (">>", Number(a), Number(b)) => Number(a.checked_shr(u32::try_from(b).ok()?)?),
        _ => return None,
    })
}

fn operand(rest: &mut &str, depth: u32) -> Option<Value> {
    if depth > MAX_DEPTH {
        return None;
    }
    if let Some(after) = rest.strip_prefix('(') {
        *rest = after.trim_start();
        let value = binary(rest, 0, depth + 1)?;
        *rest = rest.strip_prefix(')')?.trim_start();
        return Some(value);
    }
    if let Some(after) = rest.strip_prefix('~') {
        *rest = after.trim_start();
        return match operand(rest, depth + 1)? {
            Value::Number(n) => Some(Value::Number(!n)),
            Value::State(_) => None,
        };
    }
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    if word == "REC" {
        let after = after.strip_prefix("->prev_state")?;
        *rest = after.trim_start();
        return Some(Value::State(u64::MAX));
    }
    *rest = after.trim_start();
    number(word).map(Value::Number)
}

/// A C constant: decimal, octal or hexadecimal, with or without suffix.
fn number(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8).ok(),
        None => digits.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(print_fmt: &str) -> Option<StateTable> {
        let text = format!("name: sched_switch\nID: 1\nformat:\n\nprint fmt: {print_fmt}\n");
        states(&Format::parse(&text, "sched").unwrap())
    }

    /// Formats of five kernel eras, shortened at the front.
    const V2_6_31: &str = "\"task %s:%d [%d] (%s)\", REC->prev_comm, REC->prev_pid, \
        REC->prev_prio, REC->prev_state ? __print_flags(REC->prev_state, \"|\", { 1, \"S\"} , \
        { 2, \"D\" }, { 4, \"T\" }, { 8, \"t\" }, { 16, \"Z\" }, { 32, \"X\" }, { 64, \"x\" }, \
        { 128, \"W\" }) : \"R\", REC->next_comm";
    const V3_10: &str = "\"prev_state=%s%s, \\\"\", REC->prev_state & (1024-1) ? \
        __print_flags(REC->prev_state & (1024-1), \"|\", { 1, \"S\"} , { 2, \"D\" }, \
        { 4, \"T\" }, { 8, \"t\" }, { 16, \"Z\" }, { 32, \"X\" }, { 64, \"x\" }, { 128, \"K\" }, \
        { 256, \"W\" }, { 512, \"P\" }) : \"R\", REC->prev_state & 1024 ? \"+\" : \"\", \
        REC->next_comm";
    const V6_1: &str = "\"prev_state=%s%s\", (REC->prev_state & ((((0x00000000 | 0x00000001 | \
        0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) - \
        1)) ? __print_flags(REC->prev_state & ((((0x00000000 | 0x00000001 | 0x00000002 | \
        0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) - 1), \"|\", \
        { 0x00000001, \"S\" }, { 0x00000002, \"D\" }, { 0x00000004, \"T\" }, { 0x00000008, \
        \"t\" }, { 0x00000010, \"X\" }, { 0x00000020, \"Z\" }, { 0x00000040, \"P\" }, \
        { 0x00000080, \"I\" }) : \"R\", REC->prev_state & (((0x00000000 | 0x00000001 | \
        0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) ? \
        \"+\" : \"\", REC->next_comm";

    #[test]
    fn a_state_is_read_by_the_format_of_its_own_kernel() {
        let cases: [(&str, &[(u64, &str)]); 3] = [
            (V2_6_31, &[(0, "R"), (0x82, "D|W"), (0x40, "x"), (0x100, "?")]),
            (
                V3_10,
                &[
                    (0x82, "D|K"),
                    (0x81, "S|K"),
                    (0x40, "x"),
                    (0x102, "D|W"),
                    (0x200, "P"),
                    (0x400, "R+"),
                    // Outside the mask: the kernel ignores it.
                    (0x800, "R"),
                ],
            ),
            (
                V6_1,
                &[(0x80, "I"), (0x40, "P"), (0x100, "R+"), (0x30, "X|Z"), (2, "D"), (0x200, "R")],
            ),
        ];
        for (format, states) in cases {
            let table = of(format).unwrap();
            for &(raw, want) in states {
                assert_eq!(table.state(raw).to_string(), want, "{raw:#x} of {format}");
            }
        }
    }

    #[test]
    fn a_letter_of_a_kernel_to_come_is_unknown() {
        let format = V6_1
            .replace("\"I\" }", "\"I\" }, { 0x00000100, \"Q\" }")
            .replace("0x00000040) + 1) << 1)", "0x00000040) + 1) << 2)");
        let table = of(&format).unwrap();
        assert!(table.state(0x100).is_unknown());
        assert_eq!(table.state(0x200).to_string(), "R+");
        assert_eq!(table.state(1).to_string(), "S");
    }

    #[test]
    fn what_is_no_such_format_says_nothing() {
        let deep = format!(
            "__print_flags(REC->prev_state & {}1, \"|\", {{ 1, \"S\" }})",
            "(".repeat(100_000)
        );
        for format in [
            "",
            "\"%d\", REC->prev_state",
            "\"\", __print_flags(REC->gfp_flags, \"|\", { 1, \"S\" })",
            "\"\", __print_flags(REC->prev_state & TASK_REPORT, \"|\", { 1, \"S\" })",
            "\"\", __print_flags(REC->prev_state, \"|\", { 1, \"S\" ",
            "\"\", __print_flags(REC->prev_state, \"|\")",
            "\"\", __print_flags(REC->prev_state << 1, \"|\", { 1, \"S\" })",
            "\"\", __print_flags(REC->prev_state & (1 << 99), \"|\", { 1, \"S\" })",
            &deep,
        ] {
            assert_eq!(of(format), None, "{}", &format[..format.len().min(80)]);
        }
    }

    /// The decoded text of a switch in raw state 0x82.
    fn decoded(print_fmt: &str, release: Option<&str>) -> String {
        let text = format!(
            "name: sched_switch\nID: 1\nformat:\n\
             \tfield:int prev_pid;\toffset:0;\tsize:4;\tsigned:1;\n\
             \tfield:int prev_prio;\toffset:4;\tsize:4;\tsigned:1;\n\
             \tfield:long prev_state;\toffset:8;\tsize:8;\tsigned:1;\n\
             \tfield:int next_pid;\toffset:16;\tsize:4;\tsigned:1;\n\
             \tfield:int next_prio;\toffset:20;\tsize:4;\tsigned:1;\n\nprint fmt: {print_fmt}\n"
        );
        let plan = crate::Plan::compile_for(
            &Format::parse(&text, "sched").unwrap(),
            crate::Abi { long_size: 8 },
            release,
        );
        let mut names = holdup_trace::LocalNames::new(holdup_trace::Names::new());
        let mut batch = holdup_trace::Batch::new();
        let mut raw = [0; 24];
        raw[8] = 0x82;
        match plan.decode::<crate::Little>(&raw, &mut names, &mut batch) {
            Some(holdup_trace::What::Switch { prev_state, .. }) => {
                format!("{prev_state}{}", if plan.note().is_some() { ", noted" } else { "" })
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_release_stands_in_for_a_missing_print_format() {
        assert_eq!(decoded(V6_1, Some("3.10.0")), "D|I", "the format goes first");
        assert_eq!(decoded(V3_10, Some("6.1.0")), "D|K");
        assert_eq!(decoded("", Some("3.10.0")), "D|K, noted");
        assert_eq!(decoded("", Some("3.0.101")), "D|W, noted");
        assert_eq!(decoded("", Some("6.1.0")), "D|I, noted");
        assert_eq!(decoded("", None), "D|K, noted");
    }
}

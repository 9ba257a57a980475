//! The metadata (TSDL, CTF 1.8) as declarations.
//!
//! ```text
//!  text ── lex ──► words ──► blocks (trace, env, clock, stream, event)
//!                              └──► types (what stands behind `:=`, `typealias`, `typedef`)
//! ```
//!
//! The parser makes one pass, top down. Names of types are looked up where they are used, from the
//! innermost block outwards, so the resulting types have no names. Metadata that ends too early, as
//! a recorder that died leaves it, gives the declarations up to its end.

mod blocks;
mod types;

use crate::lex::{Lexer, Token};
use crate::types::{Order, Type};
use holdup_trace::ErrorKind;
use std::collections::HashMap;

/// Blocks and types may nest this deep. Real ones reach ten.
const DEPTH: u32 = 48;

/// What the metadata declares.
#[derive(Default)]
pub(crate) struct Metadata {
    pub(crate) uuid: Option<[u8; 16]>,
    pub(crate) order: Option<Order>,
    pub(crate) packet_header: Option<Type>,
    /// Whether there was a trace block.
    pub(crate) trace: bool,
    /// Facts about the recording: `hostname`, `domain`, `tracer_name` …
    pub(crate) env: Vec<(String, String)>,
    pub(crate) clocks: Vec<ClockDecl>,
    pub(crate) streams: Vec<StreamDecl>,
    pub(crate) events: Vec<EventDecl>,
    /// The text ended in the middle of a declaration.
    pub(crate) cut: bool,
}

/// `clock { … };`
pub(crate) struct ClockDecl {
    pub(crate) name: String,
    pub(crate) uuid: Option<String>,
    /// Steps of the clock per second.
    pub(crate) freq: u64,
    /// Offset from 1970 to the clock's 0: whole seconds …
    pub(crate) offset_s: i64,
    /// … plus these steps.
    pub(crate) offset: i64,
}

/// `stream { … };`
#[derive(Default)]
pub(crate) struct StreamDecl {
    pub(crate) id: u64,
    pub(crate) packet_context: Option<Type>,
    pub(crate) event_header: Option<Type>,
    pub(crate) event_context: Option<Type>,
}

/// `event { … };`
#[derive(Default)]
pub(crate) struct EventDecl {
    pub(crate) name: String,
    pub(crate) id: u64,
    pub(crate) stream: u64,
    pub(crate) context: Option<Type>,
    pub(crate) fields: Option<Type>,
}

impl Metadata {
    /// The value of a fact about the recording.
    pub(crate) fn env(&self, key: &str) -> Option<&str> {
        self.env.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str()).filter(|v| !v.is_empty())
    }
}

/// Parse the text of `metadata`.
pub(crate) fn parse(text: &[u8]) -> Result<Metadata, ErrorKind> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        ahead: Vec::new(),
        scopes: vec![HashMap::new()],
        depth: 0,
        out: Metadata::default(),
    };
    let result = parser.file();
    let mut out = parser.out;
    match result {
        Ok(()) => {}
        Err(Fault { ended: true, .. }) if out.trace && !out.streams.is_empty() => out.cut = true,
        Err(Fault { at, expected, found, .. }) => {
            return Err(ErrorKind::malformed(
                at as u64,
                "text of the metadata".to_owned(),
                expected,
                found,
            ));
        }
    }
    if !out.trace {
        return Err(ErrorKind::malformed(
            text.len() as u64,
            "text of the metadata".to_owned(),
            "a trace block",
            "the end of the metadata without a trace block",
        ));
    }
    Ok(out)
}

/// What is wrong in the text, and at which offset.
struct Fault {
    at: usize,
    expected: String,
    found: String,
    ended: bool,
}

type Parsed<T> = Result<T, Fault>;

/// A value of `key = value;`.
enum Value {
    Number(i128),
    Text(String),
}

impl Value {
    fn text(self) -> String {
        match self {
            Value::Number(n) => n.to_string(),
            Value::Text(text) => text,
        }
    }

    fn number(&self) -> Option<i128> {
        match self {
            Value::Number(n) => Some(*n),
            Value::Text(_) => None,
        }
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// Tokens read ahead, the next one last.
    ahead: Vec<(usize, Token)>,
    /// Named types, the innermost block last. Keys are `struct NAME` and the like for tagged types.
    scopes: Vec<HashMap<String, Type>>,
    depth: u32,
    out: Metadata,
}

impl Parser<'_> {
    fn next(&mut self) -> (usize, Token) {
        self.ahead.pop().unwrap_or_else(|| self.lexer.next())
    }

    fn back(&mut self, word: (usize, Token)) {
        self.ahead.push(word);
    }

    fn peek(&mut self) -> &Token {
        let word = self.next();
        self.ahead.push(word);
        match self.ahead.last() {
            Some((_, token)) => token,
            None => &Token::End,
        }
    }

    fn fault<T>(&self, found: (usize, Token), expected: impl Into<String>) -> Parsed<T> {
        let ended = found.1 == Token::End;
        Err(Fault { at: found.0, expected: expected.into(), found: found.1.show(), ended })
    }

    /// The mark `mark`, or a fault.
    fn mark(&mut self, mark: char) -> Parsed<()> {
        match self.next() {
            (_, Token::Mark(m)) if m == mark => Ok(()),
            other => self.fault(other, format!("{:?}", Token::Mark(mark).show())),
        }
    }

    /// Whether `mark` comes next; if so it is taken.
    fn is_mark(&mut self, mark: char) -> bool {
        if *self.peek() == Token::Mark(mark) {
            self.ahead.pop();
            return true;
        }
        false
    }

    fn word(&mut self, what: &str) -> Parsed<String> {
        match self.next() {
            (_, Token::Word(word)) => Ok(word),
            other => self.fault(other, what),
        }
    }

    fn number(&mut self, what: &str) -> Parsed<i128> {
        let minus = self.is_mark('-');
        if !minus {
            self.is_mark('+');
        }
        match self.next() {
            (_, Token::Number(n)) => Ok(if minus { -n } else { n }),
            other => self.fault(other, what),
        }
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH {
            let word = self.next();
            return self.fault(word, format!("types nested at most {DEPTH} deep"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// `a.b.c`
    fn path(&mut self, what: &str) -> Parsed<String> {
        let mut path = self.word(what)?;
        while self.is_mark('.') {
            path.push('.');
            path.push_str(&self.word(what)?);
        }
        Ok(path)
    }

    fn value(&mut self) -> Parsed<Value> {
        match self.next() {
            (_, Token::Text(text)) => Ok(Value::Text(text)),
            word @ (_, Token::Number(_) | Token::Mark('-' | '+')) => {
                self.back(word);
                Ok(Value::Number(self.number("a number")?))
            }
            word @ (_, Token::Word(_)) => {
                self.back(word);
                Ok(Value::Text(self.path("a value")?))
            }
            other => self.fault(other, "a value"),
        }
    }
}

/// A byte order by its name.
fn order(text: &str) -> Option<Order> {
    match text {
        "le" => Some(Order::Little),
        "be" | "network" => Some(Order::Big),
        _ => None,
    }
}

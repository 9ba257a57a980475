//! The metadata (TSDL, CTF 1.8) as declarations.
//!
//! One pass, top down. Names of types are looked up where they are used, from the innermost block
//! outwards, so that what remains is types without names. Metadata that ends too early gives the
//! declarations up to there: a recorder that died leaves such.

use crate::lex::{ASSIGN, Lexer, RANGE, Token};
use crate::types::{Element, Enum, Int, Order, Struct, Type, Variant};
use holdup_trace::ErrorKind;
use std::collections::HashMap;
use std::sync::Arc;

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
    /// Steps a second.
    pub(crate) freq: u64,
    /// Seconds from 1970 to the clock's 0 …
    pub(crate) offset_s: i64,
    /// … and steps.
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
    /// A fact of the recording.
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
            "the end without one",
        ));
    }
    Ok(out)
}

/// What is wrong, and where.
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

/// What `key := TYPE;` and `key = value;` of a block are handed to.
enum Entry {
    Type(Type),
    Value(Value),
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// Words looked at already, the next one last.
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

    fn file(&mut self) -> Parsed<()> {
        loop {
            match self.next() {
                (_, Token::End) => return Ok(()),
                (_, Token::Mark(';')) => {}
                (at, Token::Word(word)) => match word.as_str() {
                    "trace" => self.trace()?,
                    "env" => self.env()?,
                    "clock" => self.clock()?,
                    "stream" => self.stream()?,
                    "event" => self.event()?,
                    "callsite" => self.block(&mut |_, _, _| ())?,
                    _ => {
                        self.back((at, Token::Word(word)));
                        self.declaration()?;
                    }
                },
                other => return self.fault(other, "a declaration"),
            }
        }
    }

    /// `{ key = value; key := TYPE; … }`; declarations of types may stand between.
    fn block(&mut self, take: &mut dyn FnMut(&mut Metadata, &str, Entry)) -> Parsed<()> {
        self.mark('{')?;
        self.scopes.push(HashMap::new());
        let result = self.entries(take);
        self.scopes.pop();
        result
    }

    fn entries(&mut self, take: &mut dyn FnMut(&mut Metadata, &str, Entry)) -> Parsed<()> {
        loop {
            if self.is_mark('}') {
                self.is_mark(';');
                return Ok(());
            }
            if self.is_mark(';') {
                continue;
            }
            if matches!(
                self.peek(),
                Token::Word(w) if matches!(
                    w.as_str(), "typealias" | "typedef" | "struct" | "variant" | "enum"
                )
            ) {
                self.declaration()?;
                continue;
            }
            let key = self.path("a key")?;
            match self.next() {
                (_, Token::Mark('=')) => {
                    let value = self.value()?;
                    take(&mut self.out, &key, Entry::Value(value));
                }
                (_, Token::Mark(ASSIGN)) => {
                    let of = self.deeper(|p| p.specifier())?;
                    take(&mut self.out, &key, Entry::Type(of));
                }
                other => return self.fault(other, "\"=\" or \":=\""),
            }
            self.mark(';')?;
        }
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
            word @ (_, Token::Number(_) | Token::Mark('-')) => {
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

    fn trace(&mut self) -> Parsed<()> {
        self.block(&mut |out, key, entry| match (key, entry) {
            ("uuid", Entry::Value(v)) => out.uuid = uuid(&v.text()),
            ("byte_order", Entry::Value(v)) => out.order = order(&v.text()),
            ("packet.header", Entry::Type(of)) => out.packet_header = Some(of),
            _ => {}
        })?;
        self.out.trace = true;
        Ok(())
    }

    fn env(&mut self) -> Parsed<()> {
        self.block(&mut |out, key, entry| {
            if let Entry::Value(value) = entry {
                out.env.push((key.to_owned(), value.text()));
            }
        })
    }

    fn clock(&mut self) -> Parsed<()> {
        let mut clock = ClockDecl {
            name: String::new(),
            uuid: None,
            freq: 1_000_000_000,
            offset_s: 0,
            offset: 0,
        };
        self.block(&mut |_, key, entry| {
            let Entry::Value(value) = entry else { return };
            let int = value.number().and_then(|n| i64::try_from(n).ok());
            match (key, int) {
                ("name", _) => clock.name = value.text(),
                ("uuid", _) => clock.uuid = Some(value.text()),
                ("freq", Some(freq)) if freq > 0 => clock.freq = freq as u64,
                ("offset_s", Some(n)) => clock.offset_s = n,
                ("offset", Some(n)) => clock.offset = n,
                _ => {}
            }
        })?;
        self.out.clocks.push(clock);
        Ok(())
    }

    fn stream(&mut self) -> Parsed<()> {
        let mut stream = StreamDecl::default();
        self.block(&mut |_, key, entry| match (key, entry) {
            ("id", Entry::Value(v)) => stream.id = unsigned(&v),
            ("packet.context", Entry::Type(of)) => stream.packet_context = Some(of),
            ("event.header", Entry::Type(of)) => stream.event_header = Some(of),
            ("event.context", Entry::Type(of)) => stream.event_context = Some(of),
            _ => {}
        })?;
        self.out.streams.push(stream);
        Ok(())
    }

    fn event(&mut self) -> Parsed<()> {
        let mut event = EventDecl::default();
        self.block(&mut |_, key, entry| match (key, entry) {
            ("name", Entry::Value(v)) => event.name = v.text(),
            ("id", Entry::Value(v)) => event.id = unsigned(&v),
            ("stream_id", Entry::Value(v)) => event.stream = unsigned(&v),
            ("context", Entry::Type(of)) => event.context = Some(of),
            ("fields", Entry::Type(of)) => event.fields = Some(of),
            _ => {}
        })?;
        self.out.events.push(event);
        Ok(())
    }

    /// `typealias`, `typedef`, or a named struct, variant or enum.
    fn declaration(&mut self) -> Parsed<()> {
        let word = self.next();
        match &word.1 {
            Token::Word(w) if w == "typealias" => {
                let of = self.deeper(|p| p.specifier())?;
                self.mark(ASSIGN)?;
                let name = self.names()?;
                self.define(name, of);
            }
            Token::Word(w) if w == "typedef" => {
                let (of, name) = self.deeper(|p| p.declared())?;
                self.define(name, of);
            }
            Token::Word(w) if matches!(w.as_str(), "struct" | "variant" | "enum") => {
                self.back(word);
                // Named types enter the scope as they are read.
                self.deeper(|p| p.specifier())?;
            }
            _ => return self.fault(word, "a declaration"),
        }
        self.mark(';')
    }

    fn define(&mut self, name: String, of: Type) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, of);
        }
    }

    fn lookup(&self, name: &str) -> Option<Type> {
        self.scopes.iter().rev().find_map(|s| s.get(name)).cloned()
    }

    /// `unsigned long`, `void *`: words up to something else.
    fn names(&mut self) -> Parsed<String> {
        let mut name = self.word("the name of a type")?;
        loop {
            match self.next() {
                (_, Token::Word(word)) => {
                    name.push(' ');
                    name.push_str(&word);
                }
                (_, Token::Mark('*')) => name.push_str(" *"),
                other => {
                    self.back(other);
                    return Ok(name);
                }
            }
        }
    }

    /// A type where no name of a field follows.
    fn specifier(&mut self) -> Parsed<Type> {
        let at = self.next();
        if let Token::Word(word) = &at.1
            && let Some(of) = self.keyword(&word.clone())?
        {
            return Ok(of);
        }
        self.back(at.clone());
        let name = self.names()?;
        match self.lookup(&name) {
            Some(of) => Ok(of),
            None => self.fault((at.0, Token::Word(name)), "the name of a type declared before"),
        }
    }

    /// A type and the name of what has it: `uint32_t a[4][n]`.
    fn declared(&mut self) -> Parsed<(Type, String)> {
        let at = self.next();
        let known = match &at.1 {
            Token::Word(word) => self.keyword(&word.clone())?,
            _ => return self.fault(at, "a type"),
        };
        let (of, name) = match known {
            Some(of) => {
                while self.is_mark('*') {}
                (of, self.word("the name of a field")?)
            }
            // The last word is the field's name.
            None => {
                self.back(at.clone());
                let all = self.names()?;
                let Some((of, name)) = all.rsplit_once(' ') else {
                    let next = self.next();
                    return self.fault(next, "the name of a field");
                };
                match self.lookup(of) {
                    Some(of) => (of, name.to_owned()),
                    None => {
                        let found = (at.0, Token::Word(of.to_owned()));
                        return self.fault(found, "the name of a type declared before");
                    }
                }
            }
        };
        Ok((self.dimensions(of)?, name))
    }

    /// `[4][n]`: the first is the outermost.
    fn dimensions(&mut self, of: Type) -> Parsed<Type> {
        enum Length {
            Fixed(u64),
            Field(String),
        }
        let mut lengths = Vec::new();
        while self.is_mark('[') {
            if lengths.len() >= DEPTH as usize {
                let word = self.next();
                return self.fault(word, format!("at most {DEPTH} dimensions"));
            }
            let word = self.next();
            match &word.1 {
                Token::Number(n) if (0..=i128::from(u64::MAX >> 8)).contains(n) => {
                    lengths.push(Length::Fixed(*n as u64));
                }
                Token::Word(_) => {
                    self.back(word);
                    lengths.push(Length::Field(self.path("a field's name")?));
                }
                _ => return self.fault(word, "a length"),
            }
            self.mark(']')?;
        }
        let of = lengths.into_iter().rev().fold(of, |of, length| match length {
            Length::Fixed(n) => Type::Array(Arc::new(Element::new(of)), n),
            Length::Field(path) => Type::Sequence(Arc::new(Element::new(of)), path.into()),
        });
        self.shallow(of)
    }

    /// A type made of named ones may be deeper than what nests in the text.
    fn shallow(&mut self, of: Type) -> Parsed<Type> {
        if of.depth() > DEPTH {
            let word = self.next();
            return self.fault(word, format!("types nested at most {DEPTH} deep"));
        }
        Ok(of)
    }

    /// The type that begins with `word`, if that is a keyword.
    fn keyword(&mut self, word: &str) -> Parsed<Option<Type>> {
        Ok(Some(match word {
            "integer" => Type::Int(self.integer()?),
            "floating_point" => self.float()?,
            "string" => {
                if *self.peek() == Token::Mark('{') {
                    self.attributes()?;
                }
                Type::Str
            }
            "struct" => self.deeper(|p| p.structure())?,
            "variant" => self.deeper(|p| p.variant())?,
            "enum" => self.deeper(|p| p.enumeration())?,
            _ => return Ok(None),
        }))
    }

    /// `{ size = 8; … }` with the place where it began.
    fn attributes(&mut self) -> Parsed<Vec<(String, Value)>> {
        let mut list = Vec::new();
        self.mark('{')?;
        while !self.is_mark('}') {
            let key = self.path("an attribute")?;
            self.mark('=')?;
            let value = self.value()?;
            list.push((key, value));
            if !self.is_mark(';') && *self.peek() != Token::Mark('}') {
                let word = self.next();
                return self.fault(word, "\";\"");
            }
        }
        Ok(list)
    }

    fn integer(&mut self) -> Parsed<Int> {
        let start = self.next();
        let at = start.0;
        self.back(start);
        let mut size = 0i128;
        let mut align = None;
        let mut int =
            Int { size: 0, align: 0, signed: false, order: None, text: false, clock: None };
        for (key, value) in self.attributes()? {
            match key.as_str() {
                "size" => size = value.number().unwrap_or(0),
                "align" => align = value.number(),
                "signed" => int.signed = matches!(value.text().as_str(), "true" | "TRUE" | "1"),
                "byte_order" => int.order = order(&value.text()),
                "encoding" => {
                    int.text = matches!(value.text().as_str(), "UTF8" | "ASCII" | "utf8" | "ascii");
                }
                "map" => {
                    let path = value.text();
                    int.clock = path
                        .strip_prefix("clock.")
                        .and_then(|p| p.strip_suffix(".value"))
                        .map(Into::into);
                }
                _ => {}
            }
        }
        if !(1..=64).contains(&size) {
            let found = (at, Token::Number(size));
            return self.fault(found, "an integer of 1 to 64 bits");
        }
        int.size = size as u8;
        int.align = self.alignment(at, align, if size % 8 == 0 { 8 } else { 1 })?;
        Ok(int)
    }

    fn alignment(&self, at: usize, given: Option<i128>, usual: u32) -> Parsed<u32> {
        match given {
            None => Ok(usual),
            Some(n) if (1..=1 << 20).contains(&n) && n.count_ones() == 1 => Ok(n as u32),
            Some(n) => self.fault((at, Token::Number(n)), "an alignment, a power of two"),
        }
    }

    fn float(&mut self) -> Parsed<Type> {
        let start = self.next();
        let at = start.0;
        self.back(start);
        let (mut size, mut align) = (0i128, None);
        for (key, value) in self.attributes()? {
            match key.as_str() {
                "exp_dig" | "mant_dig" => {
                    size = size.saturating_add(value.number().unwrap_or(0));
                }
                "align" => align = value.number(),
                _ => {}
            }
        }
        if !(1..=128).contains(&size) {
            return self.fault((at, Token::Number(size)), "a number of 1 to 128 bits");
        }
        let align = self.alignment(at, align, if size % 8 == 0 { 8 } else { 1 })?;
        Ok(Type::Float { size: size as u32, align })
    }

    /// What follows `struct`, `variant` or `enum`: a name, a body, or both.
    fn name_of(&mut self) -> Option<String> {
        match self.next() {
            (_, Token::Word(name)) => Some(name),
            other => {
                self.back(other);
                None
            }
        }
    }

    fn named(&mut self, kind: &str, name: Option<String>) -> Parsed<Type> {
        let word = self.next();
        let Some(name) = name else { return self.fault(word, "\"{\"") };
        let at = word.0;
        self.back(word);
        let key = format!("{kind} {name}");
        match self.lookup(&key) {
            Some(of) => Ok(of),
            None => self.fault((at, Token::Word(key)), "the name of a type declared before"),
        }
    }

    fn structure(&mut self) -> Parsed<Type> {
        let name = self.name_of();
        if *self.peek() != Token::Mark('{') {
            return self.named("struct", name);
        }
        let fields = self.fields()?;
        let mut align = 1;
        // A field may bear this name, as in `struct { … } align(8)`; only with a parenthesis is it
        // an attribute.
        if matches!(self.peek(), Token::Word(w) if w == "align") {
            let word = self.next();
            if self.is_mark('(') {
                let n = self.number("an alignment")?;
                align = self.alignment(word.0, Some(n), 1)?;
                self.mark(')')?;
            } else {
                self.back(word);
            }
        }
        let of = self.shallow(Type::Struct(Arc::new(Struct::new(align, fields))))?;
        if let Some(name) = name {
            self.define(format!("struct {name}"), of.clone());
        }
        Ok(of)
    }

    /// `{ TYPE name; … }`
    fn fields(&mut self) -> Parsed<Vec<(Box<str>, Type)>> {
        self.mark('{')?;
        self.scopes.push(HashMap::new());
        let mut fields = Vec::new();
        let result = loop {
            if self.is_mark('}') {
                break Ok(fields);
            }
            if matches!(self.peek(), Token::Word(w) if w == "typealias" || w == "typedef") {
                if let Err(fault) = self.declaration() {
                    break Err(fault);
                }
                continue;
            }
            match self.field() {
                Ok((of, name)) => fields.push((name.into(), of)),
                Err(fault) => break Err(fault),
            }
        };
        self.scopes.pop();
        result
    }

    fn field(&mut self) -> Parsed<(Type, String)> {
        let field = self.deeper(|p| p.declared())?;
        self.mark(';')?;
        Ok(field)
    }

    fn variant(&mut self) -> Parsed<Type> {
        let name = self.name_of();
        let tag = if self.is_mark('<') {
            let path = self.path("the name of a tag")?;
            self.mark('>')?;
            Some(path.into())
        } else {
            None
        };
        if *self.peek() != Token::Mark('{') {
            return match self.named("variant", name)? {
                Type::Variant { variant, tag: old } => {
                    Ok(Type::Variant { variant, tag: tag.or(old) })
                }
                other => Ok(other),
            };
        }
        let options = self.fields()?;
        let of = self.shallow(Type::Variant { variant: Arc::new(Variant::new(options)), tag })?;
        if let Some(name) = name {
            self.define(format!("variant {name}"), of.clone());
        }
        Ok(of)
    }

    fn enumeration(&mut self) -> Parsed<Type> {
        let name = self.name_of();
        let int = if self.is_mark(':') {
            let start = self.next();
            let at = start.0;
            self.back(start);
            match self.specifier()? {
                Type::Int(int) => Some(int),
                _ => {
                    return self.fault((at, Token::Word("another type".into())), "an integer type");
                }
            }
        } else {
            None
        };
        if *self.peek() != Token::Mark('{') {
            return self.named("enum", name);
        }
        let int = match int.map(Type::Int).or_else(|| self.lookup("int")) {
            Some(Type::Int(int)) => int,
            _ => {
                let word = self.next();
                return self.fault(word, "the type of the enumeration");
            }
        };
        let ranges = self.enumerators()?;
        let of = Type::Enum(Arc::new(Enum { int, ranges }));
        if let Some(name) = name {
            self.define(format!("enum {name}"), of.clone());
        }
        Ok(of)
    }

    /// `{ a, b = 5, "c" = 7 ... 9 }`
    fn enumerators(&mut self) -> Parsed<Vec<(Box<str>, i128, i128)>> {
        self.mark('{')?;
        let mut ranges = Vec::new();
        let mut next = 0i128;
        while !self.is_mark('}') {
            let label = match self.next() {
                (_, Token::Word(label) | Token::Text(label)) => label,
                other => return self.fault(other, "a label"),
            };
            let (mut low, mut high) = (next, next);
            if self.is_mark('=') {
                low = self.number("a number")?;
                high = if self.is_mark(RANGE) { self.number("a number")? } else { low };
            }
            next = high.saturating_add(1);
            ranges.push((label.into(), low, high));
            if !self.is_mark(',') && *self.peek() != Token::Mark('}') {
                let word = self.next();
                return self.fault(word, "\",\"");
            }
        }
        Ok(ranges)
    }
}

fn unsigned(value: &Value) -> u64 {
    value.number().and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
}

fn order(text: &str) -> Option<Order> {
    match text {
        "le" => Some(Order::Little),
        "be" | "network" => Some(Order::Big),
        _ => None,
    }
}

/// `6f180b0c-b242-c148-ab44-6cbf960a58b2`
fn uuid(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|&b| b != b'-')
        .map(|b| (b as char).to_digit(16))
        .map_while(|d| d.map(|d| d as u8))
        .collect();
    let mut out = [0; 16];
    if digits.len() != 32 {
        return None;
    }
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Some(out)
}

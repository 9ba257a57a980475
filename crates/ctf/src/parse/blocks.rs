//! Blocks: `trace { … };` and the like, and what each key in them means.

use super::{ClockDecl, EventDecl, Metadata, Parsed, Parser, StreamDecl, Value, order};
use crate::lex::{ASSIGN, Token};
use crate::types::Type;
use std::collections::HashMap;

/// One entry of a block: `key := TYPE;` or `key = value;`.
enum Entry {
    Type(Type),
    Value(Value),
}

impl Parser<'_> {
    /// Parse the whole text.
    pub(super) fn file(&mut self) -> Parsed<()> {
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

    /// `{ key = value; key := TYPE; … }`; declarations of types may occur in between.
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
}

fn unsigned(value: &Value) -> u64 {
    value.number().and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
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

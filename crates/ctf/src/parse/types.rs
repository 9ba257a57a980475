//! Types: declarations that name them, and how each kind is written.

use super::{DEPTH, Parsed, Parser, Value, order};
use crate::lex::{ASSIGN, RANGE, Token};
use crate::types::{Element, Enum, Int, Struct, Type, Variant};
use std::collections::HashMap;
use std::sync::Arc;

impl Parser<'_> {
    /// `typealias`, `typedef`, or a named struct, variant or enum.
    pub(super) fn declaration(&mut self) -> Parsed<()> {
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

    /// Parse a type that is not followed by a field's name.
    pub(super) fn specifier(&mut self) -> Parsed<Type> {
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

    /// A type and the name of the field that has it: `uint32_t a[4][n]`.
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

    /// A type composed of named types may nest deeper than the text does.
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

    /// `{ size = 8; … }` with its offset.
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
        // A field may be called `align`, as in `struct { … } align(8)`; only with a parenthesis is
        // the word an attribute.
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

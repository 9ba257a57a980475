//! Tokens of the metadata language (TSDL, CTF 1.8 appendix C): C's, a little simplified.

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Word(String),
    Number(i128),
    /// Between quotes.
    Text(String),
    /// One of `{ } ( ) [ ] < > ; , : = . * -`, or `:=` or `...` under the names below.
    Mark(char),
    End,
}

/// `:=`
pub(crate) const ASSIGN: char = '≔';
/// `...`
pub(crate) const RANGE: char = '…';

/// Reads tokens one after the other.
pub(crate) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    fn peek(&self, n: usize) -> u8 {
        self.text.get(self.at + n).copied().unwrap_or(0)
    }

    fn skip_blanks(&mut self) {
        loop {
            match (self.peek(0), self.peek(1)) {
                // NULs: the metadata of a crashed recorder may end in unwritten bytes.
                (b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, _) => self.at += 1,
                (0, _) if self.at < self.text.len() => self.at += 1,
                (b'/', b'*') => {
                    let rest = &self.text[self.at + 2..];
                    let end = rest.windows(2).position(|w| w == b"*/");
                    self.at = end.map_or(self.text.len(), |e| self.at + 2 + e + 2);
                }
                (b'/', b'/') => {
                    let rest = &self.text[self.at..];
                    self.at += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    /// The next token and its offset.
    pub(crate) fn next(&mut self) -> (usize, Token) {
        self.skip_blanks();
        let start = self.at;
        let Some(&first) = self.text.get(start) else { return (start, Token::End) };
        let token = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let rest = &self.text[start..];
                let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
                let len = rest.iter().position(|b| !word(b)).unwrap_or(rest.len());
                self.at += len;
                Token::Word(String::from_utf8_lossy(&rest[..len]).into_owned())
            }
            b'0'..=b'9' => self.number(),
            b'"' | b'\'' => self.quoted(first),
            b':' if self.peek(1) == b'=' => self.mark(2, ASSIGN),
            b'.' if self.peek(1) == b'.' && self.peek(2) == b'.' => self.mark(3, RANGE),
            other => self.mark(1, char::from(other)),
        };
        (start, token)
    }

    fn mark(&mut self, len: usize, mark: char) -> Token {
        self.at += len;
        Token::Mark(mark)
    }

    /// Decimal, `0x…` or octal, with C's suffixes.
    fn number(&mut self) -> Token {
        let rest = &self.text[self.at..];
        let len = rest.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len());
        self.at += len;
        let text = String::from_utf8_lossy(&rest[..len]).to_ascii_lowercase();
        let digits = text.trim_end_matches(['u', 'l']);
        let parsed = match digits.as_bytes() {
            [b'0', b'x', ..] => i128::from_str_radix(&digits[2..], 16),
            [b'0', _, ..] => i128::from_str_radix(&digits[1..], 8),
            _ => digits.parse(),
        };
        // Not a number after all: a caller that expects one reports the error.
        parsed.map_or(Token::Word(text), Token::Number)
    }

    fn quoted(&mut self, quote: u8) -> Token {
        self.at += 1;
        let mut out = Vec::new();
        while let Some(&b) = self.text.get(self.at) {
            self.at += 1;
            match b {
                b'\\' => {
                    let escaped = self.peek(0);
                    self.at += 1;
                    out.push(match escaped {
                        b'n' => b'\n',
                        b't' => b'\t',
                        other => other,
                    });
                }
                b if b == quote => return Token::Text(String::from_utf8_lossy(&out).into_owned()),
                b => out.push(b),
            }
        }
        Token::End
    }
}

impl Token {
    /// The token as text, for messages.
    pub(crate) fn show(&self) -> String {
        match self {
            Token::Word(word) => word.clone(),
            Token::Number(n) => n.to_string(),
            Token::Text(text) => format!("{text:?}"),
            Token::Mark(ASSIGN) => ":=".into(),
            Token::Mark(RANGE) => "...".into(),
            Token::Mark(c) => c.to_string(),
            Token::End => "the end of the metadata".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_marks_and_comments() {
        let text = b"a.b := 0x10u; /* x */ // y\n \"q\\\"\" 010 0 ... -5 @";
        let mut lexer = Lexer::new(text);
        let mut seen = Vec::new();
        loop {
            match lexer.next().1 {
                Token::End => break,
                token => seen.push(token.show()),
            }
        }
        assert_eq!(
            seen,
            ["a", ".", "b", ":=", "16", ";", "\"q\\\"\"", "8", "0", "...", "-", "5", "@"]
        );
    }

    #[test]
    fn what_never_ends_ends_with_the_text() {
        for text in [&b"/* x"[..], b"\"x", b"\"x\\", b"// x"] {
            assert_eq!(Lexer::new(text).next().1, Token::End);
        }
    }
}

//! Text into tokens.

use super::Fault;
use crate::limits::{TEXT_MAX, TOKENS_MAX};

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A word: of the language, or a name.
    Word(String),
    /// A number, with its suffix applied.
    Number(u64),
    /// A variable, without `$`.
    Variable(String),
    /// Text between quotation marks.
    Text(String),
    /// One of `{ } ( ) = , * + - /`.
    Sign(char),
}

/// A token and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Line, from 1.
    pub line: u32,
}

impl Token {
    /// As in the text.
    pub fn text(&self) -> String {
        match &self.kind {
            Kind::Word(word) => word.clone(),
            Kind::Number(number) => number.to_string(),
            Kind::Variable(name) => format!("${name}"),
            Kind::Text(text) => format!("\"{text}\""),
            Kind::Sign(sign) => sign.to_string(),
        }
    }

    /// Whether it is this sign.
    pub fn is(&self, sign: char) -> bool {
        self.kind == Kind::Sign(sign)
    }
}

/// A letter of a word after its first.
fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/._:;-".contains(c)
}

struct Lexer<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: u32,
    tokens: Vec<Token>,
}

/// Cuts a text into tokens.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    let fault = |line, token: &str, what: String| Fault { line, token: token.to_owned(), what };
    if text.len() > TEXT_MAX {
        return Err(fault(0, "", format!("the text has more than {TEXT_MAX} bytes")));
    }
    let mut lexer = Lexer { rest: text.chars().peekable(), line: 1, tokens: Vec::new() };
    while let Some(c) = lexer.rest.peek().copied() {
        if lexer.tokens.len() >= TOKENS_MAX {
            return Err(fault(lexer.line, "", format!("more than {TOKENS_MAX} tokens")));
        }
        lexer.token(c)?;
    }
    Ok(lexer.tokens)
}

impl Lexer<'_> {
    fn token(&mut self, c: char) -> Result<(), Fault> {
        match c {
            '\n' => {
                self.line += 1;
                self.rest.next();
            }
            c if c.is_ascii_whitespace() => {
                self.rest.next();
            }
            '#' => while self.rest.next_if(|c| *c != '\n').is_some() {},
            '"' => return self.quoted(),
            '$' => return self.variable(),
            '{' | '}' | '(' | ')' | '=' | ',' | '*' | '+' => self.sign(c),
            c if c.is_ascii_digit() => return self.number(),
            c if c.is_ascii_alphabetic() || "/-_".contains(c) => self.word(),
            c => return Err(self.fault(c.to_string(), "this character has no meaning here")),
        }
        Ok(())
    }

    fn fault(&self, token: String, what: &str) -> Fault {
        Fault { line: self.line, token, what: what.to_owned() }
    }

    fn push(&mut self, kind: Kind) {
        self.tokens.push(Token { kind, line: self.line });
    }

    fn sign(&mut self, sign: char) {
        self.rest.next();
        self.push(Kind::Sign(sign));
    }

    fn letters(&mut self, valid: impl Fn(char) -> bool) -> String {
        let mut letters = String::new();
        while let Some(c) = self.rest.next_if(|c| valid(*c)) {
            letters.push(c);
        }
        letters
    }

    fn word(&mut self) {
        let word = self.letters(in_word);
        match word.as_str() {
            "-" | "/" => self.push(Kind::Sign(if word == "-" { '-' } else { '/' })),
            _ => self.push(Kind::Word(word)),
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        let word = self.letters(in_word);
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = match &word[digits.len()..] {
            "" => 1,
            "k" | "K" => 1 << 10,
            "m" | "M" => 1 << 20,
            "g" | "G" => 1 << 30,
            "t" | "T" => 1u64 << 40,
            _ => 0,
        };
        // A name that starts with a digit, or 1.5.
        if unit == 0 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            self.push(Kind::Word(word));
            return Ok(());
        }
        let number = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
        let Some(number) = number else {
            return Err(self.fault(word, "the number is too large"));
        };
        self.push(Kind::Number(number));
        Ok(())
    }

    /// `$name`, `${name}` and `$(name)`.
    fn variable(&mut self) -> Result<(), Fault> {
        self.rest.next();
        let close = match self.rest.next_if(|c| "{(".contains(*c)) {
            Some('{') => Some('}'),
            Some(_) => Some(')'),
            None => None,
        };
        let name = self.letters(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() {
            return Err(self.fault("$".to_owned(), "a variable has a name of letters and digits"));
        }
        if close.is_some_and(|close| self.rest.next_if_eq(&close).is_none()) {
            return Err(self.fault(format!("${name}"), "the bracket of the variable is not closed"));
        }
        self.push(Kind::Variable(name));
        Ok(())
    }

    fn quoted(&mut self) -> Result<(), Fault> {
        self.rest.next();
        let line = self.line;
        let mut text = String::new();
        loop {
            match self.rest.next() {
                Some('"') => break,
                Some('\\') => match self.rest.next() {
                    Some('n') => text.push('\n'),
                    Some(c) => text.push(c),
                    None => {}
                },
                Some(c) => {
                    self.line += u32::from(c == '\n');
                    text.push(c);
                }
                None => {
                    let what = "the quotation mark is not closed".to_owned();
                    return Err(Fault { line, token: "\"".to_owned(), what });
                }
            }
        }
        self.tokens.push(Token { kind: Kind::Text(text), line });
        Ok(())
    }
}

//! Tokens into statements. Names are not resolved here.

use super::Fault;
use super::lex::{Kind, Token};
use crate::limits::{EXPRESSION_MAX, SEGMENTS_MAX};

/// A value as written.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A number.
    Number(u64),
    /// `true` or `false`.
    Bool(bool),
    /// A word or a text.
    Text(String),
    /// A variable.
    Variable(Token),
    /// Two values and a sign.
    Pair(Box<Expr>, char, Box<Expr>),
    /// `randvar(…)`.
    Randvar(Attrs),
    /// `cvar(…)`.
    Cvar(Attrs),
    /// `{{share, low, high}, …}`.
    Table(Vec<[Expr; 3]>),
}

/// `name=value`, `name`, or `$name=value`.
#[derive(Debug, Clone, PartialEq)]
pub struct Attr {
    /// The name; that of a variable is without `$`.
    pub name: String,
    /// Whether it is a variable.
    pub local: bool,
    /// The value, if one is given.
    pub value: Option<Expr>,
    /// Where it is.
    pub at: Token,
}

/// Attributes in the order of the text.
pub type Attrs = Vec<Attr>;

/// One flowop.
#[derive(Debug, Clone, PartialEq)]
pub struct Flowop {
    /// What it does, or the name of a composite.
    pub kind: Token,
    /// Its attributes.
    pub attrs: Attrs,
}

/// One thread of a process.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadText {
    /// Where it is.
    pub at: Token,
    /// Its attributes.
    pub attrs: Attrs,
    /// Its flowops.
    pub flowops: Vec<Flowop>,
}

/// One command.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// `set $name = value`, and `define randvar name=$name, …`.
    Set(Token, Expr),
    /// `set mode quit …`; the last word.
    Quit(Token),
    /// `define file` or `define fileset`.
    Files {
        /// Where it is.
        at: Token,
        /// `define file`.
        single: bool,
        /// Its attributes.
        attrs: Attrs,
    },
    /// `define process`.
    Process {
        /// Where it is.
        at: Token,
        /// Its attributes.
        attrs: Attrs,
        /// Its threads.
        threads: Vec<ThreadText>,
    },
    /// `define flowop`: a composite.
    Composite {
        /// Where it is.
        at: Token,
        /// Its attributes and parameters.
        attrs: Attrs,
        /// What it consists of.
        flowops: Vec<Flowop>,
    },
    /// `eventgen rate=…`.
    Rate(Token, Option<Expr>),
    /// `run`, `psrun`: with seconds.
    Run(Token, Option<Expr>),
    /// `echo`, `version`.
    Message(String),
    /// What has no effect, and why.
    Idle(Token, &'static str),
    /// What cannot be done, and what to do instead.
    Refused(Token, &'static str),
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
}

/// Reads a whole text.
pub(crate) fn statements(tokens: &[Token]) -> Result<Vec<Statement>, Fault> {
    let mut parser = Parser { tokens, at: 0 };
    let mut statements = Vec::new();
    while parser.peek().is_some() {
        statements.push(parser.statement()?);
    }
    Ok(statements)
}

/// Reads `$name=value`.
pub(crate) fn setting(tokens: &[Token]) -> Result<(Token, Expr), Fault> {
    let mut parser = Parser { tokens, at: 0 };
    let name = parser.variable()?;
    parser.sign('=')?;
    let value = parser.expression(0)?;
    match parser.peek() {
        None => Ok((name, value)),
        Some(more) => Err(Fault::at(more, "the setting ends here: use --set '$name=value'")),
    }
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    fn fault(&self, what: &str) -> Fault {
        match self.peek().or(self.tokens.last()) {
            Some(token) if self.peek().is_some() => Fault::at(token, what),
            last => Fault {
                line: last.map_or(1, |token| token.line),
                token: String::new(),
                what: format!("the text ends: {what}"),
            },
        }
    }

    fn take(&mut self, what: &str) -> Result<&'a Token, Fault> {
        let token = self.peek().ok_or_else(|| self.fault(what))?;
        self.at += 1;
        Ok(token)
    }

    fn if_sign(&mut self, sign: char) -> bool {
        let is = self.peek().is_some_and(|token| token.is(sign));
        self.at += usize::from(is);
        is
    }

    fn sign(&mut self, sign: char) -> Result<(), Fault> {
        if self.if_sign(sign) { Ok(()) } else { Err(self.fault(&format!("expected '{sign}'"))) }
    }

    fn word(&mut self, what: &str) -> Result<(&'a Token, &'a str), Fault> {
        match self.peek() {
            Some(token @ Token { kind: Kind::Word(word), .. }) => {
                self.at += 1;
                Ok((token, word))
            }
            _ => Err(self.fault(what)),
        }
    }

    fn variable(&mut self) -> Result<Token, Fault> {
        match self.peek() {
            Some(token @ Token { kind: Kind::Variable(_), .. }) => {
                self.at += 1;
                Ok(token.clone())
            }
            _ => Err(self.fault("expected a variable, $name")),
        }
    }

    fn statement(&mut self) -> Result<Statement, Fault> {
        const COMMANDS: &str = "expected a command: set, define, eventgen, run, psrun, create, \
            echo, sleep, list, debug, version, enable, quit";
        let (token, word) = self.word(COMMANDS)?;
        let at = token.clone();
        match word {
            "set" => self.set(),
            "define" => self.define(at),
            "eventgen" => {
                let attrs = self.attrs_if(false)?;
                let rate = attrs.into_iter().find(|attr| attr.name == "rate");
                Ok(Statement::Rate(at, rate.and_then(|attr| attr.value)))
            }
            "run" => Ok(Statement::Run(at, self.seconds()?)),
            "psrun" => self.psrun(at),
            "echo" => self.echo(),
            "version" => Ok(Statement::Message("WML of Filebench 1.4 and 1.5".to_owned())),
            "create" => {
                self.word("expected files, fileset or filesets")?;
                Ok(Statement::Idle(at, "files are made before the run in any case"))
            }
            "sleep" => {
                self.expression(0)?;
                Ok(Statement::Idle(at, "a run starts at once"))
            }
            "list" => {
                self.word("expected fileset or flowop")?;
                Ok(Statement::Idle(at, "the report lists sets and acts"))
            }
            "debug" => {
                self.expression(0)?;
                Ok(Statement::Idle(at, "there are no levels"))
            }
            "quit" => Ok(Statement::Idle(at, "a run ends after its time")),
            "enable" => self.enable(at),
            "domultisync" => {
                self.attrs_if(false)?;
                Ok(Statement::Refused(at, "agents start together: use --agents"))
            }
            "system" => {
                self.take("expected a text")?;
                Ok(Statement::Refused(at, "a program runs no commands of the machine: omit it"))
            }
            _ => {
                self.at -= 1;
                Err(self.fault(COMMANDS))
            }
        }
    }

    fn enable(&mut self, at: Token) -> Result<Statement, Fault> {
        let (_, word) = self.word("expected lathist or multi")?;
        if word == "multi" {
            self.attrs_if(false)?;
            return Ok(Statement::Refused(at, "several machines are agents: use --agents"));
        }
        Ok(Statement::Idle(at, "latencies are recorded in any case"))
    }

    fn seconds(&mut self) -> Result<Option<Expr>, Fault> {
        let kind = self.peek().map(|token| &token.kind);
        let is = matches!(kind, Some(Kind::Number(_) | Kind::Variable(_)));
        is.then(|| self.expression(0)).transpose()
    }

    /// `psrun [-]interval [seconds]`.
    fn psrun(&mut self, at: Token) -> Result<Statement, Fault> {
        let kind = self.peek().map(|token| &token.kind);
        if matches!(kind, Some(Kind::Word(word)) if word.starts_with('-')) {
            self.at += 1;
        } else {
            self.if_sign('-');
            self.seconds()?;
        }
        Ok(Statement::Run(at, self.seconds()?))
    }

    fn echo(&mut self) -> Result<Statement, Fault> {
        match self.take("expected a text")? {
            Token { kind: Kind::Text(text), .. } => Ok(Statement::Message(text.clone())),
            _ => {
                self.at -= 1;
                Err(self.fault("expected a text in quotation marks"))
            }
        }
    }

    fn set(&mut self) -> Result<Statement, Fault> {
        if let Some(Token { kind: Kind::Word(word), .. }) = self.peek()
            && word == "mode"
        {
            self.at += 1;
            let (mode, word) = self.word("expected quit or nousestats")?;
            return match word {
                "quit" => {
                    let (last, _) = self.word("expected timeout, alldone or firstdone")?;
                    Ok(Statement::Quit(last.clone()))
                }
                "nousestats" => Ok(Statement::Idle(mode.clone(), "CPU time is always recorded")),
                _ => Err(Fault::at(mode, "expected quit or nousestats")),
            };
        }
        let name = self.variable()?;
        self.sign('=')?;
        Ok(Statement::Set(name, self.expression(0)?))
    }

    fn define(&mut self, at: Token) -> Result<Statement, Fault> {
        const OBJECTS: &str = "expected file, fileset, process, flowop or randvar";
        let (token, word) = self.word(OBJECTS)?;
        match word {
            "file" => Ok(Statement::Files { at, single: true, attrs: self.attrs()? }),
            "fileset" | "filesets" => {
                Ok(Statement::Files { at, single: false, attrs: self.attrs()? })
            }
            "process" | "processes" => {
                let attrs = self.attrs_if(true)?;
                self.sign('{')?;
                let mut threads = Vec::new();
                while !self.if_sign('}') {
                    threads.push(self.thread()?);
                }
                Ok(Statement::Process { at, attrs, threads })
            }
            "flowop" => {
                let attrs = self.attrs_if(true)?;
                Ok(Statement::Composite { at, attrs, flowops: self.flowops()? })
            }
            "randvar" => self.randvar(token),
            _ => Err(Fault::at(token, OBJECTS)),
        }
    }

    /// `define randvar name=$name, …` is `set $name = randvar(…)`.
    fn randvar(&mut self, at: &Token) -> Result<Statement, Fault> {
        let mut attrs = self.attrs()?;
        let named = attrs.iter().position(|attr| attr.name == "name");
        let name = named.map(|at| attrs.remove(at).value);
        match name {
            Some(Some(Expr::Variable(name))) => Ok(Statement::Set(name, Expr::Randvar(attrs))),
            _ => Err(Fault::at(at, "expected name=$variable")),
        }
    }

    fn thread(&mut self) -> Result<ThreadText, Fault> {
        let (at, word) = self.word("expected thread or '}'")?;
        if word != "thread" {
            return Err(Fault::at(at, "expected thread or '}'"));
        }
        let attrs = self.attrs_if(true)?;
        Ok(ThreadText { at: at.clone(), attrs, flowops: self.flowops()? })
    }

    fn flowops(&mut self) -> Result<Vec<Flowop>, Fault> {
        self.sign('{')?;
        let mut flowops = Vec::new();
        while !self.if_sign('}') {
            let (at, word) = self.word("expected flowop or '}'")?;
            if word != "flowop" {
                return Err(Fault::at(at, "expected flowop or '}'"));
            }
            let (kind, _) = self.word("expected an operation")?;
            flowops.push(Flowop { kind: kind.clone(), attrs: self.attrs_if(true)? });
        }
        Ok(flowops)
    }

    /// Attributes, if any follow: a block or another command may follow as well.
    fn attrs_if(&mut self, braces: bool) -> Result<Attrs, Fault> {
        const NEXT: [&str; 3] = ["flowop", "thread", "define"];
        match self.peek().map(|token| &token.kind) {
            Some(Kind::Word(word)) if !(braces && NEXT.contains(&word.as_str())) => {
                let followed = self.tokens.get(self.at + 1).is_some_and(|token| token.is('='));
                if braces || followed { self.attrs() } else { Ok(Vec::new()) }
            }
            Some(Kind::Variable(_)) => self.attrs(),
            _ => Ok(Vec::new()),
        }
    }

    fn attrs(&mut self) -> Result<Attrs, Fault> {
        let mut attrs = Vec::new();
        loop {
            attrs.push(self.attr(0)?);
            if !self.if_sign(',') {
                return Ok(attrs);
            }
        }
    }

    fn attr(&mut self, depth: usize) -> Result<Attr, Fault> {
        let token = self.take("expected an attribute")?;
        let (name, local) = match &token.kind {
            Kind::Word(word) => (word.clone(), false),
            Kind::Variable(name) => (name.clone(), true),
            _ => return Err(Fault::at(token, "expected an attribute")),
        };
        let value = if self.if_sign('=') { Some(self.expression(depth)?) } else { None };
        Ok(Attr { name, local, value, at: token.clone() })
    }

    /// `a * b`, `a + b`: from left to right, as Filebench reads at most two values.
    fn expression(&mut self, depth: usize) -> Result<Expr, Fault> {
        let mut left = self.value(depth)?;
        let mut count = 0;
        loop {
            let sign = match self.peek().map(|token| &token.kind) {
                Some(Kind::Sign(sign)) if "*+-/".contains(*sign) => *sign,
                _ => return Ok(left),
            };
            self.at += 1;
            count += 1;
            if count > EXPRESSION_MAX {
                return Err(self.fault("the expression is too long"));
            }
            let right = self.value(depth)?;
            left = Expr::Pair(Box::new(left), sign, Box::new(right));
        }
    }

    fn value(&mut self, depth: usize) -> Result<Expr, Fault> {
        if depth > EXPRESSION_MAX {
            return Err(self.fault("brackets are nested too deeply"));
        }
        let token = self.take("expected a value")?;
        Ok(match &token.kind {
            Kind::Number(number) => Expr::Number(*number),
            Kind::Text(text) => Expr::Text(text.clone()),
            Kind::Variable(_) => Expr::Variable(token.clone()),
            Kind::Word(word) => match word.as_str() {
                "true" => Expr::Bool(true),
                "false" => Expr::Bool(false),
                "randvar" if self.if_sign('(') => Expr::Randvar(self.arguments(depth)?),
                "cvar" if self.if_sign('(') => Expr::Cvar(self.arguments(depth)?),
                word => Expr::Text(word.to_owned()),
            },
            Kind::Sign('{') => self.table(depth)?,
            Kind::Sign('(') => {
                let inner = self.expression(depth + 1)?;
                self.sign(')')?;
                inner
            }
            Kind::Sign(_) => return Err(Fault::at(token, "expected a value")),
        })
    }

    fn arguments(&mut self, depth: usize) -> Result<Attrs, Fault> {
        let mut attrs = Vec::new();
        while !self.if_sign(')') {
            attrs.push(self.attr(depth + 1)?);
            if !self.if_sign(',') {
                self.sign(')')?;
                break;
            }
        }
        Ok(attrs)
    }

    fn table(&mut self, depth: usize) -> Result<Expr, Fault> {
        let mut rows = Vec::new();
        loop {
            self.sign('{')?;
            let share = self.expression(depth + 1)?;
            self.sign(',')?;
            let low = self.expression(depth + 1)?;
            self.sign(',')?;
            let high = self.expression(depth + 1)?;
            self.sign('}')?;
            rows.push([share, low, high]);
            if rows.len() > SEGMENTS_MAX {
                return Err(self.fault("the table has too many rows"));
            }
            if !self.if_sign(',') {
                self.sign('}')?;
                return Ok(Expr::Table(rows));
            }
        }
    }
}

//! The workload model language of Filebench, both dialects: `define randvar` and `cached=` of
//! version 1.4, `randvar(…)` and `cvar(…)` of version 1.5.
//!
//! Text → [`lex`] → tokens → [`parse`] → statements → [`expand`] → [`Program`]. What cannot be done
//! over a network is refused with file, line and token; what has no effect is listed in the
//! program's notes.

pub mod expand;
pub mod lex;
mod operations;
pub mod parse;
mod value;

use crate::program::Program;
use std::fmt;

/// Why a text is not a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WmlError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1; 0 for the whole text.
    pub line: u32,
    /// The token, empty at the end of the text.
    pub token: String,
    /// What is wrong with it, and what to do.
    pub what: String,
}

impl fmt::Display for WmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        match self.token.as_str() {
            "" => write!(f, ": {}", self.what),
            token => write!(f, ": at '{token}': {}", self.what),
        }
    }
}

impl std::error::Error for WmlError {}

/// A fault at a token, before the name of the file is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    line: u32,
    token: String,
    what: String,
}

impl Fault {
    fn at(token: &lex::Token, what: impl Into<String>) -> Self {
        Self { line: token.line, token: token.text(), what: what.into() }
    }
}

/// Reads a program.
///
/// `settings` are variables and their values, `$name=value`, that take the place of those in the
/// text.
///
/// # Errors
/// The first fault, with file, line and token.
pub fn read(file: &str, text: &str, settings: &[String]) -> Result<Program, WmlError> {
    let name = |fault: Fault| WmlError {
        file: file.to_owned(),
        line: fault.line,
        token: fault.token,
        what: fault.what,
    };
    let tokens = lex::tokens(text).map_err(name)?;
    let statements = parse::statements(&tokens).map_err(name)?;
    let mut overrides = Vec::new();
    for setting in settings {
        let at = |fault: Fault| WmlError { file: format!("--set {setting}"), ..name(fault) };
        let tokens = lex::tokens(setting).map_err(at)?;
        overrides.push(parse::setting(&tokens).map_err(at)?);
    }
    expand::program(&statements, &overrides).map_err(name)
}

#[cfg(test)]
mod tests;

//! Export rules from the command line or a file, and who is meant by the names in them.

use std::fs;
use std::path::{Path, PathBuf};

use base::limits::EXPORTS_FILE_MAX;
use vfs::share::rules::{RuleError, Rules};

use crate::cli::ServeArgs;
use crate::out::Failure;
use service::shares::System;

/// Where the rules of the share come from.
#[derive(Debug)]
pub enum Exports {
    /// The command line: as long as the server runs.
    Given(Vec<String>),
    /// A file, which may be read again.
    File(PathBuf),
}

impl Exports {
    /// What the options say.
    pub fn from_args(args: &ServeArgs) -> Self {
        match &args.exports {
            Some(file) => Self::File(file.clone()),
            None => Self::Given(args.export.clone()),
        }
    }

    /// The file, if there is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Given(_) => None,
        }
    }

    /// Reads the rules.
    ///
    /// # Errors
    /// The file cannot be read, or a rule is wrong; says which.
    pub fn read(&self) -> Result<Rules, Failure> {
        match self {
            Self::Given(rules) => {
                let wrong = |e: RuleError| {
                    // Each stands for itself: there are no lines to count.
                    let e = if let RuleError::Line { source, .. } = e { *source } else { e };
                    Failure::usage("read --export", &e.to_string(), HINT)
                };
                // One at a time, so that a line end in one does not make two of it.
                if let Some(bad) = rules.iter().find(|rule| rule.contains('\n')) {
                    return Err(wrong(RuleError::Form(bad.clone())));
                }
                Rules::parse(&rules.join("\n"), &System).map_err(wrong)
            }
            Self::File(path) => {
                let tried = format!("read the export rules in {}", path.display());
                let size = fs::metadata(path).map_err(|e| Failure::of(&tried, &e))?.len();
                if size > EXPORTS_FILE_MAX {
                    let failed = format!("it has {size} bytes; {EXPORTS_FILE_MAX} are the most");
                    return Err(Failure::new(&tried, &failed, HINT));
                }
                let text = fs::read_to_string(path).map_err(|e| Failure::of(&tried, &e))?;
                Rules::parse(&text, &System).map_err(|e| Failure::new(&tried, &e.to_string(), HINT))
            }
        }
    }
}

const HINT: &str = "write CLIENT(OPTIONS); docs/howto/export-rules.md has examples";

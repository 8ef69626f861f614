//! Earlier configurations, write the configuration to a file, and the audit log.

use base::text::decimal;
use serde_json::{Value as Json, json};

use super::{CliError, Output, Shell, VerbResult};
use crate::cli::api::Request;
use crate::cli::place::{NodePath, escape};
use crate::cli::show;

/// Entries of the audit log that are shown.
const AUDIT_SHOWN: usize = 50;

impl Shell {
    pub(super) fn history(&self, revision: Option<&str>) -> VerbResult {
        match revision {
            None => {
                let history = self.get("/configuration/history")?;
                Ok(Output::new(show::history(&history), history))
            }
            Some(revision) => {
                let number = number(revision)?;
                let text = self.get(&format!("/configuration/history/{number}"))?;
                Ok(Output::new(show::plain(&text), text))
            }
        }
    }

    pub(super) fn compare(&self, words: &[&str]) -> VerbResult {
        let from = number(words.first().copied().unwrap_or_default())?;
        let to = match words.get(1) {
            Some(word) => number(word)?,
            None => super::read::<super::Node>(self.get("/nodes")?)?.revision,
        };
        let answer = self.get(&format!("/configuration/compare?from={from}&to={to}"))?;
        Ok(Output::new(show::changes(&answer), answer))
    }

    pub(super) fn restore(&mut self, word: &str) -> VerbResult {
        self.nothing_waits()?;
        let body = json!({"revision": number(word)?});
        let answer = self.api.ask(&Request::Post("/configuration/restore".to_owned(), body))?;
        self.return_to_existing()?;
        Ok(Output::new(show::changed(&answer), answer))
    }

    pub(super) fn export(&mut self, path: Option<&str>) -> VerbResult {
        let text = self.get("/configuration")?;
        let plain = show::plain(&text);
        match path {
            None => Ok(Output::new(plain, text)),
            Some(path) => {
                let wrong = |why| CliError::refused(why, "");
                self.outside.write(path, &plain).map_err(wrong)?;
                Ok(Output::nothing())
            }
        }
    }

    pub(super) fn import(&mut self, words: &[&str]) -> VerbResult {
        self.nothing_waits()?;
        let dry = words.contains(&"--dry-run");
        let names: Vec<&&str> = words.iter().filter(|word| **word != "--dry-run").collect();
        let [path] = names.as_slice() else {
            return Err(CliError::usage(
                "`import` takes one file",
                "usage: import FILE [--dry-run]",
            ));
        };
        let wrong = |why| CliError::refused(why, "");
        let text = self.outside.read(path).map_err(wrong)?;
        let url = if dry { "/configuration?dry_run=1" } else { "/configuration" };
        let answer = self.api.ask(&Request::Put(url.to_owned(), text))?;
        if dry {
            return Ok(Output::new(show::would_change(&answer) + "nothing was changed\n", answer));
        }
        self.return_to_existing()?;
        Ok(Output::new(show::changed(&answer), answer))
    }

    /// Of all, or of a place, which may be gone by now.
    pub(super) fn audit(&self, place: &NodePath, path: Option<&str>) -> VerbResult {
        let about = path.map(|path| place.to(path).to_string());
        let query = about.as_ref().map_or_else(String::new, |at| format!("&path={}", escape(at)));
        let answer = self.get(&format!("/audit?limit={AUDIT_SHOWN}{query}"))?;
        let none = answer.get("rows").and_then(Json::as_array).is_some_and(Vec::is_empty);
        let text = match about.filter(|_| none) {
            Some(about) => format!("no entries for {about}\n"),
            None => show::audit(&answer),
        };
        Ok(Output::new(text, answer))
    }

    fn nothing_waits(&self) -> Result<(), CliError> {
        match self.lost() {
            None => Ok(()),
            Some(lost) => Err(CliError::refused(lost, "`commit` or `abort` first")),
        }
    }

    /// The place where we are may have gone.
    fn return_to_existing(&mut self) -> Result<(), CliError> {
        while !self.place.0.is_empty() && !self.exists(&self.place)? {
            self.place = self.place.parent();
        }
        Ok(())
    }
}

fn number(word: &str) -> Result<u64, CliError> {
    let wrong = || CliError::usage(format!("'{word}' is not a revision"), "`history` lists them");
    decimal(word).ok_or_else(wrong)
}

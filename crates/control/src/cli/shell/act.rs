//! Actions, by their name.

use serde_json::{Map, Value as Json, json};

use super::change::hint;
use super::{CliError, Output, Shell, VerbResult};
use crate::cli::api::Request;
use crate::cli::declared::{Action, Property, did_you_mean};
use crate::cli::pending::Before;
use crate::cli::place::{NodePath, escape};
use crate::cli::words::Word;
use crate::cli::{show, value};

impl Shell {
    pub(super) fn act(&mut self, place: &NodePath, name: &str, words: &[Word]) -> VerbResult {
        let context = self.found(place)?.context;
        let Some(action) = context.action(name).cloned() else { return Ok(Output::nothing()) };
        let Before::Server(before) = self.pending.before(place) else {
            let hint = "`commit` first";
            return Err(CliError::refused(format!("{place} is not committed yet"), hint));
        };
        let (parameters, sure) = self.parameters(&action, words)?;
        if action.destructive && !sure {
            let question = format!("{} ({place})", action.help.trim_end_matches('.'));
            match self.outside.confirm(&format!("{question}. Do it?")) {
                Some(true) => {}
                Some(false) => return Ok(Output::nothing()),
                None => {
                    let hint = format!("confirm with `{name} --yes`");
                    return Err(CliError::refused(question, hint));
                }
            }
        }
        let path = format!("/nodes{}/actions/{}", before.url(), escape(name));
        let body = json!({"parameters": parameters});
        let answer = self.api.ask(&Request::Post(path, body))?;
        let result = answer.get("result").cloned().unwrap_or(Json::Null);
        Ok(Output::new(show::result(&result), result))
    }

    /// Parameters by name, or by their order; and whether the user is sure already.
    fn parameters(
        &mut self,
        action: &Action,
        words: &[Word],
    ) -> Result<(Map<String, Json>, bool), CliError> {
        let usage = || show::action_usage(action);
        let mut given = Map::new();
        let mut sure = false;
        for word in words {
            let text = word.text.as_str();
            if matches!(text, "--yes" | "-y") {
                sure = true;
                continue;
            }
            let next = || action.parameters.iter().find(|p| !given.contains_key(&p.name));
            let found = match text.split_once('=').filter(|(name, _)| is_name(name)) {
                Some((name, text)) => Some((named(action, name)?, text)),
                None => next().map(|parameter| (parameter, text)),
            };
            let Some((parameter, text)) = found else {
                let why = format!("unexpected argument '{text}' for {}", action.name);
                return Err(CliError::usage(why, usage()));
            };
            let text = self.read_file(parameter, text)?;
            let wrong =
                |why| CliError::refused(format!("{}: {why}", parameter.name), hint(parameter));
            let value = value::parse(&parameter.kind, &text).map_err(wrong)?;
            given.insert(parameter.name.clone(), value);
        }
        let lacking = action.parameters.iter().find(|p| p.required && !given.contains_key(&p.name));
        match lacking {
            None => Ok((given, sure)),
            Some(parameter) if parameter.is_secret() => {
                let value = self.outside.secret(&parameter.name).ok_or_else(|| {
                    let hint = format!("say {}=@FILE", parameter.name);
                    let why =
                        format!("{} cannot be prompted for without a terminal", parameter.name);
                    CliError::refused(why, hint)
                })?;
                given.insert(parameter.name.clone(), Json::String(value));
                Ok((given, sure))
            }
            Some(parameter) => {
                let why = format!("{} needs {}", action.name, parameter.name);
                Err(CliError::usage(why, usage()))
            }
        }
    }
}

/// Whether what stands before an equals sign can only be meant as the name of a parameter.
fn is_name(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(letter)
}

/// The parameter called `name`. A wrong name must not become the value of the next one.
fn named<'a>(action: &'a Action, name: &str) -> Result<&'a Property, CliError> {
    let found = action.parameters.iter().find(|parameter| parameter.name == name);
    found.ok_or_else(|| {
        let names = || action.parameters.iter().map(|parameter| parameter.name.as_str());
        let hint = match did_you_mean(name, names()) {
            hint if !hint.is_empty() => hint,
            _ => show::action_usage(action),
        };
        CliError::usage(format!("{} has no parameter '{name}'", action.name), hint)
    })
}

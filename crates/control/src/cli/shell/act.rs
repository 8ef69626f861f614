//! Actions, by their name.

use serde_json::{Map, Value as Json, json};

use super::change::hint;
use super::{CliError, Output, Said, Shell};
use crate::cli::api::Request;
use crate::cli::declared::Action;
use crate::cli::pending::Before;
use crate::cli::place::{Place, escape};
use crate::cli::words::Word;
use crate::cli::{show, value};

impl Shell {
    pub(super) fn act(&mut self, place: &Place, name: &str, words: &[Word]) -> Said {
        let context = self.found(place)?.context;
        let Some(action) = context.action(name).cloned() else { return Ok(Output::nothing()) };
        let Before::Server(before) = self.pending.before(place) else {
            let hint = "`commit` first";
            return Err(CliError::refused(format!("{place} is not there yet"), hint));
        };
        let (parameters, sure) = self.parameters(&action, words)?;
        if action.destructive && !sure {
            let question = format!("{} ({place})", action.help.trim_end_matches('.'));
            match self.outside.confirm(&format!("{question}. Do it?")) {
                Some(true) => {}
                Some(false) => return Ok(Output::nothing()),
                None => {
                    let hint = format!("`{name} --yes` does it");
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
            let named = text.split_once('=').and_then(|(name, text)| {
                let parameter = action.parameters.iter().find(|p| p.name == name)?;
                Some((parameter, text))
            });
            let next = || action.parameters.iter().find(|p| !given.contains_key(&p.name));
            let Some((parameter, text)) = named.or_else(|| Some((next()?, text))) else {
                let why = format!("'{text}' is too much for {}", action.name);
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
                    let why = format!("there is nobody to ask for {}", parameter.name);
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

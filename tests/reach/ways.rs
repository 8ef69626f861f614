//! The three ways of administration, with one face.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::api::Api;
use e2e::browser::Browser;
use e2e::process;
use e2e::server::binary;
use serde_json::{Map, Value, json};

/// A property with the value that it is to have: its declaration, and `value`.
pub type Field = Value;

/// Values by the names of properties; of a secret, whether it is set.
pub type Values = BTreeMap<String, Value>;

/// One way. Errors say why it was refused, or what is missing.
pub trait Interface {
    fn name(&self) -> &'static str;
    fn set(&mut self, path: &str, fields: &[Field]) -> Result<(), String>;
    fn unset(&mut self, path: &str, fields: &[Field]) -> Result<(), String>;
    fn read(&mut self, path: &str, fields: &[Field]) -> Result<Values, String>;
    fn create(
        &mut self,
        above: &str,
        noun: &str,
        name: &str,
        fields: &[Field],
    ) -> Result<(), String>;
    fn rename(&mut self, path: &str, to: &str) -> Result<(), String>;
    fn destroy(&mut self, path: &str) -> Result<(), String>;
    /// Has an action done, or only asked for.
    fn act(&mut self, path: &str, action: &Value, ask: bool) -> Result<(), String>;
    /// What went wrong by the way.
    fn complaints(&mut self) -> Vec<String> {
        Vec::new()
    }
}

fn name_of(field: &Field) -> &str {
    field["name"].as_str().unwrap_or_default()
}

fn parent(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// `plimsoll cli`, a run for each thing.
pub struct OnCommandLine {
    state: PathBuf,
    folder: PathBuf,
}

impl OnCommandLine {
    pub fn new(state: &Path, folder: &Path) -> Self {
        Self { state: state.to_owned(), folder: folder.to_owned() }
    }

    /// Runs a script; the values that it prints, one to a line.
    fn run(&self, script: &str) -> Result<Vec<Value>, String> {
        let file = self.folder.join("script");
        fs::write(&file, script).expect("a script");
        let mut command = Command::new(binary());
        command.args(["cli", "--json", "--state"]).arg(&self.state).arg(&file);
        command.current_dir(&self.folder).env("XDG_STATE_HOME", &self.folder);
        let output = process::run(&mut command, process::DEADLINE);
        let wrong = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
        match output.status.code() {
            Some(0) => {}
            Some(2) => return Err(format!("no such command: {wrong}")),
            _ => return Err(wrong),
        }
        let said = String::from_utf8_lossy(&output.stdout);
        said.lines()
            .map(|line| serde_json::from_str(line).map_err(|e| format!("{line}: {e}")))
            .collect()
    }

    /// `name=value`, quoted; what has several lines comes from a file.
    fn assignment(&self, field: &Field) -> String {
        let name = name_of(field);
        let text = match &field["value"] {
            Value::String(text) if text.contains('\n') => {
                fs::write(self.folder.join(name), text).expect("a file");
                return format!("{name}=@{name}");
            }
            Value::String(text) => text.clone(),
            Value::Bool(on) => if *on { "on" } else { "off" }.to_owned(),
            other => other.to_string(),
        };
        format!("{name}='{}'", text.replace('\'', "'\\''"))
    }

    fn assignments(&self, fields: &[Field]) -> String {
        fields.iter().map(|field| format!(" {}", self.assignment(field))).collect()
    }
}

impl Interface for OnCommandLine {
    fn name(&self) -> &'static str {
        "command line"
    }

    fn set(&mut self, path: &str, fields: &[Field]) -> Result<(), String> {
        self.run(&format!("cd {path}/\nset{}\ncommit\n", self.assignments(fields))).map(drop)
    }

    fn unset(&mut self, path: &str, fields: &[Field]) -> Result<(), String> {
        // In one line: some go together, and what waits is checked after each.
        let names: String = fields.iter().map(|field| format!(" {}", name_of(field))).collect();
        self.run(&format!("cd {path}/\nunset{names}\ncommit\n")).map(drop)
    }

    fn read(&mut self, path: &str, fields: &[Field]) -> Result<Values, String> {
        let names: String = fields.iter().map(|field| format!(" {}", name_of(field))).collect();
        let said = self.run(&format!("cd {path}/\nget{names}\n"))?;
        let values = said.iter().filter_map(Value::as_object).flatten();
        let mut found: Values = values.map(|(name, value)| (name.clone(), value.clone())).collect();
        found.retain(|name, _| fields.iter().any(|field| name_of(field) == name));
        for field in fields.iter().filter(|field| field["role"] == "secret") {
            let told = found.entry(name_of(field).to_owned()).or_default();
            *told = json!(
                told.as_str() == Some("(set)") || told["set"] == true || *told == json!(true)
            );
        }
        Ok(found)
    }

    fn create(&mut self, above: &str, _: &str, name: &str, fields: &[Field]) -> Result<(), String> {
        self.run(&format!("{above} create {name}{}\n", self.assignments(fields))).map(drop)
    }

    fn rename(&mut self, path: &str, to: &str) -> Result<(), String> {
        let (above, name) = parent(path);
        self.run(&format!("{above} rename {name} {to}\n")).map(drop)
    }

    fn destroy(&mut self, path: &str) -> Result<(), String> {
        let (above, name) = parent(path);
        self.run(&format!("{above} destroy {name} --yes\n")).map(drop)
    }

    fn act(&mut self, path: &str, action: &Value, ask: bool) -> Result<(), String> {
        let name = name_of(action);
        let help = self.run(&format!("cd {path}/\nhelp {name}\n"));
        help.map_err(|why| format!("no help: {why}"))?;
        if ask && action["destructive"] != true {
            return Ok(());
        }
        // A script is not asked: it must say that it is sure.
        match self.run(&format!("cd {path}/\n{name}\n")) {
            Ok(_) if ask => Err("it was done without a question".to_owned()),
            Err(why) if ask && !why.contains("--yes") && !why.contains("needs") => Err(why),
            Err(why) if why.contains("is not a command, action or context") => Err(why),
            _ => Ok(()),
        }
    }
}

/// Requests to the local socket.
pub struct OverApi(pub Api);

impl OverApi {
    fn change(&self, changes: Value) -> Result<(), String> {
        let (code, answer) = self.0.post("/api/v1/changes", &json!({"changes": changes}));
        if code == 200 { Ok(()) } else { Err(format!("{code}: {}", answer["error"])) }
    }

    fn get(&self, path: &str) -> Result<Value, String> {
        let (code, node) = self.0.get(&format!("/api/v1/nodes{path}"));
        if code == 200 { Ok(node) } else { Err(format!("{code}: {}", node["error"])) }
    }
}

/// What a request sets.
pub fn changes(path: &str, fields: &[Field]) -> Value {
    let one = |field: &Field| {
        let (property, value) = (&field["name"], &field["value"]);
        json!({"set": path, "property": property, "value": value})
    };
    fields.iter().map(one).collect()
}

/// The properties of a request.
pub fn properties(fields: &[Field]) -> Map<String, Value> {
    fields.iter().map(|field| (name_of(field).to_owned(), field["value"].clone())).collect()
}

impl Interface for OverApi {
    fn name(&self) -> &'static str {
        "API"
    }

    fn set(&mut self, path: &str, fields: &[Field]) -> Result<(), String> {
        self.change(changes(path, fields))
    }

    fn unset(&mut self, path: &str, fields: &[Field]) -> Result<(), String> {
        let one = |field: &Field| json!({"unset": path, "property": field["name"]});
        self.change(fields.iter().map(one).collect())
    }

    fn read(&mut self, path: &str, fields: &[Field]) -> Result<Values, String> {
        let node = self.get(path)?;
        let all = node["properties"].as_array().into_iter().flatten();
        let mut found = Values::new();
        for property in all.filter(|one| fields.iter().any(|field| field["name"] == one["name"])) {
            let secret = property["role"] == "secret";
            let value = if secret { &property["set"] } else { &property["value"] };
            found.insert(name_of(property).to_owned(), value.clone());
        }
        Ok(found)
    }

    fn create(&mut self, above: &str, _: &str, name: &str, fields: &[Field]) -> Result<(), String> {
        self.change(json!([{"create": above, "name": name, "properties": properties(fields)}]))
    }

    fn rename(&mut self, path: &str, to: &str) -> Result<(), String> {
        self.change(json!([{"rename": path, "to": to}]))
    }

    fn destroy(&mut self, path: &str) -> Result<(), String> {
        let unsure = self.change(json!([{"destroy": path, "confirm": false}]));
        unsure.expect_err("what is destroyed without a confirmation");
        self.change(json!([{"destroy": path, "confirm": true}]))
    }

    fn act(&mut self, path: &str, action: &Value, ask: bool) -> Result<(), String> {
        let url = format!("/api/v1/nodes{path}/actions/{}", name_of(action));
        // A parameter that no action has: it is refused, and nothing is done.
        const NONE: &str = "no-such-parameter";
        let wrong = json!({"parameters": {NONE: true}});
        let (code, answer) = self.0.post(&url, &wrong);
        if !answer["error"]["failed"].as_str().unwrap_or_default().contains(NONE) {
            return Err(format!("{code}: {}", answer["error"]));
        }
        if !ask {
            let (code, answer) = self.0.post(&url, &json!({"parameters": {}}));
            if code == 404 || code >= 500 {
                return Err(format!("{code}: {}", answer["error"]));
            }
        }
        Ok(())
    }
}

impl Interface for Browser {
    fn name(&self) -> &'static str {
        "browser"
    }

    fn set(&mut self, path: &str, fields: &[Field]) -> Result<(), String> {
        self.ask(&json!({"do": "set", "path": path, "properties": fields})).map(drop)
    }

    fn unset(&mut self, path: &str, fields: &[Field]) -> Result<(), String> {
        self.ask(&json!({"do": "unset", "path": path, "properties": fields})).map(drop)
    }

    fn read(&mut self, path: &str, fields: &[Field]) -> Result<Values, String> {
        let found = self.ask(&json!({"do": "read", "path": path, "properties": fields}))?;
        Ok(found.as_object().cloned().unwrap_or_default().into_iter().collect())
    }

    fn create(
        &mut self,
        above: &str,
        noun: &str,
        name: &str,
        fields: &[Field],
    ) -> Result<(), String> {
        let create = json!({
            "do": "create", "path": above, "noun": noun, "name": name, "properties": fields
        });
        self.ask(&create).map(drop)
    }

    fn rename(&mut self, path: &str, to: &str) -> Result<(), String> {
        self.ask(&json!({"do": "rename", "path": path, "to": to})).map(drop)
    }

    fn destroy(&mut self, path: &str) -> Result<(), String> {
        self.ask(&json!({"do": "destroy", "path": path})).map(drop)
    }

    fn act(&mut self, path: &str, action: &Value, ask: bool) -> Result<(), String> {
        self.ask(&json!({"do": "act", "path": path, "action": action, "invoke": !ask})).map(drop)
    }

    fn complaints(&mut self) -> Vec<String> {
        let told = self.ask(&json!({"do": "complaints"})).expect("an answer");
        told.as_array().into_iter().flatten().map(Value::to_string).collect()
    }
}

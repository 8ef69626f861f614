//! Statements into a program: variables are replaced, composites expanded, names resolved.

mod acts;

use super::Fault;
use super::lex::Token;
use super::parse::{Attrs, Expr, Flowop, Statement, ThreadText};
use super::value::{Scope, View, name_of};
use crate::dist::Dist;
use crate::limits::{SETS_MAX, THREADS_MAX};
use crate::program::{Program, Quit, Thread};
use crate::tree::{Access, SetSpec};
use std::collections::HashMap;

/// A composite.
struct Composite<'a> {
    attrs: &'a Attrs,
    flowops: &'a [Flowop],
}

/// A reference from one act to others by their name.
struct Reference {
    act: usize,
    to: Token,
    name: String,
}

struct Expander<'a> {
    scope: Scope,
    program: Program,
    composites: HashMap<String, Composite<'a>>,
    /// How many were expanded.
    expanded: usize,
    references: Vec<Reference>,
    /// Names of acts, without those of composites.
    names: Vec<String>,
}

/// Expands statements.
pub(crate) fn program(
    statements: &[Statement],
    overrides: &[(Token, Expr)],
) -> Result<Program, Fault> {
    let mut expander = Expander {
        scope: Scope::default(),
        program: Program::default(),
        composites: HashMap::new(),
        expanded: 0,
        references: Vec::new(),
        names: Vec::new(),
    };
    expander.variables(statements, overrides)?;
    for statement in statements {
        expander.object(statement)?;
    }
    for statement in statements {
        if let Statement::Process { at, attrs, threads } = statement {
            expander.process(at, attrs, threads)?;
        }
    }
    expander.finish()
}

impl<'a> Expander<'a> {
    /// All variables first: what is defined may stand before the value that it uses.
    fn variables(
        &mut self,
        statements: &[Statement],
        overrides: &[(Token, Expr)],
    ) -> Result<(), Fault> {
        for statement in statements {
            let Statement::Set(name, expr) = statement else { continue };
            let by_user = overrides.iter().rev().find(|(token, _)| name_of(token) == name_of(name));
            let value = match by_user {
                Some((token, expr)) => self.scope.value(expr, token)?,
                None => self.scope.value(expr, name)?,
            };
            self.scope.globals.insert(name_of(name).to_owned(), value);
        }
        let unused =
            overrides.iter().find(|(token, _)| !self.scope.globals.contains_key(name_of(token)));
        match unused {
            None => Ok(()),
            Some((token, _)) => {
                let mut names: Vec<_> =
                    self.scope.globals.keys().map(|n| format!("${n}")).collect();
                names.sort();
                let what = format!("the text sets no such variable; it sets {}", names.join(", "));
                Err(Fault::at(token, what))
            }
        }
    }

    fn object(&mut self, statement: &'a Statement) -> Result<(), Fault> {
        match statement {
            Statement::Files { at, single, attrs } => self.files(at, *single, attrs)?,
            Statement::Composite { at, attrs, flowops } => {
                let named = attrs.iter().find(|attr| attr.name == "name" && !attr.local);
                let Some(Expr::Text(name)) = named.and_then(|attr| attr.value.as_ref()) else {
                    return Err(Fault::at(at, "a composite has a name="));
                };
                if super::operations::find(name).is_some() || self.composites.contains_key(name) {
                    return Err(Fault::at(at, format!("there is an operation {name} already")));
                }
                self.composites.insert(name.clone(), Composite { attrs, flowops });
            }
            Statement::Rate(at, rate) => {
                let rate = rate.as_ref().map(|rate| self.scope.number(rate, at)).transpose()?;
                self.program.rate = rate.filter(|rate| *rate > 0);
            }
            Statement::Run(at, seconds) => {
                if let Some(seconds) = seconds {
                    let seconds = self.scope.number(seconds, at)?;
                    self.program.seconds = (seconds > 0).then_some(seconds);
                }
            }
            Statement::Quit(token) => {
                self.program.quit = match token.text().as_str() {
                    "timeout" => Quit::Timeout,
                    "alldone" => Quit::AllDone,
                    "firstdone" => Quit::FirstDone,
                    _ => return Err(Fault::at(token, "expected timeout, alldone or firstdone")),
                };
            }
            Statement::Message(text) => self.program.messages.push(text.clone()),
            Statement::Idle(token, why) => {
                self.scope.note(token.line, format!("{} has no effect: {why}", token.text()));
            }
            Statement::Refused(token, instead) => return Err(Fault::at(token, *instead)),
            Statement::Set(..) | Statement::Process { .. } => {}
        }
        Ok(())
    }

    fn files(&mut self, at: &Token, single: bool, attrs: &Attrs) -> Result<(), Fault> {
        const VALID: &[&str] = &[
            "name",
            "path",
            "size",
            "filesize",
            "entries",
            "dirwidth",
            "dirdepthrv",
            "dirgamma",
            "leafdirs",
            "prealloc",
            "paralloc",
            "reuse",
            "trusttree",
            "readonly",
            "writeonly",
            "cached",
        ];
        let spec = {
            let view = View::new(&self.scope, attrs, at, VALID)?;
            if single { single_file(&view, attrs)? } else { file_set(&view, at)? }
        };
        let taken = self.program.sets.iter().any(|other| other.name == spec.name);
        if taken {
            return Err(Fault::at(at, format!("there is a set {} already", spec.name)));
        }
        if self.program.sets.len() >= SETS_MAX {
            return Err(Fault::at(at, format!("more than {SETS_MAX} sets")));
        }
        self.program.sets.push(spec);
        for attr in attrs {
            let why = match attr.name.as_str() {
                "path" => "files are below the folder of the run",
                "paralloc" => "files are made by all threads at once in any case",
                "trusttree" => "files are checked before each run",
                _ => continue,
            };
            self.scope.note(attr.at.line, format!("{} has no effect: {why}", attr.name));
        }
        Ok(())
    }

    fn process(
        &mut self,
        at: &Token,
        attrs: &Attrs,
        threads: &'a [ThreadText],
    ) -> Result<(), Fault> {
        let (process, processes) = {
            let view = View::new(&self.scope, attrs, at, &["name", "instances", "nice"])?;
            (view.required("name")?, view.number_up_to("instances", 1, THREADS_MAX)?)
        };
        self.idle(attrs, &["nice"], "the load of agents is theirs alone");
        for thread in threads {
            const VALID: &[&str] = &["name", "instances", "memsize", "useism", "ioprio"];
            let (name, instances) = {
                let view = View::new(&self.scope, &thread.attrs, &thread.at, VALID)?;
                (view.required("name")?, view.number_up_to("instances", 1, THREADS_MAX)?)
            };
            self.idle(&thread.attrs, &["memsize", "useism"], "buffers are as large as needed");
            self.idle(&thread.attrs, &["ioprio"], "it has no meaning on a server");
            let instances = processes * instances;
            if self.program.instances() + instances > THREADS_MAX {
                return Err(Fault::at(&thread.at, format!("more than {THREADS_MAX} threads")));
            }
            let steps = self.steps(&thread.flowops)?;
            if steps.is_empty() {
                return Err(Fault::at(&thread.at, "the thread has no flowops"));
            }
            let name = format!("{process}/{name}");
            if instances > 0 {
                self.program.threads.push(Thread { name, instances, steps });
            }
        }
        Ok(())
    }

    /// Notes attributes that have no effect.
    fn idle(&mut self, attrs: &Attrs, names: &[&str], why: &str) {
        for attr in attrs.iter().filter(|attr| names.contains(&attr.name.as_str())) {
            self.scope.note(attr.at.line, format!("{} has no effect: {why}", attr.name));
        }
    }

    fn finish(mut self) -> Result<Program, Fault> {
        let whole = |what: &str| Fault { line: 0, token: String::new(), what: what.to_owned() };
        if self.program.threads.is_empty() {
            return Err(whole("no process is defined: there is nothing to run"));
        }
        self.resolve()?;
        self.program.notes = self.scope.notes;
        self.program.notes.sort_by_key(|note| note.line);
        Ok(self.program)
    }
}

/// A name of files: part of a path, so without what leads elsewhere.
fn file_name(view: &View<'_>) -> Result<String, Fault> {
    let name = view.required("name")?;
    let valid = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    if name.chars().all(valid) && !name.starts_with('.') && (1..=128).contains(&name.len()) {
        return Ok(name);
    }
    Err(view.fault("name", "a name of files has letters, digits, '.', '_' and '-', at most 128"))
}

fn single_file(view: &View<'_>, attrs: &Attrs) -> Result<SetSpec, Fault> {
    const OF_SETS: &[&str] = &["entries", "dirwidth", "dirdepthrv", "dirgamma", "leafdirs"];
    if let Some(attr) = attrs.iter().find(|attr| OF_SETS.contains(&attr.name.as_str())) {
        return Err(Fault::at(&attr.at, "one file has no directories: use define fileset"));
    }
    common(view, SetSpec::file(&file_name(view)?, size(view)?))
}

fn file_set(view: &View<'_>, at: &Token) -> Result<SetSpec, Fault> {
    let (entries, leaf_dirs) = (view.number("entries", 0)?, view.number("leafdirs", 0)?);
    if entries + leaf_dirs == 0 {
        return Err(Fault::at(at, "entries= or leafdirs= is missing"));
    }
    if view.get("dirwidth").is_none() {
        return Err(Fault::at(at, "dirwidth= is missing"));
    }
    let width = view.dist("dirwidth", 0)?;
    let depth = view.get("dirdepthrv").map(|_| view.dist("dirdepthrv", 0)).transpose()?;
    let dir_gamma = view.number("dirgamma", 1500)? as f64 / 1000.0;
    let spec = SetSpec::set(&file_name(view)?, entries, width, size(view)?);
    common(view, SetSpec { leaf_dirs, depth, dir_gamma, ..spec })
}

fn size(view: &View<'_>) -> Result<Dist, Fault> {
    let name = if view.get("filesize").is_some() { "filesize" } else { "size" };
    view.dist(name, 1024)
}

fn common(view: &View<'_>, spec: SetSpec) -> Result<SetSpec, Fault> {
    use super::value::Value;
    let prealloc = match view.value("prealloc")? {
        Some(Value::Bool(true)) => 100,
        Some(Value::Bool(false)) | None => 0,
        Some(_) => view.number_up_to("prealloc", 0, 100)? as u8,
    };
    let access = match (view.flag("readonly")?, view.flag("writeonly")?) {
        (true, _) => Access::ReadOnly,
        (false, true) => Access::WriteOnly,
        _ => Access::ReadWrite,
    };
    let cached = view.get("cached").map(|_| view.flag("cached")).transpose()?;
    Ok(SetSpec { prealloc, access, cached, reuse: view.flag("reuse")?, ..spec })
}

//! Flowops into acts, composites into the flowops that they consist of.

use super::{Expander, Reference};
use crate::dist::Dist;
use crate::limits::{ACTS_MAX, COMPOSITES_MAX, FDS_MAX, NAME_MAX, NESTING_MAX};
use crate::program::{Act, Op, Step};
use crate::wml::Fault;
use crate::wml::operations::{Needs, Support, find};
use crate::wml::parse::Flowop;
use crate::wml::value::{Value, View};
use std::collections::HashMap;

/// Attributes of any flowop, as Filebench's grammar has them.
const VALID: &[&str] = &[
    "name",
    "iters",
    "filename",
    "filesetname",
    "iosize",
    "workingset",
    "random",
    "fd",
    "srcfd",
    "opennext",
    "dsync",
    "directio",
    "indexed",
    "target",
    "value",
    "highwater",
    "blocking",
    "noreadahead",
];

/// The name of a flowop with those of the composites around it.
fn full(prefix: &str, name: &str, flowop: &Flowop) -> Result<String, Fault> {
    if prefix.len() + name.len() > NAME_MAX {
        return Err(Fault::at(&flowop.kind, format!("its name has more than {NAME_MAX} bytes")));
    }
    Ok(format!("{prefix}{name}"))
}

impl<'a> Expander<'a> {
    /// Steps of a thread.
    pub(super) fn steps(&mut self, flowops: &'a [Flowop]) -> Result<Vec<Step>, Fault> {
        let mut steps = Vec::new();
        self.flowops(flowops, "", &mut steps)?;
        Ok(steps)
    }

    fn flowops(
        &mut self,
        flowops: &'a [Flowop],
        prefix: &str,
        steps: &mut Vec<Step>,
    ) -> Result<(), Fault> {
        for flowop in flowops {
            let kind = flowop.kind.text();
            match find(&kind) {
                Some(Support::Op(op, needs)) => {
                    let act = self.act(flowop, prefix, op, needs)?;
                    steps.push(Step::Act(act));
                }
                Some(Support::Refused(instead)) => return Err(Fault::at(&flowop.kind, instead)),
                None => self.composite(flowop, &kind, prefix, steps)?,
            }
        }
        Ok(())
    }

    fn act(&mut self, flowop: &Flowop, prefix: &str, op: Op, needs: Needs) -> Result<u32, Fault> {
        let number = self.program.acts.len();
        if number >= ACTS_MAX {
            return Err(Fault::at(&flowop.kind, format!("more than {ACTS_MAX} flowops")));
        }
        let (name, act, target) = {
            let view = View::new(&self.scope, &flowop.attrs, &flowop.kind, VALID)?;
            let name = view.required("name")?;
            let target = view.text("target")?;
            let act = self.read_act(&view, &full(prefix, &name, flowop)?, op)?;
            (name, act, target)
        };
        self.check(&act, flowop, needs)?;
        if let Some(name) = target {
            let to = flowop.attrs.iter().find(|attr| attr.name == "target");
            let to = to.map_or_else(|| flowop.kind.clone(), |attr| attr.at.clone());
            self.references.push(Reference { act: number, to, name });
        }
        self.note(flowop, &act);
        self.program.acts.push(act);
        self.names.push(name);
        Ok(number as u32)
    }

    fn read_act(&self, view: &View<'_>, name: &str, op: Op) -> Result<Act, Fault> {
        let last = FDS_MAX as u64 - 1;
        let attr = if view.get("filename").is_some() { "filename" } else { "filesetname" };
        let set = match view.text(attr)? {
            None => None,
            Some(of) => match self.program.sets.iter().position(|set| set.name == of) {
                Some(number) => Some(number as u32),
                None => {
                    let sets: Vec<_> = self.program.sets.iter().map(|s| s.name.as_str()).collect();
                    let what = format!("no set has the name {of}; there are {}", sets.join(", "));
                    return Err(view.fault(attr, what));
                }
            },
        };
        let indexed = view.get("indexed").map(|_| view.dist("indexed", 0)).transpose()?;
        Ok(Act {
            set,
            indexed,
            fd: view.number_up_to("fd", 0, last)? as u32,
            source: view.number_up_to("srcfd", 0, last)? as u32,
            rotate: view.flag("opennext")?,
            size: view.dist("iosize", 0)?,
            random: view.flag("random")?,
            working_set: view.number("workingset", 0)?,
            dsync: view.flag("dsync")?,
            direct: view.flag("directio")?,
            repeat: view.dist("iters", 1)?,
            value: view.dist("value", u64::from(op == Op::Post || op == Op::Take))?,
            high_water: view.number("highwater", 0)?,
            blocking: view.flag("blocking")?,
            ..Act::new(name, op)
        })
    }

    /// What an operation needs is there.
    fn check(&self, act: &Act, flowop: &Flowop, needs: Needs) -> Result<(), Fault> {
        let fault = |what: &str| Err(Fault::at(&flowop.kind, what));
        let set = act.set.map(|set| &self.program.sets[set as usize]);
        let appends = matches!(act.op, Op::Append | Op::AppendRandom);
        if appends && act.size.constant() == Some(0) {
            return fault("iosize= is missing: appending nothing has no effect");
        }
        match needs {
            Needs::Nothing => Ok(()),
            Needs::File if set.is_none() && act.fd == 0 => {
                fault("filename= or fd= is missing: there is no file to work on")
            }
            Needs::File => Ok(()),
            Needs::Files | Needs::Directories | Needs::LeafDirs if set.is_none() => {
                fault("filesetname= is missing")
            }
            Needs::LeafDirs if set.is_some_and(|set| set.leaf_dirs == 0) => {
                fault("the set has no leaf directories: add leafdirs= to it")
            }
            Needs::Directories if set.is_some_and(|set| set.single) => {
                fault("one file has no directories to list: use define fileset")
            }
            _ => Ok(()),
        }
    }

    /// What has no effect, or another one than in Filebench.
    fn note(&mut self, flowop: &Flowop, act: &Act) {
        let line = flowop.kind.line;
        self.idle(&flowop.attrs, &["noreadahead"], "reading ahead is the server's");
        match (flowop.kind.text().as_str(), act.op) {
            ("aiowrite", _) => {
                let what = "aiowrite ends before the next act starts; aiowait has no effect";
                self.scope.note(line, what.to_owned());
            }
            (_, Op::LimitEvents | Op::LimitActs | Op::LimitTransfers | Op::LimitBytes)
                if self.program.rate.is_none() =>
            {
                let what = format!("{} has no effect: eventgen has no rate", act.op.name());
                self.scope.note(line, what);
            }
            _ => {}
        }
    }

    /// Refuses composites that have no end, or multiply.
    fn count_composite(&mut self, flowop: &Flowop) -> Result<(), Fault> {
        self.expanded += 1;
        if self.scope.locals.len() >= NESTING_MAX {
            let what = format!("composites are nested more than {NESTING_MAX} times");
            return Err(Fault::at(&flowop.kind, what));
        }
        if self.expanded > COMPOSITES_MAX {
            let what = format!("more than {COMPOSITES_MAX} composites");
            return Err(Fault::at(&flowop.kind, what));
        }
        Ok(())
    }

    fn composite(
        &mut self,
        flowop: &Flowop,
        kind: &str,
        prefix: &str,
        steps: &mut Vec<Step>,
    ) -> Result<(), Fault> {
        let Some(composite) = self.composites.get(kind) else {
            return Err(Fault::at(&flowop.kind, "there is no such operation"));
        };
        let (attrs, flowops) = (composite.attrs, composite.flowops);
        self.count_composite(flowop)?;
        let mut locals = HashMap::new();
        for parameter in attrs.iter().filter(|attr| attr.local) {
            if let Some(default) = &parameter.value {
                locals.insert(parameter.name.clone(), self.scope.value(default, &parameter.at)?);
            }
        }
        let mut name = kind.to_owned();
        let mut times = self.iterations(attrs)?;
        for attr in &flowop.attrs {
            let value = match &attr.value {
                Some(expr) => self.scope.value(expr, &attr.at)?,
                None => Value::Bool(true),
            };
            match attr.name.as_str() {
                _ if attr.local => {
                    let declared = attrs.iter().any(|own| own.local && own.name == attr.name);
                    if !declared {
                        let what = format!("{kind} has no such parameter");
                        return Err(Fault::at(&attr.at, what));
                    }
                    locals.insert(attr.name.clone(), value);
                }
                "name" => match value {
                    Value::Text(text) => name = text,
                    _ => return Err(Fault::at(&attr.at, "expected a name")),
                },
                "iters" => match value {
                    Value::Number(number) => times = Dist::fixed(number),
                    Value::Dist(dist) => times = dist,
                    _ => return Err(Fault::at(&attr.at, "expected a number")),
                },
                _ => {
                    let what = "a composite has name, iters and its parameters";
                    return Err(Fault::at(&attr.at, what));
                }
            }
        }
        let within = full(prefix, &name, flowop)? + ".";
        let begin = steps.len();
        steps.push(Step::Begin { times, end: 0 });
        self.scope.locals.push(locals);
        let expanded = self.flowops(flowops, &within, steps);
        self.scope.locals.pop();
        expanded?;
        let end = steps.len();
        if let Step::Begin { end: to, .. } = &mut steps[begin] {
            *to = end;
        }
        steps.push(Step::End { begin });
        Ok(())
    }

    fn iterations(&self, attrs: &[crate::wml::parse::Attr]) -> Result<Dist, Fault> {
        let iters = attrs.iter().find(|attr| attr.name == "iters" && !attr.local);
        match iters.and_then(|attr| Some((attr, attr.value.as_ref()?))) {
            None => Ok(Dist::fixed(1)),
            Some((attr, expr)) => match self.scope.value(expr, &attr.at)? {
                Value::Number(number) => Ok(Dist::fixed(number)),
                Value::Dist(dist) => Ok(dist),
                _ => Err(Fault::at(&attr.at, "expected a number")),
            },
        }
    }

    /// Finds what acts refer to.
    pub(super) fn resolve(&mut self) -> Result<(), Fault> {
        for Reference { act, to, name } in std::mem::take(&mut self.references) {
            let op = self.program.acts[act].op;
            let fits = |of: Op| match op {
                Op::Wake => of == Op::Block,
                Op::Post => of == Op::Take,
                Op::LimitBytes | Op::FinishBytes => of.is_transfer(),
                _ => true,
            };
            let named: Vec<usize> =
                (0..self.names.len()).filter(|n| self.names[*n] == name).collect();
            if named.is_empty() {
                return Err(Fault::at(&to, format!("no flowop has the name {name}")));
            }
            if !named.iter().all(|n| fits(self.program.acts[*n].op)) {
                let what = format!("{} cannot refer to {name}", op.name());
                return Err(Fault::at(&to, what));
            }
            self.program.acts[act].targets = named.into_iter().map(|n| n as u32).collect();
        }
        let without = self
            .program
            .acts
            .iter()
            .find(|act| matches!(act.op, Op::Wake | Op::Post) && act.targets.is_empty());
        match without {
            None => Ok(()),
            Some(act) => {
                let what = format!("{} {} has no target=", act.op.name(), act.name);
                Err(Fault { line: 0, token: act.name.clone(), what })
            }
        }
    }
}

//! From XML to a profile. What this program does not do is refused with file, line and flowop; what
//! has no effect here is listed in the profile's notes.

mod options;
mod value;

use crate::limits::{
    DURATION_MAX, GROUPS_MAX, HOSTS_MAX, NOTES_MAX, RATE_MAX, THREADS_MAX, TRANSFER_MAX,
};
use crate::profile::{Flowop, Group, Op, Profile, Transaction};
use crate::xml::{Attribute, Fault, Item, Reader};
use std::collections::BTreeMap;
use std::fmt;
pub use value::{Hosts, Variables};

/// Why a text is not a profile that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1; 0 for the whole text.
    pub line: u32,
    /// The flowop, if it is one.
    pub flowop: Option<String>,
    /// What is wrong with it, and what to do.
    pub what: String,
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        match &self.flowop {
            Some(flowop) => write!(f, ": flowop {flowop}: {}", self.what),
            None => write!(f, ": {}", self.what),
        }
    }
}

impl std::error::Error for ProfileError {}

/// A fault, before the name of the file is known.
#[derive(Debug)]
struct Refusal {
    line: u32,
    flowop: Option<String>,
    what: String,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self { line: fault.line, flowop: None, what: fault.what }
    }
}

type Read<T> = Result<T, Refusal>;

fn refuse<T>(line: u32, what: impl Into<String>) -> Read<T> {
    Err(Refusal { line, flowop: None, what: what.into() })
}

/// Reads a profile; `variables` are the values of `$name`.
///
/// # Errors
/// The first fault, with file, line and flowop.
pub fn read(file: &str, text: &str, variables: &Variables) -> Result<Profile, ProfileError> {
    let mut loader = Loader { variables, notes: Vec::new(), hosts: Hosts::default() };
    loader.profile(text).map_err(|Refusal { line, flowop, what }| ProfileError {
        file: file.to_owned(),
        line,
        flowop,
        what,
    })
}

/// Reads one profile.
struct Loader<'a> {
    variables: &'a Variables,
    notes: Vec<String>,
    hosts: Hosts,
}

/// The begin of an element.
struct Element {
    name: String,
    attributes: Vec<Attribute>,
    line: u32,
}

/// The next element within the one that is open, or its end.
fn child(reader: &mut Reader<'_>) -> Read<Option<Element>> {
    Ok(match reader.next_item()? {
        Some(Item::Open { name, attributes, line }) => Some(Element { name, attributes, line }),
        Some(Item::Close) | None => None,
    })
}

impl Element {
    fn is(&self, name: &str) -> Read<()> {
        if self.name == name {
            return Ok(());
        }
        refuse(self.line, format!("element <{}>, expected <{name}>", self.name))
    }

    fn only(&self, names: &[&str]) -> Read<()> {
        match self.attributes.iter().find(|a| !names.contains(&a.name.as_str())) {
            Some(other) => {
                refuse(other.line, format!("<{}> has no attribute {}", self.name, other.name))
            }
            None => Ok(()),
        }
    }

    fn get(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|a| a.name == name)
    }
}

impl Loader<'_> {
    fn profile(&mut self, text: &str) -> Read<Profile> {
        let mut reader = Reader::new(text)?;
        let Some(root) = child(&mut reader)? else {
            return refuse(0, "no <profile> in this text");
        };
        root.is("profile")?;
        root.only(&["name"])?;
        let name = root.get("name").map_or_else(|| "profile".to_owned(), |a| a.value.clone());
        let mut groups: Vec<Group> = Vec::new();
        while let Some(element) = child(&mut reader)? {
            element.is("group")?;
            if groups.len() >= GROUPS_MAX {
                return refuse(element.line, format!("more than {GROUPS_MAX} groups"));
            }
            let group = self.group(&mut reader, &element, groups.len())?;
            groups.push(group);
            let threads: u64 = groups.iter().map(|g| u64::from(g.threads)).sum();
            if threads > u64::from(THREADS_MAX) {
                return refuse(element.line, format!("more than {THREADS_MAX} threads in all"));
            }
        }
        // What follows the end of the document is a fault of its own.
        child(&mut reader)?;
        if groups.is_empty() {
            return refuse(root.line, "the profile has no <group>");
        }
        let profile = Profile { name, groups, notes: std::mem::take(&mut self.notes) };
        if profile.hosts().len() > HOSTS_MAX {
            return refuse(root.line, format!("more than {HOSTS_MAX} hosts"));
        }
        Ok(profile)
    }

    fn group(&mut self, reader: &mut Reader<'_>, element: &Element, n: usize) -> Read<Group> {
        element.only(&["name", "nthreads", "nprocs"])?;
        let threads = match (element.get("nthreads"), element.get("nprocs")) {
            (Some(threads), None) => threads,
            (None, Some(processes)) => {
                self.note("nprocs: processes are threads here".to_owned());
                processes
            }
            (Some(_), Some(_)) => {
                return refuse(element.line, "<group> has both nthreads and nprocs");
            }
            (None, None) => return refuse(element.line, "<group> has neither nthreads nor nprocs"),
        };
        let line = threads.line;
        let number = self.number(&threads.value, line)?;
        let threads = match u32::try_from(number) {
            Ok(threads @ 1..=THREADS_MAX) => threads,
            _ => {
                let what = format!("{} {number}, expected 1 to {THREADS_MAX}", threads.name);
                return refuse(line, what);
            }
        };
        let name =
            element.get("name").map_or_else(|| format!("group {}", n + 1), |a| a.value.clone());
        let mut transactions = Vec::new();
        while let Some(inner) = child(reader)? {
            inner.is("transaction")?;
            transactions.push(self.transaction(reader, &inner)?);
        }
        if transactions.is_empty() {
            return refuse(element.line, "<group> has no <transaction>");
        }
        let mut group = Group { name, threads, transactions };
        connections(&mut group)?;
        Ok(group)
    }

    fn transaction(&mut self, reader: &mut Reader<'_>, element: &Element) -> Read<Transaction> {
        element.only(&["name", "iterations", "duration", "rate"])?;
        let mut transaction = Transaction {
            line: element.line,
            iterations: 1,
            duration_ns: None,
            rate: None,
            flowops: Vec::new(),
        };
        if let Some(Attribute { value, line, .. }) = element.get("iterations") {
            transaction.iterations = self.number(value, *line)?;
        }
        if let Some(Attribute { value, line, .. }) = element.get("duration") {
            let ns = self.nanoseconds(value, *line)?;
            if ns == 0 || u128::from(ns) > DURATION_MAX.as_nanos() {
                return refuse(*line, format!("duration {value:?}, expected up to one day"));
            }
            transaction.duration_ns = Some(ns);
        }
        if let Some(Attribute { value, line, .. }) = element.get("rate") {
            let number = self.number(value, *line)?;
            match u32::try_from(number) {
                Ok(rate @ 1..=RATE_MAX) => transaction.rate = Some(rate),
                _ => return refuse(*line, format!("rate {number}, expected 1 to {RATE_MAX}")),
            }
        }
        while let Some(inner) = child(reader)? {
            inner.is("flowop")?;
            transaction.flowops.push(self.flowop(&inner)?);
            if let Some(nested) = child(reader)? {
                return refuse(nested.line, format!("<{}> within <flowop>", nested.name));
            }
        }
        if transaction.flowops.is_empty() && transaction.duration_ns.is_some() {
            return refuse(element.line, "<transaction> by duration has no <flowop>");
        }
        check_rsize(&transaction)?;
        Ok(transaction)
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// Which connection a flowop without a number means: that without a number if the thread opens one,
/// else the first that it opens. Each one that is used must be opened by some flowop before.
fn connections(group: &mut Group) -> Read<()> {
    let opened: Vec<u32> = group
        .transactions
        .iter()
        .flat_map(|t| &t.flowops)
        .filter(|f| f.endpoint().is_some())
        .map(|f| f.conn)
        .collect();
    let any = if opened.contains(&0) { Some(0) } else { opened.first().copied() };
    let mut protocols = BTreeMap::new();
    for flowop in group.transactions.iter_mut().flat_map(|t| &mut t.flowops) {
        let uses = !matches!(flowop.op, Op::Think { .. } | Op::Nop);
        if flowop.conn == 0 && flowop.endpoint().is_none() && uses {
            flowop.conn = any.unwrap_or(0);
        }
        let fault = |what: String| Refusal {
            line: flowop.line,
            flowop: Some(flowop.op.name().to_owned()),
            what,
        };
        if let Some(endpoint) = flowop.endpoint() {
            protocols.insert(flowop.conn, endpoint.protocol);
        } else if uses {
            let Some(protocol) = protocols.get(&flowop.conn) else {
                return Err(fault(format!("connection {} is not open here", flowop.conn)));
            };
            options::fits(&flowop.op, *protocol).map_err(fault)?;
        }
    }
    Ok(())
}

/// The other end transfers `rsize` bytes a call: so these must come out even, in a flowop, or over
/// all iterations if the transaction has no other flowop.
fn check_rsize(transaction: &Transaction) -> Read<()> {
    let alone = transaction.flowops.len() == 1;
    for flowop in &transaction.flowops {
        let (Op::Write(transfer) | Op::Read(transfer)) = &flowop.op else { continue };
        let Some(rsize) = transfer.rsize else { continue };
        let (size, rsize) = (u64::from(transfer.size.max), u64::from(rsize));
        let bytes = size.saturating_mul(flowop.count);
        let over_all = match transaction.duration_ns {
            Some(_) => true,
            None => size.saturating_mul(transaction.iterations).is_multiple_of(rsize),
        };
        let even = bytes.is_multiple_of(rsize) || (flowop.count == 1 && alone && over_all);
        if !even {
            let what = format!("rsize {rsize} does not divide the {bytes} bytes of size × count");
            let name = flowop.op.name().to_owned();
            return Err(Refusal { line: flowop.line, flowop: Some(name), what });
        }
    }
    Ok(())
}

/// Whether a size may be transferred.
fn is_size(bytes: u64) -> Option<u32> {
    u32::try_from(bytes).ok().filter(|bytes| (1..=TRANSFER_MAX).contains(bytes))
}

/// A flowop as it is built from its options.
fn flowop_of(line: u32, op: Op) -> Flowop {
    Flowop { line, conn: 0, count: 1, canfail: false, timeout_ns: None, op }
}

#[cfg(test)]
mod tests;

//! What is copied and what is not, with the patterns of rsync: the first rule with a pattern that
//! matches a name decides; a name that none matches is copied. What is below a directory that is
//! not copied is not looked at.
//!
//! A pattern that begins with `/` is matched against the whole path from the top, any other against
//! its end, at the begin of a name. One that ends with `/` matches directories only. `*` stands for
//! any bytes but `/`, `**` for any bytes, `?` for one byte but `/`, `[…]` for one of a set, and `\`
//! makes what follows literal. A pattern that ends with `/***` matches a directory and all below.

use wire::dsync::{Bytes, Rule};

use crate::error::SyncError;

/// The rules of a run.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Compiled>,
}

#[derive(Debug, Clone)]
struct Compiled {
    include: bool,
    anchored: bool,
    directories: bool,
    /// Whether the pattern is held against more than a name.
    path: bool,
    pattern: Vec<u8>,
    /// The pattern before `/***`.
    below: Option<Vec<u8>>,
}

impl Rules {
    /// Takes rules, in their order.
    ///
    /// # Errors
    /// [`SyncError::Rule`]: a pattern that is empty, or would cost more than its length.
    pub fn new(rules: &[Rule]) -> Result<Self, SyncError> {
        Ok(Self { rules: rules.iter().map(compile).collect::<Result<_, _>>()? })
    }

    /// Whether an entry is carried. Its directory is.
    pub fn carries(&self, path: &[u8], directory: bool) -> bool {
        self.rules.iter().find(|rule| rule.fits(path, directory)).is_none_or(|rule| rule.include)
    }

    /// Whether a file is carried, and each directory on the way to it.
    pub fn carries_way(&self, path: &[u8]) -> bool {
        let ends = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at);
        ends.into_iter().all(|end| self.carries(&path[..end], true)) && self.carries(path, false)
    }
}

fn compile(rule: &Rule) -> Result<Compiled, SyncError> {
    let wrong = || SyncError::Rule(String::from_utf8_lossy(&rule.pattern.0).into_owned());
    let mut pattern = rule.pattern.0.clone();
    // More than two of them could cost the length of a path to the power of their number.
    let doubles = pattern.windows(2).filter(|two| two == b"**").count();
    let below = pattern.strip_suffix(b"/***").map(<[u8]>::to_vec);
    if doubles > if below.is_some() { 4 } else { 2 } {
        return Err(wrong());
    }
    let anchored = pattern.first() == Some(&b'/');
    let directories = pattern.last() == Some(&b'/');
    if directories {
        pattern.pop();
    }
    let without = |mut pattern: Vec<u8>| {
        if anchored && !pattern.is_empty() {
            pattern.remove(0);
        }
        pattern
    };
    let (pattern, below) = (without(pattern), below.map(without));
    if pattern.is_empty() {
        return Err(wrong());
    }
    let path = pattern.contains(&b'/') || pattern.windows(2).any(|two| two == b"**");
    Ok(Compiled { include: rule.include, anchored, directories, path, pattern, below })
}

impl Compiled {
    fn fits(&self, path: &[u8], directory: bool) -> bool {
        if self.directories && !directory {
            return false;
        }
        if let Some(below) = &self.below
            && directory
            && self.held(below, path)
        {
            return true;
        }
        self.held(&self.pattern, path)
    }

    fn held(&self, pattern: &[u8], path: &[u8]) -> bool {
        if self.anchored {
            return fits(pattern, path);
        }
        if !self.path {
            let start = path.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
            return fits(pattern, &path[start..]);
        }
        let starts = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at + 1);
        fits(pattern, path) || starts.into_iter().any(|at| fits(pattern, &path[at..]))
    }
}

/// Behind which star, and from where in the text.
type Star = (usize, usize);

/// Whether a pattern fits all of `text`. It costs at most the product of their lengths for each
/// kind of star: a later star makes going back to an earlier one of its kind needless.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to continue after the last `*` and after the last `**`: in the pattern, in the text.
    let (mut single, mut double): (Option<Star>, Option<Star>) = (None, None);
    loop {
        if pattern[p..].starts_with(b"**") {
            p += pattern[p..].iter().take_while(|b| **b == b'*').count();
            (double, single) = (Some((p, t)), None);
            continue;
        }
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            single = Some((p, t));
            continue;
        }
        if p == pattern.len() && t == text.len() {
            return true;
        }
        if let Some(length) = one(&pattern[p..], text.get(t)) {
            (p, t) = (p + length, t + 1);
            continue;
        }
        // The last star takes one byte more; where it may not, the one before it.
        let longer = |(p, t): Star, stop: bool| {
            text.get(t).filter(|b| !stop || **b != b'/').map(|_| (p, t + 1))
        };
        single = single.and_then(|at| longer(at, true));
        if let Some(at) = single {
            (p, t) = at;
            continue;
        }
        double = double.and_then(|at| longer(at, false));
        let Some(at) = double else { return false };
        (p, t) = at;
    }
}

/// Whether the front of a pattern, which is no star, fits a byte: how long that front is.
fn one(pattern: &[u8], byte: Option<&u8>) -> Option<usize> {
    let byte = *byte?;
    match pattern {
        [b'?', ..] => (byte != b'/').then_some(1),
        [b'\\', literal, ..] => (byte == *literal).then_some(2),
        [b'[', ..] => set(pattern, byte),
        [literal, ..] => (byte == *literal).then_some(1),
        [] => None,
    }
}

/// A set in brackets; one that does not end is a bracket.
fn set(pattern: &[u8], byte: u8) -> Option<usize> {
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let first = 1 + usize::from(negated);
    let close = pattern.iter().skip(first + 1).position(|b| *b == b']');
    let Some(close) = close.map(|n| n + first + 1) else {
        return (byte == b'[').then_some(1);
    };
    let (mut members, mut found) = (&pattern[first..close], false);
    while let [low, rest @ ..] = members {
        match rest {
            [b'-', high, after @ ..] => {
                found |= (*low..=*high).contains(&byte);
                members = after;
            }
            _ => {
                found |= *low == byte;
                members = rest;
            }
        }
    }
    (found != negated && byte != b'/').then_some(close + 1)
}

/// A rule, from its words.
pub fn rule(include: bool, pattern: &[u8]) -> Rule {
    Rule { include, pattern: Bytes(pattern.to_vec()) }
}

#[cfg(test)]
mod tests;

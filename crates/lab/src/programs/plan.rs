//! What a target can carry out of a program; refused before the start, with the alternative.

use crate::client::{Target, lacks_files};
use lab_program::program::{Note, Op, Program};

/// Why a target cannot carry out a program.
pub fn refusal(target: &Target, program: &Program) -> Option<String> {
    let first = program.acts.iter().find(|act| act.op.is_call());
    if let Some((why, act)) = lacks_files(target).zip(first) {
        let (name, op) = (&act.name, act.op.name());
        return Some(format!("{target} cannot carry out {name} (flowop {op}): {why}"));
    }
    let uncached = program.sets.iter().find(|set| set.cached == Some(false))?;
    (*target != Target::Null).then(|| {
        format!(
            "the set {} is to be read uncached, which is not proved for programs: remove \
             cached=false, or use --set '$cached=true'",
            uncached.name
        )
    })
}

/// What has another effect on the target than in Filebench.
pub fn notes(target: &Target, program: &Program) -> Vec<Note> {
    let mut notes = program.notes.clone();
    let mut add = |text: String| notes.push(Note { line: 0, text });
    if program.acts.iter().any(|act| act.direct) {
        add(format!("directio has no effect on {target}"));
    }
    let closes = program.acts.iter().any(|act| act.op == Op::Close);
    if closes && !target.has_close() {
        add("closefile is no call: the protocol has none; fsync commits what was written".into());
    }
    notes
}

#[cfg(test)]
mod tests;

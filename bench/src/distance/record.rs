//! The raw figures as JSON, and those of an earlier run: a whole run takes hours, and may be done
//! in portions.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::data::Job;
use super::link::{Kind, Point};
use super::turn::Figure;
use super::{Gap, Outcome, Row, Wanted, peers};

/// The row of an element.
#[derive(Serialize, Deserialize)]
struct Of {
    rtt_ms: f64,
    link: Kind,
    job: Job,
    program: String,
}

#[derive(Deserialize)]
struct Measured {
    of: Of,
    runs: Vec<Figure>,
}

#[derive(Deserialize)]
struct Missing {
    of: Of,
    #[serde(flatten)]
    gap: Gap,
}

/// The part of the file that is read again.
#[derive(Deserialize)]
struct Earlier {
    condemned: usize,
    rows: Vec<Measured>,
    gaps: Vec<Missing>,
}

/// What must be equal for figures to be in one table. Of programs only those that both have.
const SAME: [&str; 3] = ["machine", "settings", "notes"];

/// Everything, as it is written.
pub fn as_json(wanted: &Wanted, outcome: &Outcome) -> Value {
    let of = |(n, job, program): &Row| {
        let Point { rtt_ms, kind: link } = outcome.points.get(*n)?.clone();
        Some(Of { rtt_ms, link, job: *job, program: (*program).to_owned() })
    };
    let rows: Vec<_> =
        outcome.rows.iter().map(|(row, runs)| json!({"of": of(row), "runs": runs})).collect();
    let gaps: Vec<_> = outcome
        .gaps
        .iter()
        .map(|(row, gap)| json!({"of": of(row), "why": gap.why, "late": gap.late}))
        .collect();
    let pairs = |pairs: &[(&'static str, String)]| -> Value {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
    };
    json!({
        "machine": lab::proc::machine(),
        "settings": {"rate": wanted.rate, "rate_bits": outcome.rate, "size": wanted.size,
            "files": wanted.files, "most": wanted.most},
        "programs": pairs(&outcome.programs),
        "notes": pairs(&outcome.notes),
        "condemned": outcome.condemned,
        "rows": rows,
        "gaps": gaps,
    })
}

/// Adds the figures of an earlier run from a file; a missing file has none.
///
/// # Errors
/// It is of another machine, of other settings or programs, or not such a file.
pub fn resume(path: &Path, wanted: &Wanted, outcome: &mut Outcome) -> io::Result<()> {
    let text = match fs::read_to_string(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        text => text?,
    };
    let wrong = |what: &str| io::Error::other(format!("{}: {what}", path.display()));
    let value: Value = serde_json::from_str(&text).map_err(|e| wrong(&e.to_string()))?;
    let now = as_json(wanted, outcome);
    for part in SAME {
        if value[part] != now[part] {
            let (was, is) = (&value[part], &now[part]);
            return Err(wrong(&format!("has another {part}: {was}, not {is}")));
        }
    }
    for name in peers::NAMES {
        let Some(was) = value["programs"][name].as_str() else { continue };
        match now["programs"][name].as_str() {
            Some(is) if is == was => {}
            Some(is) => return Err(wrong(&format!("has {name} {was:?}, not {is:?}"))),
            None => outcome.programs.push((name, was.to_owned())),
        }
    }
    let earlier: Earlier = serde_json::from_value(value).map_err(|e| wrong(&e.to_string()))?;
    outcome.condemned += earlier.condemned;
    for Measured { of, runs } in earlier.rows {
        let row = outcome.row(&of).ok_or_else(|| wrong("has a program that is not known"))?;
        outcome.rows.insert(row, runs);
    }
    for Missing { of, gap } in earlier.gaps {
        let row = outcome.row(&of).ok_or_else(|| wrong("has a program that is not known"))?;
        outcome.gaps.insert(row, gap);
    }
    Ok(())
}

impl Outcome {
    /// The entry of a row, created where there is none yet.
    fn row(&mut self, of: &Of) -> Option<Row> {
        let program = peers::NAMES.into_iter().find(|name| *name == of.program)?;
        let point = Point { rtt_ms: of.rtt_ms, kind: of.link };
        let n = self.points.iter().position(|known| *known == point).unwrap_or_else(|| {
            self.points.push(point);
            self.points.len() - 1
        });
        if !self.jobs.contains(&of.job) {
            self.jobs.push(of.job);
            self.jobs.sort();
        }
        Some((n, of.job, program))
    }
}

#[cfg(test)]
mod tests;

//! `analytics show --cluster`: the servers of all resources are queried from any head, with the
//! token and the certificate in their state directories; what is missing is named by head.

use std::net::IpAddr;
use std::path::Path;

use analytics::query::Data;
use analytics::query::merge::{MergeError, gaps, merge};
use base::clock::{NS_PER_S, wall_ns};
use base::limits::{API_TOP_DEFAULT, API_TOP_MAX};
use base::local_time::LocalClock;
use base::protocol::ports::ADMIN;
use control::client::{Client, ClientError};
use head::config::{Config, Resource};
use head::local::{self, Command, ResourceStatus};
use serde::Serialize;
use serde_json::json;

use super::{encode, point_of_time, table};
use crate::cli::ShowArgs;
use crate::out::{self, Failure, OrFailure};

/// An interval without data of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Gap {
    resource: String,
    /// The head that has none; empty if no head is known.
    head: String,
    /// In seconds since the epoch.
    from: u64,
    /// Not included.
    to: u64,
    /// Why, as far as it is known.
    why: String,
}

/// Shows a statistic of all resources as one.
///
/// # Errors
/// The configuration cannot be read, no server answers, or the question is wrong.
pub fn show(args: &ShowArgs, config: &Path) -> Result<(), Failure> {
    let tried = format!("show {} of the cluster", args.stat);
    let config = Config::read(config).map_err(|e| Failure::of(&tried, &e))?;
    let clock = LocalClock::of_machine();
    let now = wall_ns() / NS_PER_S;
    let time = |text: &Option<String>| -> Result<Option<u64>, Failure> {
        let at = text.as_deref().map(|text| point_of_time(text, &clock)).transpose()?.flatten();
        Ok(at.map(|at| if at < 0 { now.saturating_add_signed(at) } else { at.unsigned_abs() }))
    };
    let (from, to) = (time(&args.from)?.unwrap_or(now - 60), time(&args.to)?.unwrap_or(now));
    let mut question = Question { stat: &args.stat, from, to, step: args.step.map(u64::from) };
    let (mut answers, mut gaps) = query_all(&tried, &config, &question, now)?;
    if let Some(step) = coarsest(&answers) {
        question.step = Some(step);
        (answers, gaps) = query_all(&tried, &config, &question, now)?;
    }
    let top = args.top.map_or(API_TOP_DEFAULT, |top| top as usize);
    let mut data = merge(&answers, top).map_err(|e| Failure::of(&tried, &e))?;
    if args.json {
        let mut shown = serde_json::to_value(&data).or_failure(&tried)?;
        shown["gaps"] = json!(gaps);
        return out::print(&format!("{shown}\n"));
    }
    if args.csv {
        return out::print(&data.csv(true));
    }
    let said = gaps.iter().map(|gap| gap.sentence(&clock));
    let notes: Vec<String> = data.note.take().into_iter().chain(said).collect();
    data.note = (!notes.is_empty()).then(|| notes.join("\n"));
    out::print(&table::show(&data, &clock))
}

/// The query for each server.
struct Question<'a> {
    stat: &'a str,
    from: u64,
    to: u64,
    step: Option<u64>,
}

impl Question<'_> {
    fn path(&self) -> String {
        let Self { stat, from, to, step } = self;
        let step = step.map_or_else(String::new, |step| format!("&step={step}"));
        // Rows that one server leaves out could be among the greatest of all.
        let stat = encode(stat);
        format!("/api/v1/analytics/data?stat={stat}&from={from}&to={to}{step}&top={API_TOP_MAX}")
    }
}

/// The step of all answers if they have several.
fn coarsest(answers: &[Data]) -> Option<u64> {
    match merge(answers, 0) {
        Err(MergeError::Step(step)) => Some(step),
        _ => None,
    }
}

/// Queries the servers of all resources.
fn query_all(
    tried: &str,
    config: &Config,
    question: &Question<'_>,
    now: u64,
) -> Result<(Vec<Data>, Vec<Gap>), Failure> {
    let status = local::request(&config.socket(), &Command::Status);
    let states = status.map(|answer| answer.status.resources).unwrap_or_default();
    let (mut answers, mut missing, mut last) = (Vec::new(), Vec::new(), None);
    for resource in &config.resources {
        let state = states.iter().find(|one| one.name == resource.name);
        match query_one(resource, question) {
            Ok(data) => {
                let found = gaps(&data, now);
                missing.extend(found.into_iter().map(|gap| Gap::of(&resource.name, state, gap)));
                answers.push(data);
            }
            Err(error @ ClientError::Refused { .. }) => {
                return Err(super::unreachable(tried, &error));
            }
            Err(error) => {
                let mut gap = Gap::of(&resource.name, state, (question.from, question.to));
                gap.why = error.to_string();
                missing.push(gap);
                last = Some(error);
            }
        }
    }
    match (answers.is_empty(), last) {
        (true, Some(error)) => Err(super::unreachable(tried, &error)),
        (true, None) => Err(Failure::new(tried, "the cluster has no resources", "")),
        (false, _) => Ok((answers, missing)),
    }
}

fn query_one(resource: &Resource, question: &Question<'_>) -> Result<Data, ClientError> {
    let port = ADMIN.number.saturating_add(resource.port_offset);
    let url = match resource.address.address {
        IpAddr::V4(address) => format!("https://{address}:{port}"),
        IpAddr::V6(address) => format!("https://[{address}]:{port}"),
    };
    let state = &resource.state;
    let client = Client::remote(&url, &state.join("api-token"), &state.join("certificate.pem"))?;
    let text = client.get(&question.path())?;
    serde_json::from_slice(&text)
        .map_err(|e| ClientError::Broken { at: client.at(), source: e.into() })
}

impl Gap {
    /// An interval without data: if the resource was taken over in it, of the former owner.
    fn of(resource: &str, state: Option<&ResourceStatus>, (from, to): (u64, u64)) -> Self {
        let last = state.and_then(|state| state.last.as_ref());
        // The server serves within the second in which its first data are.
        let last = last.filter(|last| !last.from.is_empty() && (from..=to + 1).contains(&last.at));
        let owner = state.and_then(|state| state.owner.clone());
        Self {
            resource: resource.to_owned(),
            head: last.map_or(owner.unwrap_or_default(), |last| last.from.clone()),
            from,
            to,
            why: last.map_or_else(String::new, |last| format!("taken over by {}", last.to)),
        }
    }

    fn sentence(&self, clock: &LocalClock) -> String {
        let Self { resource, head, from, to, why } = self;
        let interval = clock.show_interval(from.cast_signed(), to.cast_signed());
        let head = if head.is_empty() { "any head" } else { head };
        let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
        format!("{resource}: no data from {head}, {interval}{why}.")
    }
}

#[cfg(test)]
mod tests;

//! `plimsoll analytics`: statistics on the terminal. It uses the API as the browser does.

mod cluster;
mod table;

use analytics::query::Data;
use base::local_time::{self, LocalClock};
use control::client::{Client, ClientError};
use serde::Deserialize;

use super::{print, print_answer, unreachable};
use crate::cli::{AnalyticsCommand, ShowArgs};
use crate::out::{self, Failure};

/// A statistic in the server's list, as far as we print it.
#[derive(Debug, Deserialize)]
struct Listed {
    id: String,
    sentence: String,
    unit: String,
    breakdowns: Vec<Breakdown>,
}

/// One breakdown of a listed statistic.
#[derive(Debug, Deserialize)]
struct Breakdown {
    id: String,
}

/// Runs the command.
///
/// # Errors
/// No server, or wrong usage for what the server does not know.
pub fn run(command: &AnalyticsCommand) -> Result<(), Failure> {
    match command {
        AnalyticsCommand::List(args) => print(("list the statistics", ""), args, LIST, list),
        AnalyticsCommand::Show(args) if args.follow => follow(args),
        AnalyticsCommand::Show(args) => match &args.cluster {
            Some(config) => cluster::show(args, config),
            None => show(args),
        },
    }
}

fn list(listed: &Vec<Listed>) -> String {
    let mut lines = String::new();
    for one in listed {
        lines += &format!("{:<28} {} ({})\n", one.id, one.sentence, one.unit);
        let by: Vec<String> = one.breakdowns.iter().map(|b| format!("[{}]", b.id)).collect();
        if !by.is_empty() {
            lines += &format!("{:<28} {}\n", "", by.join(" "));
        }
    }
    lines
}

const LIST: &str = "/api/v1/analytics/statistics";

fn show(args: &ShowArgs) -> Result<(), Failure> {
    let tried = format!("show {}", args.stat);
    let path = path(args)?;
    let server = super::server(&args.server)?;
    let text = server.get(&path).map_err(|e| refused(&tried, args, &server, &e))?;
    let clock = LocalClock::of_machine();
    let show = |data: &Data| if args.csv { data.csv(true) } else { table::show(data, &clock) };
    print_answer(&tried, args.json, &text, show)
}

fn path(args: &ShowArgs) -> Result<String, Failure> {
    let mut path = format!("/api/v1/analytics/data?stat={}", encode(&args.stat));
    let clock = LocalClock::of_machine();
    for (name, time) in [("from", &args.from), ("to", &args.to)] {
        let at = time.as_deref().map(|time| point_of_time(time, &clock)).transpose()?.flatten();
        if let Some(time) = at {
            path += &format!("&{name}={time}");
        }
    }
    for (name, number) in [("step", args.step), ("top", args.top)] {
        if let Some(number) = number {
            path += &format!("&{name}={number}");
        }
    }
    Ok(path)
}

/// Seconds since the epoch, or a negative number before the server's now; `None` for `now`, which
/// the server knows best.
fn point_of_time(text: &str, clock: &LocalClock) -> Result<Option<i64>, Failure> {
    if text == "now" {
        return Ok(None);
    }
    let past = local_time::parse_relative(text).filter(|span| *span < 0);
    past.or_else(|| clock.parse(text)).map(Some).ok_or_else(|| {
        let hint = format!("use {}", local_time::FORMS);
        Failure::usage("read the time", &format!("{text:?} is not a time"), &hint)
    })
}

fn follow(args: &ShowArgs) -> Result<(), Failure> {
    let tried = format!("follow {}", args.stat);
    let server = super::server(&args.server)?;
    let path = format!("/api/v1/analytics/stream?stat={}", encode(&args.stat));
    let mut failure = None;
    let mut first = true;
    let clock = LocalClock::of_machine();
    let ended = server.follow(&path, |line| {
        let printed = match serde_json::from_str::<Data>(line) {
            _ if args.json => out::print(&format!("{line}\n")),
            Ok(data) if args.csv => out::print(&data.csv(first)),
            Ok(data) => out::print(&table::line(&data, &clock, args.top.unwrap_or(5) as usize)),
            // An event of another kind: seconds that were lost.
            Err(_) => out::print(&format!("# {line}\n")),
        };
        first = false;
        failure = printed.err();
        failure.is_none()
    });
    match (failure, ended) {
        (Some(failure), _) => Err(failure),
        (None, Err(e)) => Err(refused(&tried, args, &server, &e)),
        (None, Ok(())) => Ok(()),
    }
}

fn encode(stat: &str) -> String {
    out::url_encode(stat.as_bytes())
}

/// Wrong usage, with similar names, if the server reports an invalid query.
fn refused(tried: &str, args: &ShowArgs, server: &Client, error: &ClientError) -> Failure {
    let ClientError::Refused { status: 400, failed, hint, .. } = error else {
        return unreachable(tried, error);
    };
    let listed = server.get(LIST).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let listed: Vec<Listed> = listed.unwrap_or_default();
    let ids = |one: &Listed| {
        let with = one.breakdowns.iter().map(|b| format!("{}[{}]", one.id, b.id));
        [one.id.clone()].into_iter().chain(with).collect::<Vec<_>>()
    };
    let known: Vec<String> = listed.iter().flat_map(ids).collect();
    let near = near(&args.stat, &known);
    if near.is_empty() || known.contains(&args.stat) {
        return Failure::usage(tried, failed, hint);
    }
    // The server's own suggestion knows no breakdowns.
    let failed = failed.split("; did you mean").next().unwrap_or(failed);
    Failure::usage(tried, failed, &format!("did you mean {}?", near.join(", ")))
}

/// At most three of `known`, nearest first, that a slip of the finger may have meant.
fn near(wanted: &str, known: &[String]) -> Vec<String> {
    let most = 2 + wanted.chars().count() / 4;
    let mut near: Vec<(usize, &String)> =
        known.iter().map(|name| (strsim::levenshtein(wanted, name), name)).collect();
    near.retain(|(distance, _)| *distance <= most);
    near.sort();
    near.into_iter().take(3).map(|(_, name)| name.clone()).collect()
}

#[cfg(test)]
mod tests;

//! Repeats of programs and of IOzone's tests: the recorded figures next to those of each repeat.

use super::{RepeatArgs, worse};
use crate::archive::TEXT;
use crate::archive::request::Request;
use crate::cli::program::is_usage;
use crate::cli::{
    Common, EXIT_DEGRADED, Outcome, iozone as tests, over as link, print_line, print_text,
    program as programs, usage,
};
use crate::client::Target;
use crate::iozone::over::record::{OverFigures, OverPoint, OverResult};
use crate::iozone::record::IozoneResult;
use crate::programs::record::{ProgramResult, SequenceCommon};
use crate::programs::run::Checked;
use crate::record::RecordError;
use crate::report::Table;
use base::text::visible_lines;
use serde::Serialize;
use std::error::Error;
use std::process::ExitCode;

/// The recorded result and its repeats.
#[derive(Debug, Serialize)]
struct Repeated<'a, T, C> {
    recorded: &'a T,
    repeats: &'a [T],
    /// Whether the calls were the same, for each repeat.
    operations: Vec<C>,
}

/// Prints the result and its repeats; `operations` is empty where no calls are recorded.
fn print_json<T: Serialize, C: Serialize>(
    recorded: &T,
    repeats: &[T],
    operations: Vec<C>,
) -> Result<(), Box<dyn Error>> {
    let found = Repeated { recorded, repeats, operations };
    print_line(&serde_json::to_string(&found)?)?;
    Ok(())
}

/// The target: the recorded one, or the one in its place. A password is in neither.
fn target(args: &RepeatArgs, request: &Request) -> Result<String, Box<dyn Error>> {
    match args.targets.as_slice() {
        [] => Ok(request.targets.first().map(|asked| asked.url.clone()).unwrap_or_default()),
        [one] => Ok(one.clone()),
        _ => Err("this result has one target".into()),
    }
}

/// The request with this target.
fn with_target(request: &Request, url: &str) -> Result<Request, Box<dyn Error>> {
    let mut request = request.clone();
    let name = Target::parse(url)?.to_string();
    request.targets.iter_mut().for_each(|asked| asked.url.clone_from(&name));
    Ok(request)
}

pub(super) fn program(args: &RepeatArgs, request: &Request, common: &Common) -> Outcome {
    let url = target(args, request)?;
    let request = with_target(request, &url)?;
    let wml = request.wml.clone().ok_or("the request has no program")?;
    let path = args.archive.join(TEXT);
    let text = std::fs::read_to_string(&path)
        .map_err(|e| RecordError::Io(format!("cannot read {}", path.display()), e))?;
    let none = || RecordError::Form(args.archive.display().to_string(), "not a program".into());
    let recorded = ProgramResult::read(&args.archive)?.ok_or_else(none)?;
    let asked = wml.request(&url, request.clean, request.scratch.as_deref());
    let checked = match Checked::of(wml.file.clone(), text, &asked) {
        Ok(checked) => checked,
        Err(error) => return Ok(usage(&error)),
    };
    let (mut repeats, mut code) = (Vec::new(), ExitCode::SUCCESS);
    for n in 0..args.times {
        let result = match programs::made(&checked, &request, &url, common, &args.place(n)) {
            Err(error) if is_usage(&*error) => return Ok(usage(&*error)),
            other => other?,
        };
        code = worse(code, programs::exit(&result));
        repeats.push(result);
    }
    let operations: Vec<_> = repeats.iter().map(|run| recorded.common(run)).collect();
    if operations.iter().flatten().any(|common| !common.same) {
        code = worse(code, ExitCode::from(EXIT_DEGRADED));
    }
    if common.json {
        print_json(&recorded, &repeats, operations)?;
        return Ok(code);
    }
    let figures = |run: &ProgramResult| {
        let rate = |bytes: u64| bytes as f64 / run.seconds.max(1e-9);
        let of = [
            ("operations/s", run.operations_per_second),
            ("bytes read/s", rate(run.bytes_read)),
            ("bytes written/s", rate(run.bytes_written)),
        ];
        let mut all: Vec<(String, f64)> = of.map(|(name, n)| (name.to_owned(), n)).into();
        all.extend(
            run.acts.iter().map(|act| (format!("{}, mean µs", act.name), act.latency_us_mean)),
        );
        all
    };
    let all: Vec<_> = std::iter::once(&recorded).chain(&repeats).map(figures).collect();
    let mut text = table(&all).text();
    for (run, common) in repeats.iter().zip(operations) {
        let none = || format!("calls are not compared: {}", recorded.incomparable(run));
        text += &format!("{}\n", common.map_or_else(none, SequenceCommon::sentence));
    }
    print_text(&visible_lines(&text))?;
    Ok(code)
}

pub(super) fn iozone(args: &RepeatArgs, request: &Request, common: &Common) -> Outcome {
    if request.iozone.as_ref().is_some_and(|tests| tests.over.is_some()) {
        return over_the_link(args, request, common);
    }
    let url = target(args, request)?;
    let request = with_target(request, &url)?;
    let none = || RecordError::Form(args.archive.display().to_string(), "not IOzone's".into());
    let recorded = IozoneResult::read(&args.archive)?.ok_or_else(none)?;
    let (mut repeats, mut code) = (Vec::new(), ExitCode::SUCCESS);
    for n in 0..args.times {
        let result = match tests::made(&request, &url, common, &args.place(n)) {
            Err(error) if is_usage(&*error) => return Ok(usage(&*error)),
            other => other?,
        };
        code = worse(code, tests::exit(&result));
        repeats.push(result);
    }
    if common.json {
        print_json(&recorded, &repeats, Vec::<()>::new())?;
        return Ok(code);
    }
    let figures = |run: &IozoneResult| -> Vec<(String, f64)> {
        let of = run.blocks.iter().map(|b| (format!("{}, kB/s", b.title), b.children_kb_s));
        of.collect()
    };
    let all: Vec<_> = std::iter::once(&recorded).chain(&repeats).map(figures).collect();
    print_text(&visible_lines(&table(&all).text()))?;
    Ok(code)
}

/// IOzone's tests over the emulated link: what it is of is in the request.
fn over_the_link(args: &RepeatArgs, request: &Request, common: &Common) -> Outcome {
    if !args.targets.is_empty() {
        return Err("this result is of a server that was started for it: omit --target".into());
    }
    let none = || RecordError::Form(args.archive.display().to_string(), "not IOzone's".into());
    let recorded = OverResult::read(&args.archive)?.ok_or_else(none)?;
    let (mut repeats, mut code) = (Vec::new(), ExitCode::SUCCESS);
    for n in 0..args.times {
        let result = link::made(request, common, &args.place(n))?;
        code = worse(code, link::exit(&result));
        repeats.push(result);
    }
    if common.json {
        print_json(&recorded, &repeats, Vec::<()>::new())?;
        return Ok(code);
    }
    let figures = |run: &OverResult| -> Vec<(String, f64)> {
        let of = |point: &OverPoint| {
            let (name, of) = (point.name(), point.figures);
            let rate = |rate: fn(OverFigures) -> f64| of.map_or(0.0, rate);
            [
                (format!("{name}: writes, B/s"), rate(|of| of.write_bytes_s)),
                (format!("{name}: reads, B/s"), rate(|of| of.read_bytes_s)),
            ]
        };
        run.points.iter().flat_map(of).collect()
    };
    let all: Vec<_> = std::iter::once(&recorded).chain(&repeats).map(figures).collect();
    print_text(&visible_lines(&table(&all).text()))?;
    Ok(code)
}

/// A line for each figure: recorded, then each repeat with its ratio.
fn table(all: &[Vec<(String, f64)>]) -> Table {
    let mut heads = vec!["figure".to_owned(), "recorded".to_owned()];
    for n in 1..all.len() {
        heads.extend([format!("repeat {n}"), "ratio".to_owned()]);
    }
    let line = |(at, (name, recorded)): (usize, &(String, f64))| {
        let mut line = vec![name.clone(), base::units::count(*recorded)];
        for repeat in all.iter().skip(1) {
            let now = repeat.get(at).filter(|(other, _)| other == name).map(|(_, n)| *n);
            let ratio = now.filter(|_| *recorded > 0.0).map(|now| now / recorded);
            let some = |n: Option<String>| n.unwrap_or_else(|| "–".to_owned());
            line.push(some(now.map(base::units::count)));
            line.push(some(ratio.map(|ratio| format!("{ratio:.3}"))));
        }
        line
    };
    let lines = all.first().into_iter().flatten().enumerate().map(line);
    Table::new(heads, lines.collect())
}

//! `plimsoll lab iozone --over`: its writers and readers over the emulated link.

use super::exit::EXIT_DEGRADED;
use super::{Common, Outcome, own_words, print_line, print_text, usage};
use crate::archive::request::Request;
use crate::archive::{Archive, Measured};
use crate::bridge;
use crate::bridge::shape::{Shapes, time};
use crate::iozone::over::record::OverResult;
use crate::iozone::over::{self, OverPlan, RTTS_MS, THREADS};
use crate::record::{self, ServerInfo};
use crate::report;
use crate::sweep::plan::PlanError;
use base::out::note;
use base::text::visible;
use clap::{Args, ValueEnum};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

/// Options of IOzone over distance.
#[derive(Debug, Args)]
pub(super) struct OverArgs {
    /// Measure initial writers and readers over an emulated link with these round-trip times,
    /// comma-separated, against a server that is started for it, next to a model; -t is a list
    /// then. Needs root [default without times: 0,200us,1ms,2ms]
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = millis)]
    #[arg(num_args = 0..=1, conflicts_with_all = ["target", "scratch"])]
    over: Option<Vec<f64>>,
    /// With --over: encrypt the link [default: off,on]
    #[arg(long, value_name = "off,on", value_delimiter = ',', requires = "over")]
    encrypt: Vec<Switch>,
    /// With --over: rate of the link
    #[arg(long, value_name = "RATE", default_value = "100Mbit", requires = "over")]
    rate: String,
    /// With --over: valid samples of each point
    #[arg(long, value_name = "N", default_value_t = 1, requires = "over")]
    repeats: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    Off,
    On,
}

fn millis(text: &str) -> Result<f64, String> {
    time(text).map(|ns| ns as f64 / 1e6).map_err(|e| e.to_string())
}

/// What of IOzone's options a run over the link has.
pub(super) struct Tests<'a> {
    /// Children.
    pub(super) threads: &'a [u32],
    /// Bytes of each record.
    pub(super) record: u64,
    /// Bytes of each file, if stated.
    pub(super) size: Option<u64>,
    /// The seed.
    pub(super) seed: u64,
}

impl OverArgs {
    /// Whether it is one over the link.
    pub(super) fn is_used(&self) -> bool {
        self.over.is_some()
    }

    fn plan(&self, tests: &Tests<'_>) -> Result<OverPlan, PlanError> {
        let mut shapes = Shapes::default();
        let wrong = |e: bridge::shape::ShapeError| PlanError(e.to_string());
        shapes.change(&[format!("rate={}", self.rate)]).map_err(wrong)?;
        let rate = shapes.forth.rate.ok_or(PlanError("--over needs a link rate".to_owned()))?;
        let rtt_ms = self.over.clone().filter(|all| !all.is_empty());
        let encrypt: Vec<bool> = self.encrypt.iter().map(|s| *s == Switch::On).collect();
        let plan = OverPlan {
            rtt_ms: rtt_ms.unwrap_or_else(|| RTTS_MS.to_vec()),
            threads: if tests.threads.is_empty() { THREADS.to_vec() } else { tests.threads.into() },
            encrypt: if encrypt.is_empty() { vec![false, true] } else { encrypt },
            rate,
            record: tests.record,
            size: tests.size,
            repeats: self.repeats,
            seed: tests.seed,
        };
        plan.check().map(|()| plan)
    }

    /// Runs it. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a point is condemned or off the
    /// model.
    pub(super) fn run(&self, tests: &Tests<'_>, asked: &Request, common: &Common) -> Outcome {
        let plan = match self.plan(tests) {
            Ok(plan) => plan,
            Err(error) => return Ok(usage(&error)),
        };
        let mut request = asked.clone();
        if let Some(tests) = &mut request.iozone {
            tests.over = Some(plan);
        }
        let result = made(&request, common, &common.out)?;
        if common.json {
            print_line(&serde_json::to_string(&result)?)?;
        } else {
            print_text(&result.text())?;
            print_line(&format!("report: {}", common.out.join("report.html").display()))?;
        }
        Ok(exit(&result))
    }
}

/// Measures all points into an archive.
///
/// # Errors
/// This user may not make links, or nothing can be written.
pub(super) fn made(
    asked: &Request,
    common: &Common,
    out: &Path,
) -> Result<OverResult, Box<dyn Error>> {
    let tests = asked.iozone.as_ref().and_then(|tests| tests.over.as_ref());
    let plan = tests.ok_or("the request has no link")?;
    if !bridge::is_root() {
        return Err("--over creates network namespaces, which needs root".into());
    }
    let mut archive = Archive::begin(out)?;
    let all = plan.sweep().points().len() * plan.repeats as usize;
    let mut kept = Ok(());
    let result = over::run(plan, own_words(), &mut |so_far, number, done| {
        kept = record::write_result(so_far, "the tests", out);
        let Some(point) = so_far.points.get(number).filter(|_| !common.quiet) else { return };
        let lock = if point.encrypt { ", encrypted" } else { "" };
        note(&format!("{done} of {all}: {} ms, {} children{lock}", point.rtt_ms, point.threads));
    });
    kept?;
    for (name, text) in report::over_files(&result)? {
        archive.put(name, &text)?;
    }
    let of = &result.provenance;
    archive.seal_measured(
        asked,
        &[Measured {
            program: &of.program,
            target: "an emulated link",
            time: (of.started, of.ended),
            server: &ServerInfo::default(),
            clients: &[],
        }],
    )?;
    Ok(result)
}

pub(super) fn exit(result: &OverResult) -> ExitCode {
    for what in &result.degraded {
        note(&format!("iozone: {}", visible(what)));
    }
    let nothing = result.points.iter().all(|point| point.failed.is_some());
    match result.degraded.is_empty() {
        true => ExitCode::SUCCESS,
        false if nothing => ExitCode::FAILURE,
        false => ExitCode::from(EXIT_DEGRADED),
    }
}

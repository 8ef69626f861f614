//! `plimsoll lab sweep`.

use super::plan::{Carrier, Plan, PlanError};
use super::run;
use crate::bridge;
use crate::bridge::shape::{Shapes, time};
use crate::cli::exit::EXIT_DEGRADED;
use crate::cli::sizes::size;
use crate::cli::{print_line, print_text};
use crate::report;
use base::out::note;
use base::text::visible;
use clap::{Args, ValueEnum};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `lab sweep`; lists are separated by commas.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// Reproduce figure 5, 6 or 7 of a report of 2011: stop-and-wait with one, two or four
    /// connections, blocks of 64 KB to 512 MB, round-trip times of 0 to 200 ms, scaled to the link
    /// rate
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(5..=7),
          conflicts_with_all = ["carrier", "windows", "instances"])]
    figure: Option<u8>,
    /// Transport under test [default: stream]
    #[arg(long, value_name = "CARRIER")]
    carrier: Option<Carrier>,
    /// Round-trip times, comma-separated [default: 0,2ms,20ms,200ms]
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = millis)]
    rtt: Vec<f64>,
    /// Window sizes, or block sizes for stop-and-wait and NFS, comma-separated [default:
    /// 64K,256K,1M; dsync 4M]
    #[arg(long = "window", value_name = "SIZES", value_delimiter = ',', value_parser = size)]
    windows: Vec<u64>,
    /// Numbers of parallel connections, comma-separated [default: 1]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    instances: Vec<u32>,
    /// Encrypt the link with AES-256-GCM [default: off; with --figure off,on]
    #[arg(long, value_name = "off,on", value_delimiter = ',')]
    encrypt: Vec<Switch>,
    /// Congestion control algorithms (kernel names), comma-separated [default: reno]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    congestion: Vec<String>,
    /// Link rate
    #[arg(long, value_name = "RATE", default_value = "100Mbit")]
    rate: String,
    /// Valid samples per point [default: 3]
    #[arg(long, value_name = "N")]
    repeats: Option<u32>,
    /// Where results go
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    out: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    Off,
    On,
}

fn millis(text: &str) -> Result<f64, String> {
    time(text).map(|ns| ns as f64 / 1e6).map_err(|e| e.to_string())
}

impl SweepArgs {
    fn plan(&self) -> Result<Plan, PlanError> {
        let mut shapes = Shapes::default();
        let plan_error = |e: bridge::shape::ShapeError| PlanError(e.to_string());
        shapes.change(&[format!("rate={}", self.rate)]).map_err(plan_error)?;
        let rate = shapes.forth.rate;
        let rate = rate.ok_or(PlanError("a sweep needs a link rate".to_owned()))?;
        let figure = Plan::figure(self.figure.unwrap_or(5), rate);
        let mut plan = figure.ok_or(PlanError("the figures are 5, 6 and 7".to_owned()))?;
        if self.figure.is_none() {
            plan.carrier = self.carrier.unwrap_or(Carrier::Stream);
            plan.title = format!("Distance and window: {}", plan.carrier.title());
            plan.windows = plan.carrier.windows();
            (plan.encrypt, plan.figure, plan.scale) = (vec![false], None, 1.0);
        }
        fn given<T: Clone>(from: &[T], to: &mut Vec<T>) {
            if !from.is_empty() {
                *to = from.to_vec();
            }
        }
        given(&self.rtt, &mut plan.rtt_ms);
        given(&self.windows, &mut plan.windows);
        given(&self.instances, &mut plan.instances);
        given(&self.congestion, &mut plan.congestion);
        let encrypt: Vec<bool> = self.encrypt.iter().map(|s| *s == Switch::On).collect();
        given(&encrypt, &mut plan.encrypt);
        plan.repeats = self.repeats.unwrap_or(plan.repeats);
        plan.check()?;
        Ok(plan)
    }
}

/// Runs the command. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a point is spoiled, was
/// abandoned, or is off the model.
///
/// # Errors
/// What keeps it from measuring anything.
pub fn sweep(args: &SweepArgs, words: Vec<String>) -> Result<ExitCode, Box<dyn Error>> {
    let plan = match args.plan() {
        Ok(plan) => plan,
        Err(error) => {
            note(&format!("plimsoll lab sweep: {}", visible(&error.to_string())));
            return Ok(ExitCode::from(2));
        }
    };
    if !bridge::is_root() {
        return Err("a sweep creates network namespaces, which needs root".into());
    }
    let all = plan.points().len() * plan.repeats as usize;
    let mut kept = Ok(());
    let result = run::run(&plan, words, &mut |so_far, number, done| {
        kept = so_far.write(&args.out);
        let Some(point) = so_far.points.get(number).filter(|_| !args.quiet) else { return };
        note(&format!("{done} of {all}: {}", point.at.name()));
    });
    kept?;
    result.write(&args.out)?;
    report::write_sweep(&result, &args.out)?;
    if args.json {
        print_line(&serde_json::to_string(&result)?)?;
    } else {
        print_text(&result.text())?;
        print_line(&format!("report: {}", args.out.join("report.html").display()))?;
    }
    for what in &result.degraded {
        note(&format!("sweep: {what}"));
    }
    let nothing = result.points.iter().all(|point| point.failed.is_some());
    Ok(match result.degraded.is_empty() {
        true => ExitCode::SUCCESS,
        false if nothing => ExitCode::FAILURE,
        false => ExitCode::from(EXIT_DEGRADED),
    })
}

//! Programs and tests of IOzone that are queued from the tree.

use super::{Parameters, integer, text, texts, wanted};
use ::lab::archive::request::{IozoneRequest, Kind, WmlRequest};
use ::lab::desk::RunRequest;
use ::lab::desk::run::RunTarget;
use ::lab::iozone::flags::{STRIDE, Settings};
use ::lab::programs::run::{Checked, ProgramRequest};
use ::lab::programs::set::Figures;
use base::failure::chain;
use base::node::{Path, Value};
use control::tree::{Actor, Problem};

/// Name of a program that has none.
const NAME: &str = "program.f";

pub(super) fn is_set(given: &Parameters, name: &str, default: bool) -> bool {
    match given.get(name) {
        Some(Value::Bool(on)) => *on,
        _ => default,
    }
}

fn seed(given: &Parameters) -> u64 {
    integer(given, "seed").and_then(|seed| u64::try_from(seed).ok()).unwrap_or(1)
}

/// Reads a program for a target.
fn checked(wml: &WmlRequest, text: &str, target: &str) -> Result<Checked, String> {
    let request = request(wml, target);
    Checked::of(wml.file.clone(), text.to_owned(), &request).map_err(|error| chain(&error))
}

fn request<'a>(wml: &'a WmlRequest, target: &'a str) -> ProgramRequest<'a> {
    ProgramRequest {
        file: wml.file.as_ref(),
        settings: &wml.settings,
        target,
        seconds: wml.seconds,
        seed: wml.seed,
        clean: false,
        scratch: None,
        command: Vec::new(),
    }
}

/// Bytes of all sets at the start.
fn space(checked: &Checked, wml: &WmlRequest) -> Result<u64, String> {
    let plan = checked.plan(&request(wml, "null:"), (0, 1)).map_err(|error| chain(&error))?;
    let bytes = |figures: Figures| figures.existing as f64 * figures.size_mean;
    Ok(plan.pools.iter().map(|pool| bytes(Figures::of(&pool.tree))).sum::<f64>() as u64)
}

/// Finds the target for a load that writes this number of bytes: its URL, the share that it is,
/// and the folder of it.
pub(super) type Find<'a> = &'a dyn Fn(u64) -> Result<(String, Option<String>, String), Problem>;

/// A run, and the bytes that it writes.
pub(super) type Load = Result<(RunRequest, u64), Problem>;

/// A program, which is read.
pub(super) fn program(path: &Path, given: &Parameters, who: &Actor, find: Find<'_>) -> Load {
    let program = text(given, "text").unwrap_or_default();
    let seconds = integer(given, "seconds").and_then(|s| u64::try_from(s).ok());
    let wml = WmlRequest {
        file: text(given, "name").unwrap_or(NAME).to_owned(),
        settings: texts(given, "variables"),
        seconds,
        seed: seed(given),
    };
    let wrong = |property: &'static str| {
        move |why: String| {
            let hint = "the message states file, line and token; docs/howto/wml.md has what is \
                        refused";
            Problem::new(path, &why, hint).property(property)
        }
    };
    let read = checked(&wml, program, "null:").map_err(wrong("text"))?;
    let bytes = space(&read, &wml).map_err(wrong("text"))?;
    let (url, share, folder) = find(bytes)?;
    checked(&wml, program, &url).map_err(wrong("text"))?;
    let targets = vec![RunTarget { url, own: share.is_some() }];
    let wml = Some((wml, program.to_owned()));
    let wanted = wanted(Kind::Program, Vec::new(), targets, given, who);
    Ok((RunRequest { share, folder, wml, ..wanted }, bytes))
}

/// Tests of IOzone, with their options.
pub(super) fn iozone(path: &Path, given: &Parameters, who: &Actor, find: Find<'_>) -> Load {
    let number = |name: &str, default: u64| {
        integer(given, name).and_then(|n| u64::try_from(n).ok()).unwrap_or(default)
    };
    let tests: Option<Vec<u8>> =
        texts(given, "tests").iter().map(|test| test.parse().ok()).collect();
    let wrong = |property: &'static str, why: &str| {
        let hint = "docs/howto/iozone.md has the options";
        Problem::new(path, why, hint).property(property)
    };
    let settings = Settings {
        threads: u32::try_from(number("children", 4)).unwrap_or(u32::MAX),
        size: number("file_size", 64 << 20),
        record: number("record", 64 << 10),
        tests: tests.ok_or_else(|| wrong("tests", "a test is a number"))?,
        no_retest: !is_set(given, "retest", true),
        flush: is_set(given, "flush", false),
        close: is_set(given, "close", false),
        sync: is_set(given, "sync", false),
        keep: false,
        no_stonewall: !is_set(given, "stonewall", true),
        stride: STRIDE,
    };
    // The command has sizes in kB.
    if !settings.record.is_multiple_of(1 << 10) {
        return Err(wrong("record", "the size of a record is a multiple of 1 KiB"));
    }
    settings.check().map_err(|why| wrong("file_size", &why))?;
    let bytes = settings.size.saturating_mul(settings.threads.into());
    let (url, share, folder) = find(bytes)?;
    let targets = vec![RunTarget { url, own: share.is_some() }];
    let iozone = Some(IozoneRequest { seed: seed(given), settings, over: None });
    let wanted = wanted(Kind::Iozone, Vec::new(), targets, given, who);
    Ok((RunRequest { share, folder, iozone, ..wanted }, bytes))
}

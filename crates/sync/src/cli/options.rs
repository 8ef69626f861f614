//! Options of `dsync`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::limits::DSYNC_STREAMS_MAX;
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::streams::connect::Wish;

/// What stands behind the options.
const AFTER_HELP: &str = "SOURCE and DESTINATION are directories: of this machine, or one of \
    them [USER@]HOST:PATH or ssh://[USER@]HOST[:PORT]/PATH, or on a share of a server that serves \
    SFTP: dsync://[USER@]HOST[:PORT]/SHARE/PATH (port 218 unless said). What is in SOURCE is in \
    DESTINATION afterwards, with owners, modes, times, links, holes, extended attributes and \
    access control lists. A PATH that does not begin with / begins in the user's home.\n\nExit \
    codes: 0 done, 1 failed, 2 wrong usage, 3 done but for what was listed as failed.";

/// Options of `dsync`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct DsyncArgs {
    /// Directory that is read
    #[arg(required_unless_present = "answer")]
    pub source: Option<OsString>,
    /// Directory that becomes the same; made if it is missing
    #[arg(required_unless_present = "answer")]
    pub destination: Option<OsString>,
    /// Take away what the source does not have, where it was listed without an error
    #[arg(long)]
    pub delete: bool,
    /// Compare files by BLAKE3 of their content, not by size and time
    #[arg(short = 'c', long)]
    pub checksum: bool,
    /// Keep in FILE, for the next run of the same two directories, what files here looked like and
    /// their BLAKE3: with -c what has not changed since is not read again, and it is told what
    /// somebody else has changed at a destination here
    #[arg(long, value_name = "FILE")]
    pub index: Option<PathBuf>,
    /// Change nothing; print what would be done
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// What is carried, and what is not.
    #[command(flatten)]
    pub rules: RuleArgs,
    /// Most bytes per second, for example 10MB/s or 1.5MiB/s
    #[arg(long, value_name = "RATE")]
    pub bandwidth: Option<String>,
    /// Never compress; else what shrinks is compressed while the link is what limits
    #[arg(long)]
    pub no_compress: bool,
    /// Streams for data beside ssh: auto for as many as bring something, 0 for none
    #[arg(long, value_name = "NUMBER", default_value = "auto", value_parser = streams)]
    pub streams: Wish,
    /// Ports of HOST that such streams may come to, for example 7000-7010 [default: any]
    #[arg(long, value_name = "LOW-HIGH", value_parser = ports)]
    pub data_port: Option<(u16, u16)>,
    /// Begin again where the run was when its connection breaks, so many times in a row in which
    /// nothing more was carried; after 1 s, then 2 s, 4 s and so on, one minute at most
    #[arg(long, value_name = "TIMES", default_value_t = 0)]
    pub retry: u32,
    /// Do not keep owner and group; they are kept where the destination is written by root
    #[arg(long)]
    pub no_owner: bool,
    /// Keep owner and group by number; else by name, where the destination has that name
    #[arg(long)]
    pub numeric_ids: bool,
    /// Do not keep extended attributes and access control lists
    #[arg(long)]
    pub no_xattrs: bool,
    /// Do not make device nodes; each that is skipped is named and counted
    #[arg(long)]
    pub no_devices: bool,
    /// Do not keep set-user-id, set-group-id and capabilities of files; each file that had some is
    /// named and counted
    #[arg(long)]
    pub no_set_id: bool,
    /// Write what changed into files of 64 KiB and more where they lie; a run that breaks off, or a
    /// crash, leaves a mixture of old and new under the file's name
    #[arg(long)]
    pub in_place: bool,
    /// Print each thing that is done
    #[arg(short = 'v', long)]
    pub verbose: bool,
    /// Print events as JSON, one to a line, with the sums as the last
    #[arg(long)]
    pub json: bool,
    /// Program that reaches HOST, with its options
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    pub rsh: String,
    /// Plimsoll on HOST, as the shell there takes it
    #[arg(long, value_name = "COMMAND", default_value = "plimsoll")]
    pub remote_program: String,
    /// Be the side that answers, over standard input and output
    #[arg(long, hide = true)]
    pub answer: bool,
}

/// How many streams.
fn streams(text: &str) -> Result<Wish, String> {
    if text == "auto" {
        return Ok(Wish::Auto);
    }
    let most = DSYNC_STREAMS_MAX;
    let number = text.parse().ok().filter(|number| *number <= most);
    number.map(Wish::Fixed).ok_or_else(|| format!("auto, or a number up to {most}"))
}

/// A port, or the lowest and the highest.
fn ports(text: &str) -> Result<(u16, u16), String> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (low.parse(), high.parse()) {
        (Ok(low), Ok(high)) if 0 < low && low <= high => Ok((low, high)),
        _ => Err("a port, or two as in 7000-7010".to_owned()),
    }
}

/// A rule, or a file of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleArg {
    /// What fits is carried.
    Include(Vec<u8>),
    /// What fits is not carried.
    Exclude(Vec<u8>),
    /// Patterns to exclude, one to a line.
    ExcludeFrom(PathBuf),
}

/// Rules as they were given, each with its number over all options: the first that fits decides.
#[derive(Debug, Clone, Default, Args)]
pub struct RuleArgs {
    /// Carry what fits, whatever later rules say
    #[arg(long, value_name = "PATTERN", value_parser = numbered())]
    include: Vec<(usize, OsString)>,
    /// Leave out what fits, at both sides, in rsync's patterns: /a from the top, a/ directories
    /// only, * within a name, ** across names; the first rule that fits decides
    #[arg(long, value_name = "PATTERN", value_parser = numbered())]
    exclude: Vec<(usize, OsString)>,
    /// Leave out what fits a pattern of a file, one to a line; lines that begin with # or ; are
    /// none
    #[arg(long, value_name = "FILE", value_parser = numbered())]
    exclude_from: Vec<(usize, OsString)>,
}

/// A value with its place on the command line: values are read in the order in which they stand.
fn numbered() -> impl TypedValueParser<Value = (usize, OsString)> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    OsStringValueParser::new().map(|value| (NEXT.fetch_add(1, Ordering::Relaxed), value))
}

impl RuleArgs {
    /// The rules in the order in which they were given, whatever their options.
    pub fn in_order(&self) -> Vec<RuleArg> {
        let all = |values: &[(usize, OsString)], make: fn(OsString) -> RuleArg| {
            values.iter().map(|(n, value)| (*n, make(value.clone()))).collect::<Vec<_>>()
        };
        let mut rules = all(&self.include, |value| RuleArg::Include(value.into_vec()));
        rules.extend(all(&self.exclude, |value| RuleArg::Exclude(value.into_vec())));
        rules.extend(all(&self.exclude_from, |value| RuleArg::ExcludeFrom(value.into())));
        rules.sort_by_key(|(n, _)| *n);
        rules.into_iter().map(|(_, rule)| rule).collect()
    }
}

/// Bytes per second: a number, with k, M, G for powers of a thousand or Ki, Mi, Gi for those of
/// 1024, and `B` and `/s` if somebody likes.
pub fn rate(text: &str) -> Option<u64> {
    let text = text.trim();
    let text = text.strip_suffix("/s").unwrap_or(text);
    let text = text.strip_suffix('B').unwrap_or(text);
    let (text, step) = match text.strip_suffix('i') {
        Some(text) => (text, 1024.0_f64),
        None => (text, 1000.0),
    };
    let powers = [(['k', 'K'], 1), (['M', 'm'], 2), (['G', 'g'], 3)];
    let found =
        powers.iter().find_map(|(letters, power)| Some((text.strip_suffix(*letters)?, *power)));
    let (number, power) = match found {
        Some(found) => found,
        None if step > 1000.0 => return None,
        None => (text, 0),
    };
    let bytes = number.trim().parse::<f64>().ok()? * step.powi(power);
    (bytes.is_finite() && bytes >= 1.0).then_some(bytes as u64)
}

#[cfg(test)]
mod tests;

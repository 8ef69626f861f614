//! Options of `dsync`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::limits::DSYNC_STREAMS_MAX;
use base::text::decimal;
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::streams::connect::StreamCount;

/// What stands behind the options.
const AFTER_HELP: &str = "Examples:

  plimsoll dsync /srv/lab /mnt/copy                     on this machine
  plimsoll dsync /srv/lab backup:/srv/lab               to another machine, over ssh
  plimsoll dsync /srv/lab dsync://anna@nas/lab/copy     to a share of a Plimsoll server

SOURCE and DESTINATION are directories. One of them may be remote: [USER@]HOST:PATH or \
    ssh://[USER@]HOST[:PORT]/PATH over ssh, or dsync://[USER@]HOST[:PORT]/SHARE/PATH on a share \
    of a server with SFTP enabled (default port 218). Afterwards DESTINATION has the content of \
    SOURCE, with owners, modes, times, links, holes, extended attributes and ACLs. A relative \
    PATH starts in the user's home directory.

Exit codes: 0 success, 1 failure, 2 usage error, 3 completed except for the entries listed as \
    failed.";

/// Options of `dsync`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct DsyncArgs {
    /// Directory to read
    #[arg(required_unless_present = "answer")]
    pub source: Option<OsString>,
    /// Directory to update; created if it does not exist
    #[arg(required_unless_present = "answer")]
    pub destination: Option<OsString>,
    /// Delete destination entries that the source does not have; directories that could not be
    /// listed completely are left alone
    #[arg(long)]
    pub delete: bool,
    /// Compare files by BLAKE3 checksum instead of size and modification time
    #[arg(short = 'c', long)]
    pub checksum: bool,
    /// Store sizes, times and BLAKE3 checksums of local files in FILE for the next run of the same
    /// two directories. With -c, unchanged files are not read again, and changes made at a local
    /// destination by others are reported
    #[arg(long, value_name = "FILE")]
    pub index: Option<PathBuf>,
    /// Dry run: print what would change
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// What is carried, and what is not.
    #[command(flatten)]
    pub rules: RuleArgs,
    /// Bandwidth limit, for example 10MB/s or 1.5MiB/s
    #[arg(long, value_name = "RATE")]
    pub bandwidth: Option<String>,
    /// Never compress. By default, compressible data is compressed while the network is the
    /// bottleneck
    #[arg(long)]
    pub no_compress: bool,
    /// Data streams in parallel to ssh. auto: add streams while throughput grows; 0: none
    #[arg(long, value_name = "NUMBER", default_value = "auto", value_parser = streams)]
    pub streams: StreamCount,
    /// Port range on HOST for data streams, for example 7000-7010 [default: any]
    #[arg(long, value_name = "LOW-HIGH", value_parser = ports)]
    pub data_port: Option<(u16, u16)>,
    /// If the connection breaks, resume; give up after TIMES consecutive attempts without progress.
    /// The delay doubles from 1 s up to one minute
    #[arg(long, value_name = "TIMES", default_value_t = 0)]
    pub retry: u32,
    /// Do not preserve owner and group (preserving them needs root at the destination)
    #[arg(long)]
    pub no_owner: bool,
    /// Preserve owner and group by number instead of by name
    #[arg(long)]
    pub numeric_ids: bool,
    /// Do not preserve extended attributes and ACLs
    #[arg(long)]
    pub no_xattrs: bool,
    /// Skip device nodes; each one is listed and counted
    #[arg(long)]
    pub no_devices: bool,
    /// Drop set-user-id, set-group-id and file capabilities; each affected file is listed and
    /// counted
    #[arg(long)]
    pub no_set_id: bool,
    /// Update files of 64 KiB and more in place. An interrupted run or a crash leaves a mixture of
    /// old and new data in the file
    #[arg(long)]
    pub in_place: bool,
    /// Print each change
    #[arg(short = 'v', long)]
    pub verbose: bool,
    /// Print events as JSON, one per line; the last one has the totals
    #[arg(long)]
    pub json: bool,
    /// Remote shell command, with options
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    pub rsh: String,
    /// Command that starts plimsoll on HOST
    #[arg(long, value_name = "COMMAND", default_value = "plimsoll")]
    pub remote_program: String,
    /// Descriptor of a connection to the server that shares the local directories
    #[arg(long, value_name = "FD", hide = true)]
    pub guard: Option<i32>,
    /// Be the side that answers, over standard input and output
    #[arg(long, hide = true)]
    pub answer: bool,
}

/// How many streams.
fn streams(text: &str) -> Result<StreamCount, String> {
    if text == "auto" {
        return Ok(StreamCount::Auto);
    }
    let most = DSYNC_STREAMS_MAX;
    let number = decimal(text).filter(|number| *number <= most);
    number.map(StreamCount::Fixed).ok_or_else(|| format!("expected auto, or a number up to {most}"))
}

/// A port, or the lowest and the highest.
fn ports(text: &str) -> Result<(u16, u16), String> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (decimal(low), decimal(high)) {
        (Some(low), Some(high)) if 0 < low && low <= high => Ok((low, high)),
        _ => Err("expected a port, or a range as 7000-7010".to_owned()),
    }
}

/// A rule, or a file of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleArg {
    /// What fits is carried.
    Include(OsString),
    /// What fits is not carried.
    Exclude(OsString),
    /// Patterns to exclude, one to a line.
    ExcludeFrom(OsString),
}

/// Rules as they were given, each with its number over all options: the first that fits decides.
#[derive(Debug, Clone, Default, Args)]
pub struct RuleArgs {
    /// Include matching entries, overriding later rules
    #[arg(long, value_name = "PATTERN", value_parser = numbered(RuleArg::Include))]
    include: Vec<(usize, RuleArg)>,
    /// Exclude matching entries on both sides; rsync patterns: /a anchored at the top, a/
    /// directories only, * within a name, ** across names. The first matching rule applies
    #[arg(long, value_name = "PATTERN", value_parser = numbered(RuleArg::Exclude))]
    exclude: Vec<(usize, RuleArg)>,
    /// Read exclude patterns from FILE, one per line; lines starting with # or ; are comments
    #[arg(long, value_name = "FILE", value_parser = numbered(RuleArg::ExcludeFrom))]
    exclude_from: Vec<(usize, RuleArg)>,
}

/// A rule with its place on the command line: values are read in the order in which they stand.
fn numbered(rule: fn(OsString) -> RuleArg) -> impl TypedValueParser<Value = (usize, RuleArg)> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    OsStringValueParser::new().map(move |value| (NEXT.fetch_add(1, Ordering::Relaxed), rule(value)))
}

impl RuleArgs {
    /// The rules in the order in which they were given, whatever their options.
    pub fn in_order(&self) -> Vec<&RuleArg> {
        let mut rules: Vec<_> =
            [&self.include, &self.exclude, &self.exclude_from].into_iter().flatten().collect();
        rules.sort_by_key(|(n, _)| *n);
        rules.into_iter().map(|(_, rule)| rule).collect()
    }
}

/// Bytes per second: a number, with k, M, G for powers of a thousand or Ki, Mi, Gi for those of
/// 1024, and optionally `B` and `/s`.
pub fn rate(text: &str) -> Option<u64> {
    let text = text.trim();
    let text = text.strip_suffix("/s").unwrap_or(text);
    let text = text.strip_suffix('B').unwrap_or(text);
    let (text, step) = text.strip_suffix('i').map_or((text, 1000.0_f64), |text| (text, 1024.0));
    let (number, power) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1),
        Some((at, 'm' | 'M')) => (&text[..at], 2),
        Some((at, 'g' | 'G')) => (&text[..at], 3),
        _ if step > 1000.0 => return None,
        _ => (text, 0),
    };
    let number = number.trim();
    // `parse` alone takes signs, exponents and words, too.
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let bytes = number.parse::<f64>().ok().filter(|_| is_plain)? * step.powi(power);
    (bytes.is_finite() && bytes >= 1.0).then_some(bytes as u64)
}

#[cfg(test)]
mod tests;

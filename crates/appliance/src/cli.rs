//! The command line: names, options and their help. `tests/golden/help` holds how it reads.

use std::any::TypeId;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use base::limits::DEMO_CLIENTS;
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

/// Open storage appliance in one program: serves directories, measures every operation, and finds
/// its own load limit.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 success, 1 failure, 2 usage error, 3 completed but \
    degraded.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The command line of this process. Ends it where there is none, or for help.
pub fn parsed() -> Cli {
    let mut command = Cli::command();
    command.build();
    let matches = command.clone().get_matches();
    let cli = plus_sign(command, &matches).map_or_else(|| Cli::from_arg_matches(&matches), Err);
    cli.unwrap_or_else(|error| error.exit())
}

/// The error of a number with a plus sign, which Rust's numbers may have: a number is digits, as in
/// the API (`base::text::decimal`).
fn plus_sign(command: clap::Command, matches: &ArgMatches) -> Option<clap::Error> {
    let numbers = [
        TypeId::of::<u8>(),
        TypeId::of::<u16>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
        TypeId::of::<i32>(),
        TypeId::of::<i64>(),
        TypeId::of::<f64>(),
        TypeId::of::<Duration>(),
    ];
    for arg in command.get_arguments() {
        let kind = arg.get_value_parser().type_id();
        if !numbers.iter().any(|number| kind == *number) {
            continue;
        }
        let values = matches.try_get_raw(arg.get_id().as_str()).ok().flatten();
        let mut values = values.into_iter().flatten().map(|value| value.to_string_lossy());
        if let Some(value) = values.find(|value| value.starts_with('+')) {
            let why = format!("invalid value '{value}' for '{arg}': a number has no plus sign");
            return Some(command.clone().error(ErrorKind::ValueValidation, why));
        }
    }
    let (name, matches) = matches.subcommand()?;
    plus_sign(command.find_subcommand(name)?.clone(), matches)
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a directory to network clients
    Serve(ServeArgs),
    /// Administer a running server: shell, single commands, or script
    Cli(CliArgs),
    /// Show statistics of a running server
    #[command(subcommand)]
    Analytics(AnalyticsCommand),
    /// List NFS clients and their state; expire a client
    #[command(subcommand)]
    Nfs(NfsCommand),
    /// List WebDAV locks; release a lock
    #[command(subcommand)]
    Http(HttpCommand),
    /// Print a file written by plimsoll, without a running server
    Inspect(InspectArgs),
    /// Run a complete demo: scratch share, eight clients, Performance Limit Summary
    Demo(DemoArgs),
    /// Find the load limit of a server and the resource that sets it
    Lab(Box<::lab::cli::LabArgs>),
    /// Emulate a network link with delay, rate, queue limit and loss
    Bridge(::lab::bridge::cli::BridgeArgs),
    /// Synchronise two directories, locally or over the network
    Dsync(::sync::cli::DsyncArgs),
    /// Run as the SFTP subsystem of an existing sshd
    #[command(after_help = "In sshd_config: Subsystem sftp /usr/bin/plimsoll sftp-server")]
    SftpServer(SftpServerArgs),
    /// Run the privileged helper that changes the network of this machine
    Host(HostArgs),
    /// Run or control a head of a cluster, which takes over the resources of failed heads
    Head(HeadArgs),
    /// Report what this machine supports and which fallbacks are in use
    #[command(after_help = "Exit code 3: a feature that `serve` uses is missing.")]
    Doctor(DoctorArgs),
}

/// Options of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Directory for results and reports
    #[arg(long, default_value = "demo-results", value_name = "DIR")]
    pub out: PathBuf,
    /// Directory for the scratch share, about 3 GB [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// Offset added to every standard port
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub port_offset: u16,
    /// Number of client processes
    #[arg(long, value_name = "N", default_value_t = DEMO_CLIENTS)]
    pub clients: u32,
    /// Exit after the summary, even on a terminal
    #[arg(long)]
    pub once: bool,
}

/// Options of `sftp-server`; those of one letter are those of OpenSSH's.
#[derive(Debug, Args)]
pub struct SftpServerArgs {
    /// Directory that the client sees as /
    #[arg(long, value_name = "DIR", default_value = "/", conflicts_with = "shares")]
    pub root: PathBuf,
    /// Directory that the client sees as /NAME; repeatable
    #[arg(long = "share", value_name = "NAME=DIR")]
    pub shares: Vec<String>,
    /// When an uploaded file appears under its name
    #[arg(long, value_name = "WHEN", default_value = "whole")]
    pub uploads: UploadsArg,
    /// Reject all changes (read-only)
    #[arg(short = 'R')]
    pub read_only: bool,
    /// Start directory, as the client sees it [default: the working directory]
    #[arg(short = 'd', value_name = "DIR")]
    pub start: Option<String>,
    /// Umask of new files and directories, in octal
    #[arg(short = 'u', value_name = "UMASK", default_value = "022", value_parser = octal)]
    pub umask: u32,
    /// Accepted for compatibility with OpenSSH's sftp-server; ignored
    #[arg(short = 'e')]
    pub stderr: bool,
    /// Accepted for compatibility with OpenSSH's sftp-server; ignored
    #[arg(short = 'l', value_name = "LEVEL")]
    pub level: Option<String>,
    /// Accepted for compatibility with OpenSSH's sftp-server; ignored
    #[arg(short = 'f', value_name = "FACILITY")]
    pub facility: Option<String>,
}

/// When an upload is at its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UploadsArg {
    /// When the upload is complete (atomic rename)
    Whole,
    /// Immediately; data is written in place
    InPlace,
}

fn octal(text: &str) -> Result<u32, String> {
    let bits = base::units::octal(text, 0o777);
    bits.ok_or_else(|| "expected an octal umask, 0 to 777".to_owned())
}

/// Options of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Directory to serve; the share is named after its last component
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// State directory: configuration, statistics and keys [default: a directory for DIR below
    /// /var/lib/plimsoll as root, below $XDG_STATE_HOME/plimsoll otherwise]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Replace the saved configuration with this file (from `plimsoll cli -c export`). NFS options
    /// on the command line override it for this run
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Listen address; 0.0.0.0 or :: for all
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub address: IpAddr,
    /// Offset added to every standard port (NFS 2049, administration 215); 0 for the standard ports
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub port_offset: u16,
    /// Administrator account for this run; NAME:@FILE reads the password from a file, which hides
    /// it from the process list [default: the first start creates "admin" and prints its password
    /// once]
    #[arg(long = "user", value_name = "NAME:PASSWORD|NAME:@FILE")]
    pub users: Vec<String>,
    /// Print one JSON line on standard output when ready, and nothing else
    #[arg(long, value_name = "FORMAT")]
    pub announce: Option<Announce>,
    /// Reject all changes (read-only)
    #[arg(long)]
    pub read_only: bool,
    /// Create an iSCSI logical unit if it does not exist, for example disk=10G. Its data is stored
    /// in the state directory
    #[arg(long = "lun", value_name = "NAME=SIZE")]
    pub luns: Vec<String>,
    /// Export rule in exports(5) syntax, for example '10.0.0.0/24(rw,no_root_squash)' or '*(ro)';
    /// repeatable. The first matching rule applies; clients that match no rule are refused
    /// [default: all clients may read and write]
    #[arg(long = "export", value_name = "CLIENT(OPTIONS)", conflicts_with = "exports")]
    pub export: Vec<String>,
    /// NFSv4 lease time, and grace period after a start, in seconds [default: as configured, else
    /// 90]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub nfs_lease: Option<u64>,
    /// NFSv4 ID-mapping domain: owners are sent as user@DOMAIN, from /etc/passwd and /etc/group;
    /// unknown ids stay numeric [default: as configured, else numeric ids]
    #[arg(long, value_name = "DOMAIN")]
    pub nfs_domain: Option<String>,
    /// Grant NFSv4 delegations. A delegation is recalled when another client or a local program
    /// changes the file [default: as configured, else on]
    #[arg(long, value_name = "SWITCH")]
    pub nfs_delegations: Option<Switch>,
    /// Do not start the port mapper (port 111 plus the offset); NFSv3 clients then mount with
    /// nolock
    #[arg(long)]
    pub no_portmap: bool,
    /// Certificate chain (PEM) for NFS over TLS. SIGHUP reloads it together with its key and the
    /// client CAs [default: as configured, else the certificate of the administration service]
    #[arg(long, value_name = "FILE", requires = "nfs_tls_key")]
    pub nfs_tls_cert: Option<PathBuf>,
    /// Private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "nfs_tls_cert")]
    pub nfs_tls_key: Option<PathBuf>,
    /// CA certificates (PEM) accepted for NFS client certificates; an export rule with xprtsec=mtls
    /// requires one
    #[arg(long, value_name = "FILE")]
    pub nfs_tls_client_ca: Option<PathBuf>,
    /// File of export rules, one per line. SIGHUP reloads it without disconnecting clients
    #[arg(long, value_name = "FILE")]
    pub exports: Option<PathBuf>,
    /// Follow the lease in this file, and end with it; used by head
    #[arg(long, hide = true, value_name = "FILE", requires = "lease_id")]
    pub lease: Option<PathBuf>,
    /// Id of that lease
    #[arg(long, hide = true, value_name = "NUMBER", requires = "lease")]
    pub lease_id: Option<i64>,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Enabled
    On,
    /// Disabled
    Off,
}

/// Forms of the announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Announce {
    /// One JSON line.
    Json,
}

/// Options of `cli`.
#[derive(Debug, Args)]
#[command(after_help = "Without LINE and FILE, commands are read from standard input; on a \
    terminal this is a shell with history and completion. A script stops at its first error, and \
    fails if it leaves uncommitted changes. Type `help` for the commands.")]
pub struct CliArgs {
    /// Command to run, for example 'configuration services nfs show'; repeatable
    #[arg(short = 'c', long = "command", value_name = "LINE", conflicts_with = "file")]
    pub lines: Vec<String>,
    /// Script with one command per line; - for standard input
    pub file: Option<PathBuf>,
    /// Print JSON, one value per line
    #[arg(long)]
    pub json: bool,
    /// Print each command before its output, as in a transcript
    #[arg(long)]
    pub echo: bool,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// What `analytics` can do.
#[derive(Debug, Subcommand)]
pub enum AnalyticsCommand {
    /// List the available statistics
    List(ListArgs),
    /// Show a statistic as a table with sparklines, a heat map, JSON or CSV
    Show(ShowArgs),
}

/// Options of commands that list something.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Options of `analytics show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Statistic: group.metric[filter=value]…[breakdown], for example nfs3.ops[op=read][client]
    pub stat: String,
    /// Start: a local time as '2026-11-25 09:00', 'yesterday 09:00' or 09:00, RFC 3339 with a zone,
    /// relative to now as -90, -15m, -2h, -7d, or seconds since the epoch [default: -60]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// End (exclusive), same formats as --from [default: now]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<String>,
    /// Seconds per point [default: chosen from the length of the interval]
    #[arg(long, value_name = "SECONDS")]
    pub step: Option<u32>,
    /// Maximum number of rows; the rest is summed up as "other" [default: 20]
    #[arg(long, value_name = "N")]
    pub top: Option<u32>,
    /// Print the API's data object as JSON
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV, one line per point in time
    #[arg(long)]
    pub csv: bool,
    /// Print one line per second until interrupted
    #[arg(long, conflicts_with_all = ["from", "to", "step"])]
    pub follow: bool,
    /// Ask the servers of all resources of the cluster in this configuration of a head; as root on
    /// a head [default FILE: /etc/plimsoll/head.toml]
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        default_missing_value = HEAD_CONFIG,
        conflicts_with_all = ["follow", "state", "server"]
    )]
    pub cluster: Option<PathBuf>,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// What `nfs` can do.
#[derive(Debug, Subcommand)]
pub enum NfsCommand {
    /// List clients: identity, last contact, number of opens, locks and delegations
    Clients(ListArgs),
    /// List open files and delegations
    Opens(HeldArgs),
    /// List byte-range locks, held and blocked
    Locks(HeldArgs),
    /// Expire a client that is gone, and release its opens, locks and delegations
    #[command(after_help = "A client that is still alive loses its opens and locks: its programs \
        get I/O errors, or continue without the locks they rely on.")]
    Expire(ExpireArgs),
}

/// Options of `nfs opens` and `nfs locks`.
#[derive(Debug, Args)]
pub struct HeldArgs {
    /// Limit to one client, by its id from `plimsoll nfs clients`
    pub client: Option<String>,
    /// Output format, and which server.
    #[command(flatten)]
    pub list: ListArgs,
}

/// Options of `nfs expire`.
#[derive(Debug, Args)]
pub struct ExpireArgs {
    /// Client id from `plimsoll nfs clients`
    pub client: String,
    /// Print the removed object as JSON
    #[arg(long)]
    pub json: bool,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// What `http` can do.
#[derive(Debug, Subcommand)]
pub enum HttpCommand {
    /// List WebDAV locks: owner, file, client, age and timeout
    Locks(ListArgs),
    /// Release a lock whose owner is gone
    #[command(after_help = "A client that is still alive is refused when it saves: it must lock \
        the file again, and the file may have changed meanwhile.")]
    Release(ReleaseArgs),
}

/// Options of `http release`.
#[derive(Debug, Args)]
pub struct ReleaseArgs {
    /// Lock id from `plimsoll http locks`
    pub lock: String,
    /// Print the removed object as JSON
    #[arg(long)]
    pub json: bool,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// The server of a command.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Server (default: the one on this machine)")]
pub struct ServerArgs {
    /// Local server with this state directory
    #[arg(long, value_name = "DIR", conflicts_with = "server")]
    pub state: Option<PathBuf>,
    /// Remote server, https://HOST[:PORT]
    #[arg(long, value_name = "URL", requires = "token_file")]
    pub server: Option<String>,
    /// File with an API token of the remote server, for example a copy of STATE/api-token
    #[arg(long, value_name = "FILE", requires = "server")]
    pub token_file: Option<PathBuf>,
    /// Certificate of the remote server or of its CA, for example a copy of STATE/certificate.pem
    /// [default: certificate.pem next to the token file]
    #[arg(long, value_name = "FILE", requires = "server")]
    pub ca: Option<PathBuf>,
}

/// Options of `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// File to print
    pub file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print a transfer log in xferlog(5) format
    #[arg(long, conflicts_with = "json")]
    pub xferlog: bool,
}

/// Options of `host`.
#[derive(Debug, Args)]
pub struct HostArgs {
    /// Directory of its files
    #[arg(long, value_name = "DIR", default_value = "/var/lib/plimsoll-host")]
    pub state: PathBuf,
    /// Socket to listen on
    #[arg(long, value_name = "PATH", default_value = service::network::link::SOCKET)]
    pub socket: PathBuf,
    /// User that may connect, in addition to root
    #[arg(long, value_name = "NAME", default_value = "plimsoll")]
    pub user: String,
    /// Serve the connection on standard input; used by serve
    #[arg(long, hide = true)]
    pub child: bool,
    /// Of a child: for pools only
    #[arg(long, hide = true, requires = "child")]
    pub pools: bool,
    /// Guard the waiting change for this time; used by the helper
    #[arg(long, hide = true, value_name = "SECONDS", requires = "change")]
    pub guard: Option<u32>,
    /// Number of the change that is guarded
    #[arg(long, hide = true, value_name = "NUMBER")]
    pub change: Option<u64>,
}

/// Options of `head`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct HeadArgs {
    /// Configuration of the head (TOML, docs/howto/heads.md). Without a command, the head runs
    /// until SIGTERM, which hands its resources over
    #[arg(long, value_name = "FILE", default_value = HEAD_CONFIG)]
    pub config: PathBuf,
    /// What to do with a running head.
    #[command(subcommand)]
    pub command: Option<HeadCommand>,
}

/// Where the configuration of a head is.
const HEAD_CONFIG: &str = "/etc/plimsoll/head.toml";

/// What `head` can do.
#[derive(Debug, Subcommand)]
pub enum HeadCommand {
    /// List heads and resources as the head on this machine sees them
    Status(HeadClientArgs),
    /// Move a resource to this head, or to another one
    Takeover(TakeoverArgs),
    /// Move a resource to its preferred head
    Failback(FailbackArgs),
    /// Hand over all resources of this head, and take none over
    Drain(DrainArgs),
}

/// Options of commands of `head`.
#[derive(Debug, Args)]
pub struct HeadClientArgs {
    /// Configuration of the head
    #[arg(long, value_name = "FILE", default_value = HEAD_CONFIG)]
    pub config: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `head takeover`.
#[derive(Debug, Args)]
#[command(after_help = "Exit code 1: the resource is not served by that head within the timeout.")]
pub struct TakeoverArgs {
    /// Resource
    pub resource: String,
    /// Head that is to own it [default: the head on this machine]
    #[arg(long, value_name = "HEAD")]
    pub to: Option<String>,
    /// Confirm that the former owner is down: take over without a fence
    #[arg(long, conflicts_with = "to")]
    pub unfenced: bool,
    /// Seconds to wait for the takeover; 0 to return immediately
    #[arg(long, value_name = "SECONDS", default_value_t = HEAD_WAIT)]
    pub wait: u64,
    /// Configuration and output format.
    #[command(flatten)]
    pub client: HeadClientArgs,
}

/// Longer than a drain and a start take.
const HEAD_WAIT: u64 = 60;

/// Options of `head failback`.
#[derive(Debug, Args)]
#[command(after_help = "Exit code 1: the resource is not served by that head within the timeout.")]
pub struct FailbackArgs {
    /// Resource
    pub resource: String,
    /// Seconds to wait for the takeover; 0 to return immediately
    #[arg(long, value_name = "SECONDS", default_value_t = HEAD_WAIT)]
    pub wait: u64,
    /// Configuration and output format.
    #[command(flatten)]
    pub client: HeadClientArgs,
}

/// Options of `head drain`.
#[derive(Debug, Args)]
pub struct DrainArgs {
    /// End draining: the head takes resources over again
    #[arg(long)]
    pub off: bool,
    /// Configuration and output format.
    #[command(flatten)]
    pub client: HeadClientArgs,
}

/// Subcommands of `doctor`.
#[derive(Debug, Subcommand)]
pub enum DoctorCommand {
    /// Check whether two mounts of one file system may be served by two heads
    #[command(after_help = "Exit code 1: the file system must not be used by a cluster.")]
    Cluster(DoctorClusterArgs),
}

/// Options of `doctor cluster`.
#[derive(Debug, Args)]
pub struct DoctorClusterArgs {
    /// Directory on one mount
    pub a: PathBuf,
    /// The same directory on another mount
    pub b: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct DoctorArgs {
    /// What to check in the place of this machine
    #[command(subcommand)]
    pub command: Option<DoctorCommand>,
    /// Directory to check
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// State directory to check [default: as for serve]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Listen address to check
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub address: IpAddr,
    /// Offset added to every standard port
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub port_offset: u16,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

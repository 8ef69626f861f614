//! The command line: names, options and their help. `tests/golden/help` holds how it reads.

use std::net::IpAddr;
use std::path::PathBuf;

use base::limits::DEMO_CLIENTS;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// An open storage appliance in one program: serves a directory, shows who does what to it, and
/// finds its load limit.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but degraded.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a directory, and watch it
    Serve(ServeArgs),
    /// Administer a running server: a shell, single lines, or a script
    Cli(CliArgs),
    /// Look at statistics of a running server
    #[command(subcommand)]
    Analytics(AnalyticsCommand),
    /// See the NFS clients of a running server and what they hold, and end one
    #[command(subcommand)]
    Nfs(NfsCommand),
    /// See the locks of a running server's WebDAV clients, and release one
    #[command(subcommand)]
    Http(HttpCommand),
    /// Read a file that plimsoll has written, without a server
    Inspect(InspectArgs),
    /// Serve a scratch share, drive it with eight clients, find its load limits
    Demo(DemoArgs),
    /// Drive a server to its load limit, and say what sets it
    Lab(::lab::cli::LabArgs),
    /// Join two networks by a link with set delay, rate, queue and loss
    Bridge(::lab::bridge::cli::BridgeArgs),
    /// Make a directory the same as another, on this machine or over ssh
    Dsync(::sync::cli::DsyncArgs),
    /// Be the SFTP server of an sshd, in its place: SFTP over standard input and output
    #[command(after_help = "In sshd_config: Subsystem sftp /usr/bin/plimsoll sftp-server")]
    SftpServer(SftpServerArgs),
    /// Say what this machine can do, and what is used instead of what it cannot
    #[command(after_help = "Exit code 3: something is missing that serving uses.")]
    Doctor(DoctorArgs),
}

/// Options of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where results and reports go
    #[arg(long, default_value = "demo-results", value_name = "DIR")]
    pub out: PathBuf,
    /// Directory for the scratch share, which takes about 3 GB [default: the system's temporary
    /// directory]
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// Added to every standard port
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub port_offset: u16,
    /// Client processes
    #[arg(long, value_name = "N", default_value_t = DEMO_CLIENTS)]
    pub clients: u32,
    /// End when the summary is there, even with a terminal
    #[arg(long)]
    pub once: bool,
}

/// Options of `sftp-server`; those of one letter are those of OpenSSH's.
#[derive(Debug, Args)]
pub struct SftpServerArgs {
    /// What the client sees as /
    #[arg(long, value_name = "DIR", default_value = "/", conflicts_with = "shares")]
    pub root: PathBuf,
    /// A directory that the client sees as /NAME; may be given several times
    #[arg(long = "share", value_name = "NAME=DIR")]
    pub shares: Vec<String>,
    /// When an upload is at its name: when it is whole, or at once
    #[arg(long, value_name = "WHEN", default_value = "whole")]
    pub uploads: UploadsArg,
    /// Refuse all changes
    #[arg(short = 'R')]
    pub read_only: bool,
    /// Where the client begins, as it sees it [default: the working directory]
    #[arg(short = 'd', value_name = "DIR")]
    pub start: Option<String>,
    /// Permission bits that new files do not get, in octal
    #[arg(short = 'u', value_name = "UMASK", default_value = "022", value_parser = octal)]
    pub umask: u32,
    /// Taken so that a line made for OpenSSH's need not be changed; nothing is logged
    #[arg(short = 'e')]
    pub stderr: bool,
    /// The same
    #[arg(short = 'l', value_name = "LEVEL")]
    pub level: Option<String>,
    /// The same
    #[arg(short = 'f', value_name = "FACILITY")]
    pub facility: Option<String>,
}

/// When an upload is at its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UploadsArg {
    /// When it is whole.
    Whole,
    /// At once.
    InPlace,
}

fn octal(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(bits) if bits <= 0o777 => Ok(bits),
        _ => Err("a umask is an octal number up to 777".to_owned()),
    }
}

/// Options of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Directory to serve; the share is named after its last part
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Where configuration, statistics and keys are kept [default: a folder for DIR below
    /// /var/lib/plimsoll as root, below $XDG_STATE_HOME/plimsoll otherwise]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// A configuration, as `export` of `plimsoll cli` writes it, to take in place of the one in
    /// force; options of NFS given here decide over it in this run
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address to listen on; 0.0.0.0 or :: for all
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub address: IpAddr,
    /// Added to every standard port (NFS 2049, admin 215); 0 takes the standard ports
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub port_offset: u16,
    /// An administrator for this run; @FILE reads the password from a file, which other users of
    /// this machine cannot see in the list of processes [default: a user "admin" is made at first
    /// start and its password printed once]
    #[arg(long = "user", value_name = "NAME:PASSWORD|NAME:@FILE")]
    pub users: Vec<String>,
    /// Print one JSON line on standard output when ready, and nothing else there
    #[arg(long, value_name = "FORMAT")]
    pub announce: Option<Announce>,
    /// Refuse all changes
    #[arg(long)]
    pub read_only: bool,
    /// Make a logical unit for initiators of iSCSI, if it is not there: disk=10G. Its blocks lie in
    /// the state directory
    #[arg(long = "lun", value_name = "NAME=SIZE")]
    pub luns: Vec<String>,
    /// Who may use the share, how far and as whom, in the words of exports(5); the first rule that
    /// fits decides, whom none fits is refused: '10.0.0.0/24(rw,no_root_squash)' '*(ro)' [default:
    /// everyone, everything]
    #[arg(long = "export", value_name = "CLIENT(OPTIONS)", conflicts_with = "exports")]
    pub export: Vec<String>,
    /// Seconds that an NFSv4 client may be silent before others may take what it holds; as long
    /// after a start clients may reclaim [default: as configured, else 90]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub nfs_lease: Option<u64>,
    /// Owners of files are names in this domain for NFSv4 clients (user@domain), as /etc/passwd and
    /// /etc/group have them; who is not there stays a number [default: as configured, else all are
    /// numbers]
    #[arg(long, value_name = "DOMAIN")]
    pub nfs_domain: Option<String>,
    /// Whether NFSv4 clients may be given delegations, so that they need not ask whether a file has
    /// changed; it is called back when anybody changes it, programs on this machine included
    /// [default: as configured, else on]
    #[arg(long, value_name = "SWITCH")]
    pub nfs_delegations: Option<Switch>,
    /// No port mapper (port 111, moved by the offset): NFSv3 clients then mount with nolock
    #[arg(long)]
    pub no_portmap: bool,
    /// Certificate, with those between it and a root, for NFS clients that ask for TLS; PEM. SIGHUP
    /// reads it, its key and the authorities again [default: as configured, else that of the admin
    /// interface]
    #[arg(long, value_name = "FILE", requires = "nfs_tls_key")]
    pub nfs_tls_cert: Option<PathBuf>,
    /// Its private key; PEM
    #[arg(long, value_name = "FILE", requires = "nfs_tls_cert")]
    pub nfs_tls_key: Option<PathBuf>,
    /// Authorities whose certificates NFS clients may show; a share asks for one with xprtsec=mtls
    /// in its rules; PEM
    #[arg(long, value_name = "FILE")]
    pub nfs_tls_client_ca: Option<PathBuf>,
    /// A file of such rules, one to a line; SIGHUP reads it again, nobody is cut off
    #[arg(long, value_name = "FILE")]
    pub exports: Option<PathBuf>,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// It is done.
    On,
    /// It is not done.
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
#[command(after_help = "Without LINE and FILE it takes lines from standard input, and is a shell \
    with history and completion if that is a terminal. A script ends at its first error, and fails \
    if it leaves changes that are not committed. `help` in it lists what can be said.")]
pub struct CliArgs {
    /// A line to do, for example 'configuration services nfs show'; may be given several times
    #[arg(short = 'c', long = "command", value_name = "LINE", conflicts_with = "file")]
    pub lines: Vec<String>,
    /// A script, one command to a line; - is standard input
    pub file: Option<PathBuf>,
    /// Say everything as JSON, one value a line
    #[arg(long)]
    pub json: bool,
    /// Say each command before what it says, as in a transcript
    #[arg(long)]
    pub echo: bool,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// What `analytics` can do.
#[derive(Debug, Subcommand)]
pub enum AnalyticsCommand {
    /// List the statistics that can be asked for
    List(ListArgs),
    /// Show one statistic as table with sparklines, as heat map, JSON or CSV
    Show(ShowArgs),
}

/// Options of commands that list something.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Options of `analytics show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Statistic, as group.metric[filter=value]…[breakdown], for example nfs3.ops[op=read][client]
    pub stat: String,
    /// Start: seconds since the epoch, or back from now as -90, -15m, -2h, -7d [default: -60]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// End, not included; as --from [default: now]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<String>,
    /// Seconds per point [default: chosen by the length of the interval]
    #[arg(long, value_name = "SECONDS")]
    pub step: Option<u32>,
    /// Rows at most; the rest is summed up as "other" [default: 20]
    #[arg(long, value_name = "N")]
    pub top: Option<u32>,
    /// As the API's data object
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// As comma-separated values, one line per point of time
    #[arg(long)]
    pub csv: bool,
    /// Go on with one line per second until interrupted
    #[arg(long, conflicts_with_all = ["from", "to", "step"])]
    pub follow: bool,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// What `nfs` can do.
#[derive(Debug, Subcommand)]
pub enum NfsCommand {
    /// List clients: who they are, since when they are silent, how much they hold
    Clients(ListArgs),
    /// List files that are held open, and delegations
    Opens(HeldArgs),
    /// List byte-range locks, held and waited for
    Locks(HeldArgs),
    /// End a client that will not come back, with all that it holds
    #[command(after_help = "A client that is still there loses its opens and locks: its programs \
        get I/O errors, or go on without the locks that they believe to have.")]
    Expire(ExpireArgs),
}

/// Options of `nfs opens` and `nfs locks`.
#[derive(Debug, Args)]
pub struct HeldArgs {
    /// Of this client only, by its id as `plimsoll nfs clients` tells it
    pub client: Option<String>,
    /// How it is shown, and which server.
    #[command(flatten)]
    pub list: ListArgs,
}

/// Options of `nfs expire`.
#[derive(Debug, Args)]
pub struct ExpireArgs {
    /// The client's id, as `plimsoll nfs clients` tells it
    pub client: String,
    /// What it was, as JSON
    #[arg(long)]
    pub json: bool,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// What `http` can do.
#[derive(Debug, Subcommand)]
pub enum HttpCommand {
    /// List locks of WebDAV: who took which, from where, since when, how long they last
    Locks(ListArgs),
    /// Release a lock that nobody comes back for
    #[command(after_help = "A client that is still there is refused when it saves: it must lock \
        the file again, and may find it changed.")]
    Release(ReleaseArgs),
}

/// Options of `http release`.
#[derive(Debug, Args)]
pub struct ReleaseArgs {
    /// The lock's id, as `plimsoll http locks` tells it
    pub lock: String,
    /// What it was, as JSON
    #[arg(long)]
    pub json: bool,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Which server a command asks.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Which server (default: the one that runs here)")]
pub struct ServerArgs {
    /// A local server by its state directory
    #[arg(long, value_name = "DIR", conflicts_with = "server")]
    pub state: Option<PathBuf>,
    /// A remote server, as https://HOST[:PORT]
    #[arg(long, value_name = "URL", requires = "token_file")]
    pub server: Option<String>,
    /// The remote server's API token: a copy of STATE/api-token
    #[arg(long, value_name = "FILE", requires = "server")]
    pub token_file: Option<PathBuf>,
    /// The remote server's certificate, or the one that signed it: a copy of STATE/certificate.pem
    /// [default: certificate.pem beside the token file]
    #[arg(long, value_name = "FILE", requires = "server")]
    pub ca: Option<PathBuf>,
}

/// Options of `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// File to read
    pub file: PathBuf,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// The log of transfers as other servers write it, in the form of xferlog(5)
    #[arg(long, conflicts_with = "json")]
    pub xferlog: bool,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Directory that would be served
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Where the state would be kept [default: as for serve]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Address that would be listened on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub address: IpAddr,
    /// Added to every standard port
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub port_offset: u16,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

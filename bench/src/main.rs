//! `bench`: the published figures, each as ratios within one run on one machine.
//!
//! - `bench peers`: server CPU per operation and per GB, compared with nfs-ganesha, bare loops.
//! - `bench connections`: server CPU per operation with 1 to 1 024 connections at equal load.
//! - `bench files`: whole files over FTP, FTPS, SFTP, HTTP and HTTPS, compared with other servers.
//! - `bench iscsi`: server CPU of a logical unit per command and per GB, compared with tgt.
//! - `bench smb`: server CPU of SMB, compared with Samba's smbd and Plimsoll's NFSv4.1.
//! - `bench distance`: dsync, rsync, scp and rclone over an emulated link, by its round trip.
//! - `bench analytics`: the cost of all breakdowns, switched on and off in turn.
//! - `bench paired`: sixteen rows on two builds of this server in turn: the cost of a change.
//! - `bench leases`: these rows with 100,000 leases of SMB on other files; opens with a lease.
//! - `bench pool`: ten rows of NFS on a directory and on a subvolume of a pool in turn.
//! - `bench generator`: the lab client's CPU per operation, and that of a C load client if given.
//!
//! `bench/README.md` has the figures and the commands that repeat them.

mod analytics;
mod bare;
mod connections;
mod cpu;
mod distance;
mod echo;
mod files;
mod generator;
mod group;
mod iscsi;
mod leases;
mod load;
mod many;
mod ours;
mod paired;
mod pairs;
mod peers;
mod poll;
mod pool;
mod programs;
mod room;
mod servers;
mod smb;
mod stats;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "The published figures, each as ratios within one run")]
struct Cli {
    /// The server under test.
    #[arg(long, default_value = "target/release/plimsoll", global = true)]
    binary: PathBuf,
    /// Directory for scratch shares; tmpfs, so that CPU and not a disk is measured.
    #[arg(long, default_value = "/dev/shm", global = true)]
    scratch: PathBuf,
    /// Where the raw figures are written, as JSON.
    #[arg(long, global = true)]
    out: Option<PathBuf>,
    #[command(subcommand)]
    what: What,
}

impl Cli {
    /// Runs a task with a scratch directory, which is removed after it.
    fn in_scratch<T>(&self, act: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let base = self.scratch.join(format!("bench.{}", std::process::id()));
        let done = fs::create_dir_all(&base).and_then(|()| act(&base));
        // The figures count, even if files of it remain.
        let _ = fs::remove_dir_all(&base);
        done
    }
}

#[derive(Subcommand)]
enum What {
    /// Compared with nfs-ganesha and the bare loops.
    Peers {
        /// Rounds; every round runs every server on every case.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Seconds of each stretch.
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
        /// Only cases that have this in their names, as in `READ 4K`.
        #[arg(long, default_value = "")]
        only: String,
    },
    /// The same number of requests in flight, over one connection or many.
    Connections {
        /// Rounds; every round runs every number of connections.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Seconds of each stretch.
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
        /// Only rows that have this in their names, as in `v3 READ 4K 1024x1`.
        #[arg(long, default_value = "")]
        only: String,
    },
    /// Whole files, compared with vsftpd, ProFTPD, OpenSSH, nginx, Apache and rclone.
    Files(files::Wanted),
    /// Commands to a logical unit, compared with tgt.
    Iscsi {
        /// Rounds; every round runs every server on every case.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Seconds of each stretch.
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
        /// Only cases that have this in their names, as in `READ 4K`.
        #[arg(long, default_value = "")]
        only: String,
        /// Where `bench/unpack-peers` has unpacked tgt, if it is not installed.
        #[arg(long)]
        unpacked: Option<PathBuf>,
    },
    /// SMB, compared with smbd. Needs root and smbclient.
    Smb(smb::Arguments),
    /// Files over a distance: dsync compared with rsync, scp and rclone, from one network namespace
    /// to another over `plimsoll bridge`. Needs root and `/dev/net/tun`.
    Distance(distance::Wanted),
    /// All breakdowns on compared with all off.
    Analytics {
        /// Pairs.
        #[arg(long, default_value_t = 30)]
        pairs: usize,
        /// Seconds of each half.
        #[arg(long, default_value_t = 1.0)]
        seconds: f64,
    },
    /// Two builds of this server in turn: the cost of a change.
    Paired(paired::Arguments),
    /// Two servers in turn, one of which has clients of SMB with many leases on other files; and
    /// opens without a lease and with one.
    Leases(leases::Arguments),
    /// A subvolume of a pool and a directory of the same btrfs. Needs root, losetup and
    /// btrfs-progs.
    Pool(pairs::Extent),
    /// The lab's client compared with a C load client (`--c-client PATH`).
    Generator {
        /// A load client with the options --url --op --bs --conns --depth --secs that prints JSON
        /// with `ops` and `client_cpu`.
        #[arg(long)]
        c_client: Option<PathBuf>,
        /// Rounds.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Seconds of each stretch.
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
    },
    /// A bare server, for `peers`.
    #[command(hide = true)]
    BareSend,
    /// A bare server, for `peers`.
    #[command(hide = true)]
    BareReceive,
    /// A bare server, for `connections`.
    #[command(hide = true)]
    BareEcho {
        /// Bytes of a reply.
        answer: usize,
    },
}

fn main() -> ExitCode {
    if files::is_asked() {
        return ExitCode::SUCCESS;
    }
    let cli = Cli::parse();
    let done = match &cli.what {
        What::Peers { rounds, seconds, only } => {
            peers::run(&cli, &peers::Wanted { rounds: *rounds, seconds: *seconds, only })
        }
        What::Connections { rounds, seconds, only } => {
            connections::run(&cli, &peers::Wanted { rounds: *rounds, seconds: *seconds, only })
        }
        What::Iscsi { rounds, seconds, only, unpacked } => {
            let wanted = peers::Wanted { rounds: *rounds, seconds: *seconds, only };
            iscsi::run(&cli, &wanted, unpacked.as_deref())
        }
        What::Smb(arguments) => smb::run(&cli, arguments),
        What::Files(wanted) => files::run(&cli, wanted),
        What::Distance(wanted) => distance::run(&cli, wanted),
        What::Analytics { pairs, seconds } => analytics::run(&cli, *pairs, *seconds),
        What::Paired(arguments) => paired::run(&cli, arguments),
        What::Leases(arguments) => leases::run(&cli, arguments),
        What::Pool(extent) => pool::run(&cli, extent),
        What::Generator { c_client, rounds, seconds } => {
            generator::run(&cli, c_client.as_deref(), *rounds, *seconds)
        }
        What::BareSend => bare::serve(bare::Direction::Send, &cli.scratch),
        What::BareEcho { answer } => echo::serve(*answer),
        What::BareReceive => bare::serve(bare::Direction::Receive, &cli.scratch),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

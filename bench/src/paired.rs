//! What a change costs: the same rows on two builds of this server in turn, as pairs.
//!
//! - [`sessions`]: the rows of SMB and iSCSI.

mod sessions;

use std::io;
use std::path::{Path, PathBuf};

use lab::workload::Kind;

use crate::Cli;
use crate::files::builds::Builds;
use crate::load::Case;
use crate::pairs::{self, Extent, Outcome, Target, row};
use crate::servers::{self, Version};

/// First ports of the two builds.
const OFFSETS: [u16; 2] = [26_700, 27_200];

/// What is run and how long.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The build to compare with; `--binary` is the later one.
    #[arg(long)]
    before: PathBuf,
    #[command(flatten)]
    extent: Extent,
}

/// The six rows of NFS.
pub fn nfs_rows() -> Vec<(Version, Case)> {
    use Kind::{Create, Getattr, RandRead, SeqRead, SyncWrite};
    vec![
        row(Version::V3, "GETATTR", Getattr, 1, 16),
        row(Version::V3, "READ 4K", RandRead, 4096, 16),
        row(Version::V3, "WRITE 4K stable", SyncWrite, 4096, 16),
        row(Version::V3, "read 1M", SeqRead, 1 << 20, 5),
        row(Version::V41, "READ 4K", RandRead, 4096, 16),
        row(Version::V41, "CREATE+REMOVE", Create, 1, 16),
    ]
}

/// Runs and prints the comparison.
///
/// # Errors
/// When a build does not start or a load fails.
pub fn run(cli: &Cli, arguments: &Arguments) -> io::Result<()> {
    let all = cli.in_scratch(|base| rows(cli, arguments, base))?;
    pairs::print(&all, ["before", "after"]);
    pairs::write(&all, cli.out.as_deref())
}

fn rows(cli: &Cli, arguments: &Arguments, base: &Path) -> io::Result<Vec<Outcome>> {
    let extent = &arguments.extent;
    let mut all = nfs(cli, arguments, &base.join("nfs"))?;
    all.extend(sessions::rows(extent, &base.join("sessions"), [&arguments.before, &cli.binary])?);
    let names = Builds::rows();
    if names.iter().any(|name| name.contains(&extent.only)) {
        let builds = Builds::start(&base.join("transfers"), &arguments.before, &cli.binary)?;
        all.extend(builds.measure(extent)?);
    }
    Ok(all)
}

fn nfs(cli: &Cli, arguments: &Arguments, base: &Path) -> io::Result<Vec<Outcome>> {
    let start = |binary: &Path, name: &str, offset| {
        let (share, state) = (base.join(name), base.join(format!("{name}.state")));
        std::fs::create_dir_all(&share)?;
        servers::plimsoll(binary, &share, &state, offset)
    };
    let [first, second] = OFFSETS;
    let before = start(&arguments.before, "before", first)?;
    let after = start(&cli.binary, "after", second)?;
    pairs::nfs(&arguments.extent, nfs_rows(), &[Target::from(&before), Target::from(&after)])
}

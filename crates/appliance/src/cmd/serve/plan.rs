//! The options of `serve`, checked before anything is changed.

use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use base::failure::read_text;
use base::limits::{EXPORTS_FILE_MAX, PASSWORD_MAX, USER_NAME_MAX};
use base::node::{Shape, Value};
use base::protocol::Port;
use base::protocol::ports::ADMIN;
use control::state;
use control::tree::Override;
use service::luns::{self, LunGiven};
use service::shares::{Root, ShareConfig, System};
use vfs::share::node::DEFAULT_PROJECT;
use vfs::share::rules::Rules;

use crate::cli::{ServeArgs, Switch};
use crate::out::{Failure, OrFailure};
use crate::sys;

/// The checked options.
pub struct Plan<'a> {
    /// The options as they were given.
    pub args: &'a ServeArgs,
    /// The share of the command line; its directory is canonical.
    pub share: ShareConfig,
    /// The state directory; may not exist yet.
    pub state: PathBuf,
    /// Where the admin interface listens.
    pub admin: SocketAddr,
    /// Names and passwords of the administrators of this run.
    pub users: Vec<(String, String)>,
    /// What the options decide of NFS.
    pub nfs_given: Vec<Override>,
    /// Logical units that are to be there.
    pub luns: Vec<LunGiven>,
}

impl<'a> Plan<'a> {
    /// Checks the options.
    ///
    /// # Errors
    /// The directory cannot be served, or an option is wrong.
    pub fn from_args(args: &'a ServeArgs) -> Result<Self, Failure> {
        Port::highest().address(args.address, args.port_offset)?;
        let admin = ADMIN.address(args.address, args.port_offset)?;
        let directory = served(&args.dir)?;
        let users = args.users.iter().map(|text| user(text)).collect::<Result<_, _>>()?;
        // Other users of this machine can read the command line.
        let passwords = args.users.iter().filter_map(|text| Some(text.split_once(':')?.1));
        passwords.filter(|text| !text.starts_with('@')).for_each(sys::hide_argument);
        let state = match &args.state {
            Some(state) => state.clone(),
            None => state::default_dir(&directory).or_failure("find a state directory")?,
        };
        // Keys must not be served; a state directory below the share is hidden, one around it
        // cannot be. It may not exist yet.
        if state.canonicalize().is_ok_and(|state| directory.starts_with(state)) {
            return Err(Failure::new(
                &format!("serve {}", directory.display()),
                "it is inside the state directory",
                "choose another state directory with --state DIR",
            ));
        }
        let name = directory.file_name();
        let share = ShareConfig {
            project: DEFAULT_PROJECT.to_owned(),
            name: name.map_or("root".into(), |name| name.to_string_lossy().into_owned()),
            directory,
            smb_oplocks: true,
            continuous: false,
            snapshots: None,
            snapdir_visible: false,
            read_only: args.read_only,
            rules: Default::default(),
            root: Root::default(),
            storage: None,
        };
        let share = share.with_rules(&export_rules(args)?);
        let luns = args.luns.iter().map(|text| lun(text)).collect::<Result<_, _>>()?;
        Ok(Self { args, share, state, admin, users, nfs_given: nfs_given(args), luns })
    }
}

/// `NAME=SIZE`.
fn lun(text: &str) -> Result<LunGiven, Failure> {
    luns::parse(text).map_err(|failed| {
        Failure::usage(&format!("read --lun {text}"), failed, "write --lun NAME=10G")
    })
}

fn served(dir: &Path) -> Result<PathBuf, Failure> {
    let tried = format!("serve {}", dir.display());
    let failed = |e: std::io::Error| match e.kind() {
        ErrorKind::NotFound => {
            Failure::new(&tried, "the directory does not exist", "create it, or choose another one")
        }
        ErrorKind::NotADirectory => {
            Failure::new(&tried, "it is not a directory", "use the directory that contains it")
        }
        _ => Failure::of(&tried, &e),
    };
    let found = dir.canonicalize().map_err(failed)?;
    // Found out now, not by the first client.
    fs::read_dir(&found).map_err(failed)?;
    Ok(found)
}

/// `NAME:PASSWORD` or `NAME:@FILE`; the first line of the file is the password.
fn user(text: &str) -> Result<(String, String), Failure> {
    // Never repeats `text`: what is wrong with it may be its password.
    let wrong = |failed: &str| {
        Failure::usage("read --user", failed, "use --user NAME:PASSWORD or --user NAME:@FILE")
    };
    let (name, password) = text.split_once(':').ok_or_else(|| wrong("missing ':'"))?;
    if name.len() > USER_NAME_MAX {
        return Err(wrong(&format!("a name has 1 to {USER_NAME_MAX} bytes")));
    }
    // As in the configuration, which shows these users too.
    Shape::Name.check(name).map_err(|why| wrong(&format!("the name is not valid: {why}")))?;
    let password = match password.strip_prefix('@') {
        None => password.to_owned(),
        Some(file) => {
            let tried = format!("read the password of {name} from {file}");
            let text = fs::read_to_string(file).or_failure(&tried)?;
            text.lines().next().unwrap_or("").to_owned()
        }
    };
    if password.is_empty() || password.len() > PASSWORD_MAX {
        return Err(wrong(&format!("a password has 1 to {PASSWORD_MAX} bytes")));
    }
    Ok((name.to_owned(), password))
}

/// Reads the rules of the share: those of the command line hold as long as the server runs, a file
/// may be read again.
///
/// # Errors
/// The file cannot be read, or a rule is wrong; the error names it.
pub fn export_rules(args: &ServeArgs) -> Result<Rules, Failure> {
    let Some(path) = &args.exports else {
        let read = Rules::parse_each(&args.export, &System);
        return read.map_err(|e| Failure::usage("read --export", &e.to_string(), EXPORT_HINT));
    };
    let tried = format!("read the export rules in {}", path.display());
    let text = read_text(&tried, path, EXPORTS_FILE_MAX, EXPORT_HINT)?;
    Rules::parse(&text, &System).map_err(|e| Failure::new(&tried, &e.to_string(), EXPORT_HINT))
}

const EXPORT_HINT: &str = "use CLIENT(OPTIONS); see docs/howto/export-rules.md";

/// What the options decide of NFS in this run.
fn nfs_given(args: &ServeArgs) -> Vec<Override> {
    let file = |file: &Option<PathBuf>| {
        file.as_ref().map(|file| Value::Text(file.to_string_lossy().into_owned()))
    };
    // Certificate and key come together, or not at all; the command line takes precedence over the
    // configuration.
    let named = args.nfs_tls_cert.as_ref().map(|_| Value::text(""));
    let given = [
        ("lease", args.nfs_lease.map(Value::number)),
        ("delegations", args.nfs_delegations.map(|switch| Value::Bool(switch == Switch::On))),
        ("domain", args.nfs_domain.as_deref().map(Value::text)),
        ("portmap", args.no_portmap.then_some(Value::Bool(false))),
        ("tls_certificate", file(&args.nfs_tls_cert)),
        ("tls_key", file(&args.nfs_tls_key)),
        ("certificate", named),
        ("tls_client_ca", file(&args.nfs_tls_client_ca)),
    ];
    let decided = |(property, value): (_, Option<Value>)| {
        Some(Override { property, value: value?, source: "command line" })
    };
    given.into_iter().filter_map(decided).collect()
}

#[cfg(test)]
mod tests;

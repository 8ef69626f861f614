//! What `serve` was asked for, checked before anything is touched.

use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use base::limits::{PASSWORD_MAX, USER_NAME_MAX};
use base::node::Shape;
use base::protocol::Port;
use base::protocol::ports::ADMIN;
use control::state;
use control::tree::Override;
use service::luns::{self, LunGiven};
use service::shares::{Root, ShareConfig};
use vfs::share::node::DEFAULT_PROJECT;

use super::{exports, settings};
use crate::cli::ServeArgs;
use crate::out::Failure;
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
    /// Names and passwords of those who may administer during this run.
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
        args.users.iter().for_each(|text| hide(text));
        let state = match &args.state {
            Some(state) => state.clone(),
            None => state::default_dir(&directory)
                .map_err(|e| Failure::of("find a state directory", &e))?,
        };
        refuse_state(&directory, &state)?;
        let name = directory.file_name();
        let share = ShareConfig {
            project: DEFAULT_PROJECT.to_owned(),
            name: name.map_or("root".into(), |name| name.to_string_lossy().into_owned()),
            directory,
            read_only: args.read_only,
            rules: Default::default(),
            root: Root::default(),
        };
        let share = share.with_rules(&exports::read(args)?);
        let luns = args.luns.iter().map(|text| lun(text)).collect::<Result<_, _>>()?;
        Ok(Self { args, share, state, admin, users, nfs_given: settings::given(args), luns })
    }
}

/// `NAME=SIZE`.
fn lun(text: &str) -> Result<LunGiven, Failure> {
    luns::parse(text).map_err(|failed| {
        Failure::usage(&format!("read --lun {text}"), failed, "write --lun NAME=10G")
    })
}

/// Keys must not be served; a state directory below the share is hidden, one around it cannot be.
fn refuse_state(dir: &Path, state: &Path) -> Result<(), Failure> {
    match state.canonicalize() {
        Ok(state) if dir.starts_with(&state) => Err(Failure::new(
            &format!("serve {}", dir.display()),
            "it is inside the state directory",
            "choose another state directory with --state DIR",
        )),
        // It may not exist yet.
        _ => Ok(()),
    }
}

fn served(dir: &Path) -> Result<PathBuf, Failure> {
    let tried = format!("serve {}", dir.display());
    let found = dir.canonicalize().map_err(|e| match e.kind() {
        ErrorKind::NotFound => {
            Failure::new(&tried, "the directory does not exist", "create it, or choose another one")
        }
        ErrorKind::NotADirectory => not_a_directory(&tried),
        _ => Failure::of(&tried, &e),
    })?;
    let meta = fs::metadata(&found).map_err(|e| Failure::of(&tried, &e))?;
    if !meta.is_dir() {
        return Err(not_a_directory(&tried));
    }
    // Found out now, not by the first client.
    fs::read_dir(&found).map_err(|e| Failure::of(&tried, &e))?;
    Ok(found)
}

fn not_a_directory(tried: &str) -> Failure {
    Failure::new(tried, "it is not a directory", "use the directory that contains it")
}

/// Takes a password out of the command line that other users of this machine can read.
fn hide(user: &str) {
    if let Some((_, password)) = user.split_once(':')
        && !password.starts_with('@')
    {
        sys::hide_argument(password);
    }
}

/// `NAME:PASSWORD` or `NAME:@FILE`, whose first line is the password.
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
            let text = fs::read_to_string(file).map_err(|e| Failure::of(&tried, &e))?;
            text.lines().next().unwrap_or("").to_owned()
        }
    };
    if password.is_empty() || password.len() > PASSWORD_MAX {
        return Err(wrong(&format!("a password has 1 to {PASSWORD_MAX} bytes")));
    }
    Ok((name.to_owned(), password))
}

#[cfg(test)]
mod tests;

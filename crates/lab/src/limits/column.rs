//! A target as a column: its name, its folder, and how its server is seen.

use crate::archive::request::NamedTarget;
use crate::archive::sums::sha256;
use crate::client::{ClientError, Target, rdma};
use crate::conduct::RunOptions;
use crate::conduct::agents::Source;
use crate::conduct::server::api::ServerApi;

/// A column that is to be run.
#[derive(Debug, Clone)]
pub struct ColumnPlan {
    /// Its name, unique, and that of its directory.
    pub name: String,
    /// The target as it was given.
    pub target: Target,
    /// Its folder on the target.
    pub folder: String,
    /// How its runs are made: in that folder.
    pub options: RunOptions,
    /// Why nothing can be measured, if that is known before.
    pub unavailable: Option<String>,
}

/// Splits `NAME=URL`.
fn named(text: &str) -> (Option<&str>, &str) {
    let is_name = |name: &str| {
        let letter = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !name.is_empty() && !name.starts_with('.') && name.chars().all(letter)
    };
    match text.split_once('=') {
        Some((name, url)) if is_name(name) => (Some(name), url),
        _ => (None, text),
    }
}

/// The columns of these targets, each `URL` or `NAME=URL`; `options` makes those of a URL, by its
/// place.
///
/// # Errors
/// A target is none, or its options cannot be made.
pub fn columns<E: From<ClientError>>(
    targets: &[String],
    mut options: impl FnMut(usize, &str) -> Result<RunOptions, E>,
) -> Result<Vec<ColumnPlan>, E> {
    let mut all: Vec<ColumnPlan> = Vec::new();
    for (n, text) in targets.iter().enumerate() {
        let (name, url) = named(text);
        let target = Target::parse(url)?;
        let wanted = name.map_or_else(|| scheme(&target), str::to_owned);
        let name = free(&all, &wanted);
        all.push(ColumnPlan::new(name, target, options(n, url)?));
    }
    Ok(all)
}

fn scheme(target: &Target) -> String {
    let url = target.to_string();
    url.split_once(':').map_or("target", |(scheme, _)| scheme).replace('+', "-")
}

/// A name that no other column has.
fn free(all: &[ColumnPlan], wanted: &str) -> String {
    let taken = |name: &str| all.iter().any(|column| column.name == name);
    let numbered = (2..).map(|n| format!("{wanted}-{n}"));
    let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
    names.find(|name| !taken(name)).unwrap_or_default()
}

/// Adds to a single column of NFSv3 one over RDMA, which shows what is missing if nothing can be
/// measured.
pub fn with_rdma(
    mut columns: Vec<ColumnPlan>,
    unavailable: impl FnOnce() -> Option<String>,
) -> Vec<ColumnPlan> {
    let [only] = columns.as_slice() else { return columns };
    let Target::Nfs3(at) = &only.target else { return columns };
    if at.rdma {
        return columns;
    }
    // Remote agents have their own devices, and report what is missing.
    let here = matches!(only.options.source, Source::Local { .. });
    let over = at.over_rdma();
    let missing = match &over {
        None => Some("no port of RDMA belongs to that of the target".to_owned()),
        Some(_) => here.then(unavailable).flatten(),
    };
    let target = Target::Nfs3(over.unwrap_or_else(|| at.clone()));
    let options = only.options.clone();
    let mut column = ColumnPlan::new("nfs3-rdma".to_owned(), target, options);
    // The same files are read over both.
    column.folder.clone_from(&only.folder);
    column.options.target = column.target.below(&column.folder);
    column.unavailable = missing;
    columns.push(column);
    columns
}

/// Why this machine cannot connect over RDMA, if so.
pub fn no_rdma() -> Option<String> {
    rdma::unavailable()
}

impl ColumnPlan {
    fn new(name: String, target: Target, mut options: RunOptions) -> Self {
        let own = || {
            let hash = sha256(target.to_string().as_bytes());
            format!("plimsoll-limits-{}", hash.get(..8).unwrap_or_default())
        };
        let folder = options.scratch.take().unwrap_or_else(own);
        // Folders are kept for the next row; the column removes its own.
        options.clean = false;
        options.target = if target.has_folders() { target.below(&folder) } else { target.clone() };
        keep_own_api(&mut options, &target);
        Self { name, target, folder, options, unavailable: None }
    }

    /// As it is asked for.
    pub fn asked(&self) -> NamedTarget {
        NamedTarget { name: self.name.clone(), url: self.target.to_string() }
    }
}

/// An API belongs to one server: that of another target is not asked.
pub(crate) fn keep_own_api(options: &mut RunOptions, target: &Target) {
    let own = |api: &ServerApi| serves(api, target);
    let socket = options.server_socket.take();
    options.server_socket = socket.filter(|socket| own(&ServerApi::Local(socket.clone())));
    options.observe.api = options.observe.api.take().filter(own);
}

/// Whether the server behind an API listens at a target's port.
fn serves(api: &ServerApi, target: &Target) -> bool {
    let Some((_, port)) = target.server() else { return true };
    let Some(status) = api.get("/api/v1/status") else { return false };
    let at = |service: &serde_json::Value| {
        let listen = service["listen"].as_str()?;
        Some(listen.rsplit_once(':')?.1 == port.to_string())
    };
    let services = status["services"].as_array();
    services.into_iter().flatten().filter_map(at).any(|same| same)
}

//! `plimsoll lab run secure-protocols --share NAME`: the targets of a comparison, obtained from the
//! server that runs here.
//!
//! The server is queried through its local socket, which only the serving user and root may use, so
//! the certificate and the host key that it returns are authentic: they are pinned. A password is
//! tried at one service first; if it is wrong, the other services are not tried.

use std::io::IsTerminal;
use std::process::ExitCode;

use ::lab::cli::share::{ShareArgs, ShareTargets};
use ::lab::client::ClientError;
use ::lab::client::service::at::{PASSWORD_ENV, Secret, ServiceAt};
use ::lab::client::service::open;
use ::lab::transfer::Plan;
use base::protocol::Service;
use control::appliance::Status;
use control::cli::Outside;
use control::cli::node::Node;
use control::client::Client;
use service::comparison::{self, Obstacles, ServiceNode, ServiceNodes, schemes, text, usable};

use super::cli::outside::User;
use super::{parse, unreachable};
use crate::cli::ServerArgs;
use crate::out::{Failure, OrFailure, shell_quote, url_encode};

/// The targets of a share; errors are printed.
///
/// # Errors
/// The exit code, when the user knows already.
pub fn find(share: &str, args: &ShareArgs, plan: &Plan) -> Result<ShareTargets, ExitCode> {
    try_find(share, args, plan).map_err(Failure::report)
}

fn try_find(name: &str, args: &ShareArgs, plan: &Plan) -> Result<ShareTargets, Failure> {
    let tried = format!("compare protocols on the share {name}");
    let schemes = schemes(&args.protocols)?;
    let server = ServerArgs { state: args.state.clone(), ..ServerArgs::default() };
    let client = super::server(&server)?;
    let status: Status = fetch(&client, &tried, "/api/v1/status")?;
    let share = usable(&status, name, &tried, plan)?;
    let known = known(&client, &tried)?;
    let mut obstacles = Obstacles::default();
    let targets = schemes
        .iter()
        .filter_map(|scheme| obstacles.or_none(comparison::of(*scheme, share, &args.user, &known)));
    let mut targets: Vec<ServiceAt> = targets.collect();
    if !obstacles.is_empty() {
        let state = args.state.as_ref().map(|state| shell_quote(&state.to_string_lossy()));
        let state = state.map_or(String::new(), |state| format!(" --state {state}"));
        let cli = format!("plimsoll cli{state}");
        let others = targets.iter().map(|at| at.scheme.name()).collect::<Vec<_>>().join(",");
        return Err(Failure::new(&tried, &obstacles.sentence(), &obstacles.hint(&cli, &others)));
    }
    let password = password(args)?;
    for at in &mut targets {
        at.secret = Secret::Given(password.clone());
    }
    targets.iter().try_for_each(|at| open(at, None).map(drop).map_err(|e| rejected(at, &e)))?;
    Ok(ShareTargets { targets, pids: vec![status.pid] })
}

fn fetch<T: for<'a> serde::Deserialize<'a>>(
    client: &Client,
    tried: &str,
    path: &str,
) -> Result<T, Failure> {
    let text = client.get(path).map_err(|e| unreachable(tried, &e))?;
    parse(tried, &text)
}

/// The nodes of the services.
fn known(client: &Client, tried: &str) -> Result<ServiceNodes, Failure> {
    let node = |path: &str| fetch::<Node>(client, tried, &format!("/api/v1/nodes/{path}"));
    let pin = |service: &Node| {
        let shown = text(service, "certificate_shown").unwrap_or_default();
        let certificate = format!("configuration/certificates/{}", url_encode(shown.as_bytes()));
        Ok(text(&node(&certificate)?, "fingerprint"))
    };
    let service = |service: Service| {
        let node = node(&format!("configuration/services/{}", service.id()))?;
        // Not every service shows a certificate.
        let shows = node.properties.iter().any(|one| one.name == "certificate_shown");
        let pin = if shows { pin(&node)? } else { None };
        Ok((service, ServiceNode { node, pin }))
    };
    Service::SIGN_IN.into_iter().map(service).collect()
}

/// The password, from where it does not show.
fn password(args: &ShareArgs) -> Result<String, Failure> {
    let tried = format!("sign in as {}", args.user);
    if let Some(file) = &args.password_file {
        return Secret::File(file.clone()).read().or_failure(&tried);
    }
    if let Ok(password) = std::env::var(PASSWORD_ENV) {
        return Ok(password);
    }
    let mut user = User { asks: std::io::stdin().is_terminal() };
    user.secret(&format!("password of {}", args.user)).ok_or_else(|| {
        let hint = format!(
            "use --password-file FILE, the environment variable {PASSWORD_ENV}, or a terminal \
             prompt"
        );
        Failure::new(&tried, "no password", &hint)
    })
}

/// Why a service does not let the user in.
fn rejected(at: &ServiceAt, error: &ClientError) -> Failure {
    let user = at.user.as_deref().unwrap_or_default();
    let tried = format!("sign in over {} as {user}", at.scheme.title());
    Failure::of(&tried, error).hint(match error {
        ClientError::Refused { .. } => {
            "check the password, or choose another user with --user NAME; `plimsoll cli -c \
             'configuration users list'` lists the users"
        }
        _ => "",
    })
}

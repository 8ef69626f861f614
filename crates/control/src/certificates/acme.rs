//! One order by ACME (RFC 8555): account, proofs, certificate. What is kept of it is `issued`'s.

mod http;
pub mod issued;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base::limits::ACME_ORDER_TIMEOUT;
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, ChallengeType, Error, Identifier, NewAccount,
    NewOrder, Order, OrderStatus, RetryPolicy,
};
use serde_json::Value as Json;

use super::answers::{self, Answer, Answers};

/// An order and its CA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acme {
    /// The ACME directory of the CA.
    pub directory: String,
    /// That its terms are agreed to.
    pub agreed: bool,
    /// Contact addresses of the account.
    pub contacts: Vec<String>,
    /// Names and addresses.
    pub domains: Vec<String>,
    /// How they are proved.
    pub proof: Proof,
    /// The CA of the directory's own certificate, PEM; none: the CAs that this machine trusts.
    pub authorities: Option<String>,
}

/// How a name is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// tls-alpn-01 (RFC 8737).
    Tls,
    /// http-01 on this port (RFC 8555 §8.3).
    Http(u16),
}

/// What came out of it.
pub struct Given {
    /// The certificate, and those behind it; PEM.
    pub chain: String,
    /// Its private key, PEM.
    pub key: String,
}

/// Orders a certificate. `account` is what `keep` received before; it is called as soon as there is
/// an account, which must not be lost.
///
/// # Errors
/// One sentence: the server that refused, and why.
pub async fn order(
    acme: &Acme,
    account: Option<Json>,
    answers: &Arc<Answers>,
    here: IpAddr,
    keep: impl FnOnce(Json),
) -> Result<Given, String> {
    let account = open(acme, account, keep).await?;
    let identifiers: Vec<Identifier> = acme.domains.iter().map(|name| identifier(name)).collect();
    let mut order = account
        .new_order(&NewOrder::new(&identifiers))
        .await
        .map_err(|e| failure("the CA rejected the order", &e))?;
    let ready = async {
        let _kept = proofs(acme.proof, &mut order, answers).await?;
        wait_until_ready(&mut order).await
    };
    match acme.proof {
        Proof::Tls => ready.await?,
        Proof::Http(port) => {
            let at = SocketAddr::new(here, port);
            let listening = answers::serve(at, Arc::clone(answers))
                .await
                .map_err(|e| format!("cannot listen on {at} for the http-01 challenge: {e}"))?;
            tokio::select! {
                ready = ready => ready?,
                never = listening => match never {},
            }
        }
    }
    let key =
        order.finalize().await.map_err(|e| failure("the CA did not issue the certificate", &e))?;
    let chain = order
        .poll_certificate(&retry_policy())
        .await
        .map_err(|e| failure("the certificate did not arrive", &e))?;
    Ok(Given { chain, key })
}

async fn open(
    acme: &Acme,
    known: Option<Json>,
    keep: impl FnOnce(Json),
) -> Result<Account, String> {
    let http = http::Http::new(acme.authorities.as_deref())?;
    let builder = Account::builder_with_http(Box::new(http));
    if let Some(known) = known.and_then(|known| serde_json::from_value(known).ok()) {
        let known: AccountCredentials = known;
        return builder
            .from_credentials(known)
            .await
            .map_err(|e| failure("the CA cannot be reached", &e));
    }
    let contacts: Vec<String> = acme.contacts.iter().map(|one| format!("mailto:{one}")).collect();
    let contacts: Vec<&str> = contacts.iter().map(String::as_str).collect();
    let new = NewAccount {
        contact: &contacts,
        terms_of_service_agreed: acme.agreed,
        only_return_existing: false,
    };
    let (account, credentials) = builder
        .create(&new, acme.directory.clone(), None)
        .await
        .map_err(|e| failure("the CA rejected the account", &e))?;
    let credentials = serde_json::to_value(&credentials)
        .map_err(|e| format!("the account cannot be stored: {e}"))?;
    keep(credentials);
    Ok(account)
}

/// Installs the challenge response for each name that is not validated yet.
async fn proofs(
    proof: Proof,
    order: &mut Order,
    answers: &Arc<Answers>,
) -> Result<Vec<Answer>, String> {
    let mut kept = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization =
            authorization.map_err(|e| failure("the CA sent no authorizations", &e))?;
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let name = authorization.identifier().to_string();
        let (kind, called) = match proof {
            Proof::Tls => (ChallengeType::TlsAlpn01, "tls-alpn-01"),
            Proof::Http(_) => (ChallengeType::Http01, "http-01"),
        };
        let mut challenge = authorization
            .challenge(kind)
            .ok_or_else(|| format!("the CA offers no {called} challenge for {name}"))?;
        let answer = challenge.key_authorization();
        kept.push(match proof {
            Proof::Tls => answers.over_tls(&name, answer.digest().as_ref())?,
            Proof::Http(_) => answers.over_http(&challenge.token, answer.as_str()),
        });
        challenge
            .set_ready()
            .await
            .map_err(|e| failure("the CA did not validate the challenge", &e))?;
    }
    Ok(kept)
}

async fn wait_until_ready(order: &mut Order) -> Result<(), String> {
    let otherwise = match order.poll_ready(&retry_policy()).await {
        Ok(OrderStatus::Ready | OrderStatus::Valid) => return Ok(()),
        Ok(_) => "the CA refused the order without a reason".to_owned(),
        Err(e) => failure("the CA refused the order", &e),
    };
    Err(refusal(order).await.unwrap_or(otherwise))
}

/// The name that was not validated, with the error of the CA.
async fn refusal(order: &mut Order) -> Option<String> {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        // If the refresh fails, the known state is used.
        let _ = authorization.refresh().await;
        let name = authorization.identifier().to_string();
        let error = authorization.challenges.iter().find_map(|one| one.error.as_ref());
        if let Some(error) = error {
            let why = error.detail.as_deref().unwrap_or("no reason given");
            return Some(format!("the CA could not validate {name}: {why}"));
        }
    }
    None
}

fn identifier(name: &str) -> Identifier {
    match name.parse::<IpAddr>() {
        Ok(address) => Identifier::Ip(address),
        Err(_) => Identifier::Dns(name.trim_end_matches('.').to_ascii_lowercase()),
    }
}

fn retry_policy() -> RetryPolicy {
    RetryPolicy::new().timeout(ACME_ORDER_TIMEOUT)
}

fn failure(what: &str, error: &Error) -> String {
    match error {
        Error::Api(problem) => {
            let why = problem.detail.as_deref().unwrap_or("no reason given");
            format!("{what}: {why}")
        }
        other => format!("{what}: {other}"),
    }
}

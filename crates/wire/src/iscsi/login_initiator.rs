//! The login phase of an initiator (RFC 7143 §6.3): which requests it sends, one after another.

use base::limits::{ISCSI_LOGIN_REQUESTS_MAX, ISCSI_LOGIN_TEXT_MAX};
use thiserror::Error;

use super::chap::{self, Algorithm, CHALLENGE, Challenge, ChapError, Received, encode_hex};
use super::keys::{CHAP, Key, NONE};
use super::login::{LoginResponse, LoginStatus, Stage, Stages};
use super::login_phase::{Credentials, Identity};
use super::negotiate::{Negotiation, NegotiationError, Parameters, Side};
use super::pairs::{self, Collector, Pair, TextError, put};

/// Why a login fails.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoginError {
    /// The target refuses.
    #[error("the target refuses the login: class {}, detail {}", .0.class, .0.detail)]
    Refused(LoginStatus),
    /// The target's text cannot be understood.
    #[error("text of the target")]
    Text(#[from] TextError),
    /// The target's answers do not fit.
    #[error("answers of the target")]
    Negotiation(#[from] NegotiationError),
    /// The authentication failed.
    #[error("authentication")]
    Chap(#[from] ChapError),
    /// The target does not keep to the stages.
    #[error("the target does not keep to the stages of a login")]
    Stages,
}

/// How we sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// What we know.
    pub initiator: Credentials,
    /// What the target must know; without it only we sign in.
    pub target: Option<Credentials>,
    /// Random bytes: identifier and challenge for the target.
    pub random: [u8; 1 + CHALLENGE],
}

/// What to send next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// A request with these stages and this text.
    Send(Stages, Vec<u8>),
    /// Nothing: the full feature phase has begun.
    Done,
}

/// How far the authentication is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Auth {
    /// AuthMethod was sent.
    Offered,
    /// CHAP_A was sent.
    AlgorithmsSent,
    /// CHAP_R was sent, with our challenge if the target must sign in.
    Answered(Option<Challenge>),
    /// Both sides are authenticated, as far as required.
    Done,
}

/// The login of one connection, as the initiator sees it.
#[derive(Debug)]
pub struct InitiatorLogin {
    identity: Identity,
    proof: Option<Proof>,
    stage: Stage,
    auth: Auth,
    negotiation: Negotiation,
    collector: Collector,
    requests: u32,
    has_proposed: bool,
}

impl InitiatorLogin {
    /// Begins one.
    pub fn new(identity: Identity, proof: Option<Proof>, wishes: Parameters) -> Self {
        let mut negotiation = Negotiation::new(Side::Initiator, wishes);
        if identity.is_discovery {
            negotiation.set_discovery();
        }
        Self {
            identity,
            proof,
            stage: Stage::SecurityNegotiation,
            auth: Auth::Offered,
            negotiation,
            collector: Collector::new(ISCSI_LOGIN_TEXT_MAX),
            requests: 0,
            has_proposed: false,
        }
    }

    /// What was agreed on; it holds from the full feature phase on.
    pub fn parameters(&self) -> Parameters {
        self.negotiation.result()
    }

    /// The first request.
    pub fn begin(&self) -> (Stages, Vec<u8>) {
        let mut text = Vec::new();
        put(&mut text, Key::InitiatorName.name(), &self.identity.initiator);
        let kind = if self.identity.is_discovery { "Discovery" } else { "Normal" };
        put(&mut text, Key::SessionType.name(), kind);
        if let Some(target) = &self.identity.target {
            put(&mut text, Key::TargetName.name(), target);
        }
        let (methods, transit) = match self.proof {
            Some(_) => (CHAP, None),
            None => (NONE, Some(Stage::LoginOperationalNegotiation)),
        };
        put(&mut text, Key::AuthMethod.name(), methods);
        (Stages { current: self.stage, transit, to_be_continued: false }, text)
    }

    /// Takes a response and returns what to send.
    ///
    /// # Errors
    /// [`LoginError`]; close the connection.
    pub fn take(&mut self, response: &LoginResponse<'_>) -> Result<Next, LoginError> {
        self.requests += 1;
        if response.status != LoginStatus::SUCCESS {
            return Err(LoginError::Refused(response.status));
        }
        let stages = response.stages;
        if stages.current != self.stage || self.requests > ISCSI_LOGIN_REQUESTS_MAX {
            return Err(LoginError::Stages);
        }
        let Some(text) = self.collector.push(response.data, stages.to_be_continued)? else {
            return Ok(self.send(None, Vec::new()));
        };
        let text = text.to_vec();
        let pairs = pairs::parse(&text)?;
        let mut out = Vec::new();
        if self.stage == Stage::SecurityNegotiation {
            self.authenticate(&pairs, &mut out)?;
        }
        for pair in &pairs {
            match Key::of(pair.key) {
                Some(Key::AuthMethod | Key::ChapA | Key::ChapI | Key::ChapC | Key::ChapN)
                | Some(Key::ChapR | Key::TargetAlias | Key::TargetPortalGroupTag) => {}
                Some(Key::TargetAddress) => {}
                _ => self.negotiation.take(*pair, &mut out)?,
            }
        }
        if let Some(next) = stages.transit {
            if self.auth != Auth::Done {
                return Err(LoginError::Stages);
            }
            self.stage = next;
        }
        Ok(match self.stage {
            Stage::FullFeaturePhase => Next::Done,
            Stage::LoginOperationalNegotiation => {
                if !self.has_proposed {
                    self.has_proposed = true;
                    self.negotiation.propose(&mut out);
                }
                self.send(Some(Stage::FullFeaturePhase), out)
            }
            Stage::SecurityNegotiation => {
                let is_last = matches!(self.auth, Auth::Answered(_) | Auth::Done);
                self.send(is_last.then_some(Stage::LoginOperationalNegotiation), out)
            }
        })
    }

    fn send(&self, transit: Option<Stage>, text: Vec<u8>) -> Next {
        Next::Send(Stages { current: self.stage, transit, to_be_continued: false }, text)
    }

    /// One step of CHAP, or of none.
    fn authenticate(&mut self, pairs: &[Pair<'_>], out: &mut Vec<u8>) -> Result<(), LoginError> {
        let get = |key: Key| pairs.iter().find(|pair| pair.key == key.name()).map(|p| p.value);
        let need = |key: Key| get(key).ok_or(ChapError::Missing(key.name()));
        self.auth = match (&self.auth, &self.proof) {
            (Auth::Offered, None) => Auth::Done,
            (Auth::Offered, Some(_)) => {
                if need(Key::AuthMethod)? != CHAP {
                    return Err(ChapError::BadValue("AuthMethod").into());
                }
                put(out, Key::ChapA.name(), Algorithm::LIST);
                Auth::AlgorithmsSent
            }
            (Auth::AlgorithmsSent, Some(proof)) => {
                let algorithm = Algorithm::choose(need(Key::ChapA)?)?;
                let (identifier, challenge) = (need(Key::ChapI)?, need(Key::ChapC)?);
                let theirs = Received { identifier, challenge };
                let response = algorithm.response(
                    theirs.identifier()?,
                    &proof.initiator.secret,
                    &theirs.challenge()?,
                );
                put(out, Key::ChapN.name(), &proof.initiator.name);
                put(out, Key::ChapR.name(), &encode_hex(&response));
                Auth::Answered(mutual_challenge(proof, algorithm, &theirs, out)?)
            }
            (Auth::Answered(None), _) => Auth::Done,
            (Auth::Answered(Some(challenge)), Some(Proof { target: Some(target), .. })) => {
                if need(Key::ChapN)? != target.name {
                    return Err(ChapError::WrongName.into());
                }
                challenge.check(&target.secret, need(Key::ChapR)?)?;
                Auth::Done
            }
            (Auth::Done, _) => Auth::Done,
            _ => return Err(LoginError::Stages),
        };
        Ok(())
    }
}

/// Our challenge to the target, if it must sign in.
fn mutual_challenge(
    proof: &Proof,
    algorithm: Algorithm,
    theirs: &Received<'_>,
    out: &mut Vec<u8>,
) -> Result<Option<Challenge>, chap::ChapError> {
    let Some(target) = &proof.target else { return Ok(None) };
    let [identifier, challenge @ ..] = proof.random;
    if target.secret == proof.initiator.secret {
        return Err(ChapError::SameSecret);
    }
    if theirs.challenge()? == challenge {
        return Err(ChapError::Reflected);
    }
    put(out, Key::ChapI.name(), &identifier.to_string());
    put(out, Key::ChapC.name(), &encode_hex(&challenge));
    Ok(Some(Challenge { algorithm, identifier, challenge }))
}

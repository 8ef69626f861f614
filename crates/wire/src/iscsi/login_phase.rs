//! The login phase of a target (RFC 7143 §6.3): stages, identity, CHAP and operational parameters
//! as a machine that takes requests and returns responses. It has no list of targets and no
//! secrets; the caller supplies them once the initiator has sent its name.

use base::limits::{
    ISCSI_LOGIN_DATA_MAX, ISCSI_LOGIN_REQUESTS_MAX, ISCSI_LOGIN_TEXT_MAX, ISCSI_NAME_MAX,
};

use super::chap::{Algorithm, CHALLENGE, Challenge, Received, encode_hex};
use super::keys::{CHAP, Key, NONE, REJECT};
use super::login::{Isid, LoginRequest, LoginStatus, Stage, Stages, VERSION};
use super::negotiate::{Negotiation, Parameters, Side};
use super::pairs::{self, Collector, Pair, put};

/// Most bytes of text of a response: what an initiator takes at least (§13.12), but for the portal
/// group, which is added later.
const LOGIN_REPLY_MAX: usize = ISCSI_LOGIN_DATA_MAX - 64;

/// The names that the initiator has sent, and the kind of session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// InitiatorName.
    pub initiator: String,
    /// TargetName, unless the session is for discovery.
    pub target: Option<String>,
    /// The session is for discovery.
    pub is_discovery: bool,
}

/// A name and its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// CHAP_N.
    pub name: String,
    /// The secret.
    pub secret: Vec<u8>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How an initiator signs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authentication {
    /// Not at all.
    None,
    /// With CHAP.
    Chap {
        /// What it must know.
        initiator: Credentials,
        /// The target's credentials, if the initiator requests them.
        target: Option<Credentials>,
        /// Random bytes: the identifier, then the challenge.
        random: [u8; 1 + CHALLENGE],
    },
}

/// What the caller grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// How the initiator signs in.
    pub authentication: Authentication,
    /// The portal group of the connection, sent unless the session is for discovery.
    pub portal_group: u16,
}

/// What to do after a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Find out what this initiator may do, then call [`TargetLogin::admit`], or answer with a
    /// status of your own.
    Identify(Identity),
    /// Respond.
    Reply(Reply),
}

/// A response with status success. A transit to the full feature phase ends the login; then the
/// caller puts the session's TSIH into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Stages.
    pub stages: Stages,
    /// Text: less than the 8 KiB of a segment.
    pub text: Vec<u8>,
}

/// How far the authentication is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Auth {
    /// Not negotiated.
    Undecided,
    /// CHAP was chosen.
    Chosen,
    /// Our challenge is out.
    Challenged(Challenge),
    /// The initiator is authenticated, or need not be.
    Done,
}

/// What all requests of a login have in common (§11.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thread {
    itt: u32,
    isid: Isid,
    cid: u16,
    tsih: u16,
}

/// The login of one connection, as the target sees it.
#[derive(Debug)]
pub struct TargetLogin {
    stage: Stage,
    thread: Option<Thread>,
    requests: u32,
    collector: Collector,
    /// Stages and text of the request that waits for [`Self::admit`].
    waiting: Option<(Stages, Vec<u8>)>,
    identity: Option<Identity>,
    access: Option<Access>,
    auth: Auth,
    negotiation: Negotiation,
}

impl TargetLogin {
    /// Begins one, on a connection that is ready for these parameters.
    pub fn new(wishes: Parameters) -> Self {
        Self {
            stage: Stage::SecurityNegotiation,
            thread: None,
            requests: 0,
            collector: Collector::new(ISCSI_LOGIN_TEXT_MAX),
            waiting: None,
            identity: None,
            access: None,
            auth: Auth::Undecided,
            negotiation: Negotiation::new(Side::Target, wishes),
        }
    }

    /// The identity of the initiator, authenticated or not.
    pub const fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// What was agreed on; it holds from the full feature phase on.
    pub fn parameters(&self) -> Parameters {
        self.negotiation.result()
    }

    /// Takes a request.
    ///
    /// # Errors
    /// The status to respond with; then the connection is closed (§11.13.5).
    pub fn take(&mut self, request: &LoginRequest<'_>) -> Result<Step, LoginStatus> {
        self.requests += 1;
        if self.requests > ISCSI_LOGIN_REQUESTS_MAX || self.waiting.is_some() {
            return Err(LoginStatus::INITIATOR_ERROR);
        }
        self.follow(request)?;
        let stages = request.stages;
        let pushed = self.collector.push(request.data, stages.to_be_continued);
        let Some(text) = pushed.map_err(|_| LoginStatus::INITIATOR_ERROR)? else {
            let (current, to_be_continued) = (stages.current, false);
            let stages = Stages { current, transit: None, to_be_continued };
            return Ok(Step::Reply(Reply { stages, text: Vec::new() }));
        };
        let text = text.to_vec();
        if self.identity.is_some() {
            return self.respond(stages, &text).map(Step::Reply);
        }
        let identity = identify(&parse(&text)?)?;
        if identity.is_discovery {
            self.negotiation.set_discovery();
        }
        self.identity = Some(identity.clone());
        self.waiting = Some((stages, text));
        Ok(Step::Identify(identity))
    }

    /// Continues after [`Step::Identify`].
    ///
    /// # Errors
    /// The status to respond with.
    pub fn admit(&mut self, access: Access) -> Result<Reply, LoginStatus> {
        let Some((stages, text)) = self.waiting.take() else {
            return Err(LoginStatus::TARGET_ERROR);
        };
        let must_sign_in = access.authentication != Authentication::None;
        if must_sign_in && stages.current != Stage::SecurityNegotiation {
            return Err(LoginStatus::AUTHENTICATION_FAILURE);
        }
        if stages.current != Stage::SecurityNegotiation {
            self.auth = Auth::Done;
        }
        let portal_group = access.portal_group;
        self.access = Some(access);
        let mut reply = self.respond(stages, &text)?;
        if self.identity.as_ref().is_some_and(|identity| !identity.is_discovery) {
            put(&mut reply.text, Key::TargetPortalGroupTag.name(), &portal_group.to_string());
        }
        Ok(reply)
    }

    /// Checks that a request belongs to this login (§11.12: the same tag, ISID, CID and TSIH, the
    /// stage that it is in).
    fn follow(&mut self, request: &LoginRequest<'_>) -> Result<(), LoginStatus> {
        let (itt, isid, cid, tsih) = (request.itt, request.isid, request.cid, request.tsih);
        let thread = Thread { itt, isid, cid, tsih };
        match self.thread {
            None if request.version_min > VERSION => return Err(LoginStatus::UNSUPPORTED_VERSION),
            None => {
                self.thread = Some(thread);
                self.stage = request.stages.current;
            }
            Some(first) if first != thread => return Err(LoginStatus::INITIATOR_ERROR),
            Some(_) if request.stages.current != self.stage => {
                return Err(LoginStatus::INITIATOR_ERROR);
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn respond(&mut self, stages: Stages, text: &[u8]) -> Result<Reply, LoginStatus> {
        let mut pairs = parse(text)?;
        // FirstBurstLength is bound by the MaxBurstLength of the same text, wherever that stands.
        pairs.sort_by_key(|pair| pair.key == Key::FirstBurstLength.name());
        let mut out = Vec::new();
        let chap = |key: Key| pairs.iter().find(|pair| pair.key == key.name()).map(|p| p.value);
        let mut has_response = false;
        for pair in &pairs {
            match Key::of(pair.key) {
                Some(
                    Key::InitiatorName | Key::TargetName | Key::SessionType | Key::InitiatorAlias,
                ) => {}
                Some(Key::AuthMethod) => self.choose_method(pair.value, &mut out)?,
                Some(Key::ChapA) => self.challenge(pair.value, &mut out)?,
                Some(Key::ChapR) => has_response = true,
                Some(Key::ChapN | Key::ChapI | Key::ChapC) => {}
                _ => {
                    let taken = self.negotiation.take(*pair, &mut out);
                    taken.map_err(|_| LoginStatus::INITIATOR_ERROR)?;
                }
            }
        }
        if has_response {
            self.check_response(chap, &mut out)?;
        }
        let transit = stages.transit.filter(|_| self.may_leave());
        if stages.current == Stage::LoginOperationalNegotiation {
            self.negotiation.declare(&mut out);
        }
        // Too many unknown keys: their answers are longer than they are.
        if out.len() > LOGIN_REPLY_MAX {
            return Err(LoginStatus::INITIATOR_ERROR);
        }
        if let Some(next) = transit {
            self.stage = next;
        }
        let stages = Stages { current: stages.current, transit, to_be_continued: false };
        Ok(Reply { stages, text: out })
    }

    /// Whether nothing holds us in this stage.
    fn may_leave(&mut self) -> bool {
        let none = matches!(self.access, Some(Access { authentication: Authentication::None, .. }));
        if none && self.auth == Auth::Undecided {
            self.auth = Auth::Done;
        }
        self.auth == Auth::Done
    }

    /// AuthMethod (§12.1).
    fn choose_method(&mut self, list: &str, out: &mut Vec<u8>) -> Result<(), LoginStatus> {
        let has = |method: &str| list.split(',').any(|offered| offered == method);
        let Some(access) = self.access.as_ref().filter(|_| self.auth == Auth::Undecided) else {
            return Err(LoginStatus::INITIATOR_ERROR);
        };
        let (method, auth) = match access.authentication {
            Authentication::None if has(NONE) => (NONE, Auth::Done),
            Authentication::Chap { .. } if has(CHAP) => (CHAP, Auth::Chosen),
            _ => return Err(LoginStatus::AUTHENTICATION_FAILURE),
        };
        self.auth = auth;
        put(out, Key::AuthMethod.name(), method);
        Ok(())
    }

    /// CHAP_A: our challenge is the answer.
    fn challenge(&mut self, list: &str, out: &mut Vec<u8>) -> Result<(), LoginStatus> {
        let Some(Access { authentication: Authentication::Chap { random, .. }, .. }) =
            self.access.as_ref().filter(|_| self.auth == Auth::Chosen)
        else {
            return Err(LoginStatus::INITIATOR_ERROR);
        };
        let Ok(algorithm) = Algorithm::choose(list) else {
            put(out, Key::ChapA.name(), REJECT);
            return Err(LoginStatus::AUTHENTICATION_FAILURE);
        };
        let [identifier, challenge @ ..] = *random;
        put(out, Key::ChapA.name(), algorithm.number());
        put(out, Key::ChapI.name(), &identifier.to_string());
        put(out, Key::ChapC.name(), &encode_hex(&challenge));
        self.auth = Auth::Challenged(Challenge { algorithm, identifier, challenge });
        Ok(())
    }

    /// CHAP_N and CHAP_R, and the challenge to us if the initiator sends one.
    fn check_response<'t>(
        &mut self,
        value: impl Fn(Key) -> Option<&'t str>,
        out: &mut Vec<u8>,
    ) -> Result<(), LoginStatus> {
        let failure = LoginStatus::AUTHENTICATION_FAILURE;
        // A challenge is for one answer: whatever comes of it, it is used up.
        let auth = std::mem::replace(&mut self.auth, Auth::Chosen);
        let Auth::Challenged(challenge) = auth else { return Err(LoginStatus::INITIATOR_ERROR) };
        let Some(Access { authentication: Authentication::Chap { initiator, target, .. }, .. }) =
            &self.access
        else {
            return Err(LoginStatus::TARGET_ERROR);
        };
        let (name, response) = (value(Key::ChapN), value(Key::ChapR));
        let checked = challenge.check(&initiator.secret, response.unwrap_or_default());
        if checked.is_err() || name != Some(&initiator.name) {
            return Err(failure);
        }
        match (value(Key::ChapI), value(Key::ChapC)) {
            (None, None) => {}
            (Some(identifier), Some(theirs)) => {
                let target = target.as_ref().ok_or(failure)?;
                let theirs = Received { identifier, challenge: theirs };
                let answer = challenge
                    .mutual_response(&theirs, &target.secret, &initiator.secret)
                    .map_err(|_| failure)?;
                put(out, Key::ChapN.name(), &target.name);
                put(out, Key::ChapR.name(), &encode_hex(&answer));
            }
            _ => return Err(failure),
        }
        self.auth = Auth::Done;
        Ok(())
    }
}

/// The pairs of a text; no key that the RFC has comes twice (§6.2).
fn parse(text: &[u8]) -> Result<Vec<Pair<'_>>, LoginStatus> {
    let pairs = pairs::parse(text).map_err(|_| LoginStatus::INITIATOR_ERROR)?;
    match pairs::has_key_twice(&pairs) {
        true => Err(LoginStatus::INITIATOR_ERROR),
        false => Ok(pairs),
    }
}

/// Whether a name may be one (§4.2.7.2, RFC 3722): what is forbidden and would be something else
/// where names are shown, or written into a TransportID (SPC-5 §7.6.4.6), is refused.
fn is_name(name: &str) -> bool {
    let is_bad = |c: char| c.is_control() || c.is_whitespace() || c == ',';
    !name.is_empty() && name.len() <= ISCSI_NAME_MAX && !name.contains(is_bad)
}

/// The identity in the first text (§6.3: InitiatorName always; TargetName unless the session is for
/// discovery).
fn identify(pairs: &[Pair<'_>]) -> Result<Identity, LoginStatus> {
    let value = |key: Key| pairs.iter().find(|pair| pair.key == key.name()).map(|pair| pair.value);
    let initiator = value(Key::InitiatorName).ok_or(LoginStatus::MISSING_PARAMETER)?;
    let is_discovery = match value(Key::SessionType) {
        None | Some("Normal") => false,
        Some("Discovery") => true,
        Some(_) => return Err(LoginStatus::SESSION_TYPE_NOT_SUPPORTED),
    };
    let target = value(Key::TargetName);
    if target.is_none() && !is_discovery {
        return Err(LoginStatus::MISSING_PARAMETER);
    }
    if !is_name(initiator) || target.is_some_and(|name| !is_name(name)) {
        return Err(LoginStatus::INITIATOR_ERROR);
    }
    Ok(Identity {
        initiator: initiator.to_owned(),
        target: target.map(str::to_owned),
        is_discovery,
    })
}

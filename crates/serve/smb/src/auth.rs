//! SESSION_SETUP (MS-SMB2 §3.3.5.5): a user signs in by NTLM version 2, alone or within SPNEGO.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use base::clock::stamp;
use base::limits::{
    SMB_SESSIONS_PER_CONNECTION, SMB_SETUP_KEPT_MAX, SMB_SETUP_ROUNDS_MAX, SMB_SETUPS_MAX,
};
use base::log::{ClientLines, Level};
use base::random::{Random, SystemRandom};
use vfs::identity::Person;
use vfs::share::Service;
use vfs::share::rules::Transport;
use wire::smb::crypto::Keys;
use wire::smb::header::Header;
use wire::smb::negotiate::security_mode;
use wire::smb::ntlm::{self, Authenticate, Challenge, Kind, Side};
use wire::smb::session::{Request, session_flags};
use wire::smb::spnego::{self, NegState};
use wire::smb::status::NtStatus;

use super::connection::{Connection, Negotiated};
use super::negotiate::now;
use super::settings::Encryption;
use super::state::session::Session;
use super::state::sessions::{End, Row};
use super::state::setup::Setup;
use super::status;
use files::Caller;

/// Bytes of a response of NTLM version 1 and of Lan Manager.
const LAN_MANAGER: usize = 24;

/// What is answered.
pub(super) struct Setting {
    /// The word of SPNEGO or NTLM.
    pub blob: Vec<u8>,
    /// Flags of the session.
    pub flags: u16,
    /// The session, once there is one.
    pub session: Option<Rc<Session>>,
    /// Its number.
    pub id: u64,
}

/// What a client without a user name is answered, and the key.
struct Anonymous {
    blob: Vec<u8>,
    key: [u8; 16],
}

/// An authenticated user.
struct Shown {
    person: Arc<Person>,
    key: [u8; 16],
    mic: Option<[u8; 16]>,
}

impl Connection {
    fn setup(&self, id: u64, binds: bool) -> Result<(u64, Setup), NtStatus> {
        let known = self.setups.borrow_mut().remove(&id);
        if let Some(setup) = known {
            return Ok((id, setup));
        }
        let new = Setup {
            preauth: self.preauth.get(),
            began_ns: stamp(),
            rounds: 0,
            wrapped: false,
            mechanisms: Vec::new(),
            exchange: None,
        };
        // A session that signs in again keeps its number.
        if binds {
            return Ok((id, new));
        }
        if id != 0 {
            return self.session(id).map(|_| (id, new));
        }
        if self.sessions.borrow().len() >= SMB_SESSIONS_PER_CONNECTION {
            return Err(NtStatus::INSUFFICIENT_RESOURCES);
        }
        Ok((self.server.sessions.new_id(), new))
    }

    /// Retains an authentication until its next message; the oldest of too many is dropped.
    fn keep_setup(&self, id: u64, setup: Setup) {
        let mut setups = self.setups.borrow_mut();
        if setups.len() >= SMB_SETUPS_MAX
            && let Some(oldest) = setups.iter().min_by_key(|(_, one)| one.began_ns)
        {
            let oldest = *oldest.0;
            setups.remove(&oldest);
        }
        setups.insert(id, setup);
    }

    /// Answers SESSION_SETUP. More words are to come if there is no session in the answer.
    ///
    /// # Errors
    /// The status of the response; what had begun is dropped.
    pub fn session_setup(
        &self,
        header: &Header,
        message: &[u8],
        bound: Option<Rc<Session>>,
    ) -> Result<Setting, NtStatus> {
        let agreed = self.agreed()?;
        let request = Request::decode(message).map_err(status::of_wire)?;
        let (id, mut setup) = self.setup(header.session_id, bound.is_some())?;
        setup.rounds += 1;
        if setup.rounds > SMB_SETUP_ROUNDS_MAX {
            return Err(NtStatus::LOGON_FAILURE);
        }
        setup.preauth.update(message);
        let token = setup.unwrap(request.blob)?;
        let Some(token) = token else {
            let blob = spnego::answer(NegState::RequestMic, true, None, None);
            self.keep_setup(id, setup);
            return Ok(Setting { blob, flags: 0, session: None, id });
        };
        match ntlm::kind(&token.ntlm).map_err(status::of_wire)? {
            Kind::Negotiate => {
                let blob = self.challenge(&mut setup, token.ntlm)?;
                self.keep_setup(id, setup);
                Ok(Setting { blob, flags: 0, session: None, id })
            }
            Kind::Authenticate => {
                let there = self.session(id).ok();
                let may_be_null = bound.is_none() && (there.is_some() || self.settings.anonymous);
                if may_be_null && let Some(anonymous) = setup.as_anonymous(&token)? {
                    return self.admit_null((id, &setup), there, anonymous, &agreed);
                }
                let shown = self.judge(&setup, &token)?;
                if let Some(session) = bound {
                    return self.bind((session, &setup), shown, &agreed);
                }
                self.welcome((id, &setup), shown, &request, &agreed)
            }
            Kind::Challenge => Err(NtStatus::INVALID_PARAMETER),
        }
    }

    fn challenge(&self, setup: &mut Setup, negotiate: Vec<u8>) -> Result<Vec<u8>, NtStatus> {
        let flags = ntlm::negotiate_flags(&negotiate).map_err(status::of_wire)?;
        if negotiate.len() > SMB_SETUP_KEPT_MAX {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        let mut random = [0; 8];
        SystemRandom.fill(&mut random);
        let challenge = Challenge::new(flags, random, &self.settings.name, now());
        let encoded = challenge.encode();
        let first = setup.rounds == 1;
        let blob = match setup.wrapped {
            true => spnego::answer(NegState::Incomplete, first, Some(&encoded), None),
            false => encoded.clone(),
        };
        setup.exchange = Some((negotiate, challenge, encoded));
        Ok(blob)
    }

    /// Judges the client's last message.
    fn judge(&self, setup: &Setup, token: &Token) -> Result<Shown, NtStatus> {
        let exchange = setup.exchange.as_ref().ok_or(NtStatus::INVALID_PARAMETER)?;
        let auth = Authenticate::decode(&token.ntlm).map_err(status::of_wire)?;
        // Anonymous, and version 1 or Lan Manager: their responses have 24 bytes.
        let (from, identity) = (self.peer.0.ip(), &self.core.files.identity);
        let name = auth.text(auth.user).unwrap_or_default();
        // By one name, however its letters are written: guesses at each count together.
        let known = self.known_as(&name);
        if identity.must_wait(from, &known).is_some() {
            return Err(NtStatus::ACCOUNT_LOCKED_OUT);
        }
        if name.is_empty() || auth.is_anonymous() {
            identity.judged(from, &known, false);
            return Err(NtStatus::LOGON_FAILURE);
        }
        // What is too long for an older version and does not hold together is no response at all.
        if auth.nt.len() > LAN_MANAGER && ntlm::response_facts(auth.nt).is_err() {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        let shown = self.prove((&name, &known), &auth, exchange, (setup, token));
        identity.judged(from, &known, shown.is_some());
        if identity.person(&known).is_some() && identity.nt_hash(&known).is_none() {
            static NO_HASH: ClientLines = ClientLines::new();
            NO_HASH.log((super::node::NODE.name, Level::Warning), from, || {
                format!(
                    "{known} cannot sign in: the password was set while SMB was disabled; set it \
                     again"
                )
            });
        }
        shown.ok_or(NtStatus::LOGON_FAILURE)
    }

    /// The user's name as it is configured: Windows does not distinguish case. An unknown one in
    /// lower case.
    fn known_as(&self, name: &str) -> String {
        let identity = &self.core.files.identity;
        match identity.person(name) {
            Some(_) => name.to_owned(),
            None => identity.in_any_case(name).unwrap_or_else(|| name.to_lowercase()),
        }
    }

    /// What a response proves; `None` if it is wrong, whatever is wrong about it.
    fn prove(
        &self,
        (name, known): (&str, &str),
        auth: &Authenticate<'_>,
        (negotiate, challenge, encoded): &(Vec<u8>, Challenge, Vec<u8>),
        (setup, token): (&Setup, &Token),
    ) -> Option<Shown> {
        let facts = ntlm::response_facts(auth.nt).ok()?;
        let identity = &self.core.files.identity;
        let hash = identity.nt_hash(known)?;
        let domain = auth.text(auth.domain).ok()?;
        let ntowf = ntlm::ntowf_v2(&hash, name, &domain);
        let base = ntlm::verify(&ntowf, &challenge.challenge, auth.nt)?;
        let key = ntlm::session_key(base, auth).ok()?;
        if facts.has_mic {
            let expected = ntlm::mic(&key, negotiate, encoded, &token.ntlm);
            same(&expected, &auth.mic?)?;
        }
        let list_mic = |side| ntlm::mech_list_mic(&key, auth.flags, side, &setup.mechanisms);
        if let Some(mic) = &token.mic {
            same(&list_mic(Side::Client), mic)?;
        }
        let mic = token.mic.is_some().then(|| list_mic(Side::Server));
        Some(Shown { person: identity.person(known)?, key, mic })
    }

    /// This connection is one more of a session.
    fn bind(
        &self,
        (session, setup): (Rc<Session>, &Setup),
        shown: Shown,
        agreed: &Negotiated,
    ) -> Result<Setting, NtStatus> {
        if session.is_null || session.who.person.name != shown.person.name {
            return Err(NtStatus::ACCESS_DENIED);
        }
        if self.sessions.borrow().len() >= SMB_SESSIONS_PER_CONNECTION {
            return Err(NtStatus::INSUFFICIENT_RESOURCES);
        }
        let algorithms = (agreed.signing, agreed.cipher);
        let keys = Keys::new(&shown.key, agreed.dialect, algorithms, &setup.preauth);
        let keys = keys.map_err(|_| NtStatus::INTERNAL_ERROR)?;
        let id = session.id;
        let mut channels = self.channels.borrow_mut();
        channels.retain(|other, _| self.session(*other).is_ok());
        channels.insert(id, keys.signer);
        drop(channels);
        session.add_channel(&self.mailbox);
        self.core.budget.keep_connection();
        self.sessions.borrow_mut().insert(id, Rc::clone(&session));
        self.take_mail_place(&session);
        let flags = if session.encrypts { session_flags::ENCRYPT } else { 0 };
        let blob = setup.completed(&shown);
        Ok(Setting { blob, flags, session: Some(session), id })
    }

    /// A session that is anonymous from now on, or a new one. That is one of no user: neither
    /// signed nor encrypted unless its client wants that, and within the limits of a connection
    /// without a user.
    fn admit_null(
        &self,
        (id, setup): (u64, &Setup),
        there: Option<Rc<Session>>,
        Anonymous { blob, key }: Anonymous,
        agreed: &Negotiated,
    ) -> Result<Setting, NtStatus> {
        let flags = session_flags::NULL;
        if let Some(session) = there {
            session.is_anonymous.set(true);
            return Ok(Setting { blob, flags, session: Some(session), id });
        }
        if self.settings.encryption == Encryption::Required {
            return Err(NtStatus::ACCESS_DENIED);
        }
        if self.sessions.borrow().len() >= SMB_SESSIONS_PER_CONNECTION {
            return Err(NtStatus::INSUFFICIENT_RESOURCES);
        }
        let algorithms = (agreed.signing, agreed.cipher);
        let keys = Keys::new(&key, agreed.dialect, algorithms, &setup.preauth);
        let keys = keys.map_err(|_| NtStatus::INTERNAL_ERROR)?;
        let person = self.core.files.identity.anonymous();
        let row = Row {
            id,
            user: person.name.clone(),
            from: self.peer.0.ip().to_canonical(),
            dialect: agreed.dialect.name(),
            encrypted: false,
        };
        let who = Caller::new(person, self.peer, Transport::Plain, Service::Smb);
        let known = (row, agreed.facts(), keys.signer.clone());
        let listed = self.server.sessions.add(known, &self.has_mail);
        let mut session = Session::new((id, who, listed), keys, (false, false));
        session.is_null = true;
        session.is_anonymous.set(true);
        let session = session.begin(&self.mailbox);
        self.sessions.borrow_mut().insert(id, Rc::clone(&session));
        Ok(Setting { blob, flags, session: Some(session), id })
    }

    fn welcome(
        &self,
        (id, setup): (u64, &Setup),
        shown: Shown,
        request: &Request<'_>,
        agreed: &Negotiated,
    ) -> Result<Setting, NtStatus> {
        let blob = setup.completed(&shown);
        if let Ok(there) = self.session(id) {
            // It has signed in again, as the same user; `Setup::as_anonymous` covers a sign-in as
            // no user.
            if there.is_null || there.who.person.name != shown.person.name {
                return Err(NtStatus::ACCESS_DENIED);
            }
            there.is_anonymous.set(false);
            return Ok(Setting { blob, flags: 0, session: Some(there), id });
        }
        // Others may have signed in since this began.
        if self.sessions.borrow().len() >= SMB_SESSIONS_PER_CONNECTION {
            return Err(NtStatus::INSUFFICIENT_RESOURCES);
        }
        let encrypts = self.settings.encryption == Encryption::Required;
        if encrypts && agreed.cipher.is_none() {
            return Err(NtStatus::ACCESS_DENIED);
        }
        let keys =
            Keys::new(&shown.key, agreed.dialect, (agreed.signing, agreed.cipher), &setup.preauth);
        let keys = keys.map_err(|_| NtStatus::INTERNAL_ERROR)?;
        let from: IpAddr = self.peer.0.ip().to_canonical();
        if request.previous_session != 0 {
            let user = Some(&*shown.person.name);
            self.server.sessions.end(request.previous_session, user, End::Replaced);
        }
        let row = Row {
            id,
            user: shown.person.name.clone(),
            from,
            dialect: agreed.dialect.name(),
            encrypted: encrypts,
        };
        // What the client supports: whether it is required is a property of the share, checked with
        // each request.
        let transport = if agreed.cipher.is_some() { Transport::Tls } else { Transport::Plain };
        let who = Caller::new(shown.person, self.peer, transport, Service::Smb);
        let who = who.folding(Arc::clone(&self.server.folds));
        let theirs = u16::from(request.security_mode) & security_mode::REQUIRED != 0;
        let signs = self.settings.signing_required || theirs;
        let facts = agreed.facts();
        let known = (row, facts, keys.signer.clone());
        let listed = self.server.sessions.add(known, &self.has_mail);
        let mut session = Session::new((id, who, listed), keys, (signs, encrypts));
        session.has_previous = request.previous_session != 0;
        let session = session.begin(&self.mailbox);
        self.core.budget.keep_connection();
        self.sessions.borrow_mut().insert(id, Rc::clone(&session));
        self.take_mail_place(&session);
        let flags = if encrypts { session_flags::ENCRYPT } else { 0 };
        Ok(Setting { blob, flags, session: Some(session), id })
    }
}

fn same(a: &[u8], b: &[u8]) -> Option<()> {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).ok()
}

/// A message of NTLM, and the checksum of the list of mechanisms.
struct Token {
    ntlm: Vec<u8>,
    mic: Option<Vec<u8>>,
}

impl Setup {
    /// What a client gets that signs in as anonymous; `None` if it does not.
    fn as_anonymous(&self, token: &Token) -> Result<Option<Anonymous>, NtStatus> {
        let auth = Authenticate::decode(&token.ntlm).map_err(status::of_wire)?;
        if self.exchange.is_none() || !auth.is_anonymous() {
            return Ok(None);
        }
        // The key of anonymous users is known to all (MS-NLMP §3.3.2).
        let key = ntlm::session_key([0; 16], &auth).map_err(status::of_wire)?;
        let Some(theirs) = &token.mic else {
            return Ok(Some(Anonymous { blob: self.last(None), key }));
        };
        let mic = |side| ntlm::mech_list_mic(&key, auth.flags, side, &self.mechanisms);
        same(&mic(Side::Client), theirs).ok_or(NtStatus::LOGON_FAILURE)?;
        Ok(Some(Anonymous { blob: self.last(Some(&mic(Side::Server))), key }))
    }

    /// The last word to a user.
    fn completed(&self, shown: &Shown) -> Vec<u8> {
        self.last(shown.mic.as_ref().map(|mic| &mic[..]))
    }

    fn last(&self, mic: Option<&[u8]>) -> Vec<u8> {
        match self.wrapped {
            true => spnego::answer(NegState::Completed, false, None, mic),
            false => Vec::new(),
        }
    }

    /// Takes a message of NTLM out of a client's word. `None` if it is one of a mechanism that we
    /// do not have, sent in the hope that we do.
    fn unwrap(&mut self, blob: &[u8]) -> Result<Option<Token>, NtStatus> {
        if ntlm::kind(blob).is_ok() {
            self.wrapped = false;
            return Ok(Some(Token { ntlm: blob.to_vec(), mic: None }));
        }
        let token = spnego::client(blob).map_err(status::of_wire)?;
        self.wrapped = true;
        let mic = token.mic.map(<[u8]>::to_vec);
        if let Some(list) = token.mechanisms {
            if list.len() > SMB_SETUP_KEPT_MAX {
                return Err(NtStatus::INVALID_PARAMETER);
            }
            self.mechanisms = list.to_vec();
            if !token.has_ntlm {
                return Err(NtStatus::LOGON_FAILURE);
            }
            if !token.prefers_ntlm {
                return Ok(None);
            }
        }
        match token.token {
            Some(ntlm) => Ok(Some(Token { ntlm: ntlm.to_vec(), mic })),
            None => Ok(None),
        }
    }
}

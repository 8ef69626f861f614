//! Authentication (RFC 4252): what to answer to each request. Passwords are judged elsewhere, on a
//! thread that may wait; `Outcome::Judge` requests that, and `Auth::judged` takes the result.

use std::net::IpAddr;
use std::sync::Arc;

use base::limits::{SSH_KEY_QUESTIONS_MAX, SSH_NAME_MAX, SSH_PASSWORD_MAX, SSH_TRIES_MAX};
use vfs::identity::{Person, Refused};
use wire::ssh::codec::Names;
use wire::ssh::message::{AuthRequest, InfoRequest, Message, Method, PkOk, reason};
use wire::ssh::transport::{Error, Transport};

use super::keys::Offer;
use super::{Methods, Ssh};

/// The service that one signs in for.
const CONNECTION: &str = "ssh-connection";

/// The result of a message.
pub(super) enum Outcome {
    /// It was answered.
    Answered,
    /// A password is to be judged: [`Auth::judged`].
    Judge(String, String),
    /// A user has signed in.
    Signed(Arc<Person>),
    /// The connection is to be ended: the reason code and the description.
    Enough(u32, &'static str),
}

/// How far a connection has come.
pub(super) struct Auth {
    from: IpAddr,
    offered: bool,
    tries: u32,
    questions: u32,
    /// The user name of the pending password prompt.
    asked: Option<String>,
}

impl Auth {
    pub(super) fn new(from: IpAddr) -> Self {
        Self { from, offered: false, tries: 0, questions: 0, asked: None }
    }

    /// Answers a message before sign-in.
    pub(super) fn receive(
        &mut self,
        ssh: &Ssh,
        transport: &mut Transport,
        now_s: u64,
        message: Message<'_>,
    ) -> Result<Outcome, Error> {
        match message {
            Message::ServiceRequest("ssh-userauth") => {
                transport.send_message(&Message::ServiceAccept("ssh-userauth"))?;
                if let Some(banner) = ssh.banner.as_ref().filter(|_| !self.offered) {
                    let message = banner.as_bytes();
                    transport.send_message(&Message::UserauthBanner { message, language: b"" })?;
                }
                self.offered = true;
                Ok(Outcome::Answered)
            }
            Message::ServiceRequest(_) => Ok(Outcome::Enough(
                reason::SERVICE_NOT_AVAILABLE,
                "service not available before authentication",
            )),
            Message::UserauthRequest(request) if self.offered => {
                self.request(ssh, transport, now_s, &request)
            }
            Message::UserauthInfoResponse(answers) => match self.asked.take() {
                Some(user) => {
                    self.password(ssh, transport, &user, answers.iter().next().unwrap_or_default())
                }
                None => self.refuse(ssh, transport),
            },
            Message::Unknown(_) => {
                transport.unimplemented()?;
                Ok(Outcome::Answered)
            }
            _ => Err(Error::Protocol("unexpected message before authentication")),
        }
    }

    fn request(
        &mut self,
        ssh: &Ssh,
        transport: &mut Transport,
        now_s: u64,
        request: &AuthRequest<'_>,
    ) -> Result<Outcome, Error> {
        // Any other method abandons a prompt (RFC 4256, section 3.1).
        self.asked = None;
        let Methods { password, key } = ssh.methods;
        if request.service != CONNECTION || request.user.len() > SSH_NAME_MAX {
            return self.refuse(ssh, transport);
        }
        match request.method {
            // Clients query the available methods with it.
            Method::None if self.tries + self.questions < SSH_KEY_QUESTIONS_MAX => {
                self.questions += 1;
                failure(ssh, transport)
            }
            Method::Password { password: given, new: None } if password => {
                self.password(ssh, transport, request.user, given)
            }
            Method::KeyboardInteractive { .. } if password => {
                self.asked = Some(request.user.to_owned());
                let prompt = Some((b"Password: ".as_slice(), false));
                let question = InfoRequest { name: b"", instruction: b"", prompt };
                transport.send(|out| question.encode(out))?;
                Ok(Outcome::Answered)
            }
            Method::PublicKey { .. } if key => self.key(ssh, transport, now_s, request),
            _ => self.refuse(ssh, transport),
        }
    }

    fn password(
        &mut self,
        ssh: &Ssh,
        transport: &mut Transport,
        user: &str,
        password: &[u8],
    ) -> Result<Outcome, Error> {
        match std::str::from_utf8(password) {
            Ok(text) if text.len() <= SSH_PASSWORD_MAX => {
                Ok(Outcome::Judge(user.to_owned(), text.to_owned()))
            }
            _ => self.refuse(ssh, transport),
        }
    }

    /// A password was judged.
    pub(super) fn judged(
        &mut self,
        ssh: &Ssh,
        transport: &mut Transport,
        judged: Result<Arc<Person>, Refused>,
    ) -> Result<Outcome, Error> {
        match judged {
            Ok(person) => {
                transport.send_message(&Message::UserauthSuccess)?;
                Ok(Outcome::Signed(person))
            }
            Err(_) => self.refuse(ssh, transport),
        }
    }

    fn key(
        &mut self,
        ssh: &Ssh,
        transport: &mut Transport,
        now_s: u64,
        request: &AuthRequest<'_>,
    ) -> Result<Outcome, Error> {
        let Method::PublicKey { algorithm, key, signature } = request.method else {
            return self.refuse(ssh, transport);
        };
        if ssh.identity.must_wait(self.from, request.user).is_some() {
            return self.refuse(ssh, transport);
        }
        let lines = ssh.identity.keys(request.user);
        let authorities = ssh.identity.authorities();
        let (user, from) = (request.user, self.from);
        let offer = Offer { user, from, now_s, lines: &lines, authorities: &authorities };
        let accepted = offer.judge(algorithm, key);
        let Some(signature) = signature else {
            // A query is not an attempt: an agent with many keys sends one for each. Their number
            // is limited.
            self.questions += 1;
            if self.questions > SSH_KEY_QUESTIONS_MAX {
                return Ok(enough());
            }
            if accepted.is_none() {
                return failure(ssh, transport);
            }
            transport.send(|out| PkOk { algorithm, key }.encode(out))?;
            return Ok(Outcome::Answered);
        };
        let session = transport.session().copied().unwrap_or_default();
        let signed = request.to_be_signed(&session);
        let right = accepted.is_some_and(|accepted| {
            accepted.key.verify(accepted.algorithm, &signed, signature).is_ok()
        });
        ssh.identity.judged(self.from, request.user, right);
        match ssh.identity.person(request.user).filter(|_| right) {
            Some(person) => {
                transport.send_message(&Message::UserauthSuccess)?;
                Ok(Outcome::Signed(person))
            }
            None => self.refuse(ssh, transport),
        }
    }

    fn refuse(&mut self, ssh: &Ssh, transport: &mut Transport) -> Result<Outcome, Error> {
        self.tries += 1;
        if self.tries >= SSH_TRIES_MAX { Ok(enough()) } else { failure(ssh, transport) }
    }
}

fn enough() -> Outcome {
    Outcome::Enough(reason::NO_MORE_AUTH_METHODS, "too many authentication failures")
}

fn failure(ssh: &Ssh, transport: &mut Transport) -> Result<Outcome, Error> {
    let methods = match ssh.methods {
        Methods { password: true, key: true } => "publickey,password,keyboard-interactive",
        Methods { password: true, key: false } => "password,keyboard-interactive",
        Methods { password: false, key: true } => "publickey",
        Methods { password: false, key: false } => "",
    };
    let methods = Names(methods);
    transport.send_message(&Message::UserauthFailure { methods, partial: false })?;
    Ok(Outcome::Answered)
}

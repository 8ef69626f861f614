//! How a connection begins (RFC 7143 §6.3): names, authentication, negotiation. The rules are
//! [`wire::iscsi::login_phase`]'s; here is what they ask for.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::{Deadline, monotonic_ns};
use base::limits::{ISCSI_COMMANDS_MAX, ISCSI_REPLACE_TIME_MAX};
use base::random::{Random, SystemRandom};
use vfs::lun::reservations::Port;
use wire::iscsi::chap::CHALLENGE;
use wire::iscsi::login::{LoginRequest, LoginResponse, LoginStatus, Stage, Stages, VERSION};
use wire::iscsi::login_phase::{Access, Authentication, Identity, Reply, Step, TargetLogin};
use wire::iscsi::negotiate::Parameters;
use wire::iscsi::{Request, Serial, TargetSn};

use super::conn::stream::Wire;
use super::core::Core;
use super::ended::Ended;
use super::session::{Session, Start};
use super::state::sessions::SessionRefused;
use super::targets::Target;

/// The TSIH of a session that has none yet.
const NO_SESSION: u16 = 0;

/// A login in progress.
struct Login<'a> {
    core: &'a Rc<Core>,
    machine: TargetLogin,
    target: Option<Arc<Target>>,
    /// Whether the initiator signs in with CHAP.
    uses_chap: bool,
    stat_sn: Option<Serial>,
}

/// Characters at the end of an initiator's name by which wrong secrets are counted: names differ in
/// their ends, and longer ones than those of users would be counted as one.
const THROTTLED_NAME: usize = 48;

fn throttled_name(initiator: &str) -> String {
    initiator.chars().rev().take(THROTTLED_NAME).collect()
}

/// Takes requests until the connection is in its full feature phase.
///
/// # Errors
/// The login has failed; a Login Response with the status was sent.
pub(super) async fn run(
    core: &Rc<Core>,
    wire: &mut Wire,
    (peer, local): (SocketAddr, SocketAddr),
) -> Result<Session, Ended> {
    let machine = TargetLogin::new(Parameters::of_target());
    let mut login = Login { core, machine, target: None, uses_chap: false, stat_sn: None };
    loop {
        while wire.front()?.is_none() {
            if wire.receive().await.map_err(|_| Ended::Gone)? == 0 {
                return Err(Ended::Gone);
            }
        }
        let (inbox, at, framer) = wire.lend();
        let stepped = login.step(wire, inbox.get(at..).unwrap_or_default(), framer, (peer, local));
        let stepped = stepped.await;
        let taken = stepped.as_ref().map_or(0, |(taken, _)| *taken);
        wire.restore(inbox, at + taken, 0);
        wire.send().await?;
        if let (_, Some(session)) = stepped? {
            core.iscsi.logins.fetch_add(1, Relaxed);
            return Ok(session);
        }
    }
}

impl Login<'_> {
    /// Handles the PDU at the front: how many bytes it took, and the session if that begins.
    async fn step(
        &mut self,
        wire: &mut Wire,
        rest: &[u8],
        framer: wire::iscsi::Framer,
        at: (SocketAddr, SocketAddr),
    ) -> Result<(usize, Option<Session>), Ended> {
        let wire::iscsi::Framed::Complete(pdu) = framer.next(rest)? else {
            return Err(Ended::Gone);
        };
        let data = pdu.data.unwrap_or_default();
        let Ok(Request::Login(request)) = Request::decode(&pdu.head, data) else {
            // Nothing else may come before the login has ended (§6.3).
            return Err(Ended::Broken);
        };
        let first = *self.stat_sn.get_or_insert(request.sn.exp_stat_sn);
        let outcome = self.respond(&request, at).await;
        let sn = TargetSn {
            stat_sn: first,
            exp_cmd_sn: request.sn.cmd_sn,
            max_cmd_sn: request.sn.cmd_sn.plus(ISCSI_COMMANDS_MAX - 1),
        };
        self.stat_sn = Some(first.next());
        match outcome {
            Ok((reply, session)) => {
                let tsih = session.as_ref().map_or(NO_SESSION, Session::tsih);
                put(wire, &request, sn, LoginStatus::SUCCESS, (&reply, tsih));
                Ok((pdu.consumed, session))
            }
            Err(status) => {
                self.core.iscsi.refusals.fetch_add(1, Relaxed);
                let stages = Stages {
                    current: request.stages.current,
                    transit: None,
                    to_be_continued: false,
                };
                put(wire, &request, sn, status, (&Reply { stages, text: Vec::new() }, NO_SESSION));
                wire.send().await?;
                Err(Ended::LoggedOut)
            }
        }
    }

    async fn respond(
        &mut self,
        request: &LoginRequest<'_>,
        at: (SocketAddr, SocketAddr),
    ) -> Result<(Reply, Option<Session>), LoginStatus> {
        if request.tsih != NO_SESSION {
            // A session has one connection (MaxConnections=1).
            return Err(LoginStatus::SESSION_DOES_NOT_EXIST);
        }
        let from = at.0.ip();
        let taken = self.machine.take(request);
        if taken.as_ref().err() == Some(&LoginStatus::AUTHENTICATION_FAILURE) {
            self.count_attempt(from, false);
        }
        let reply = match taken? {
            Step::Reply(reply) => reply,
            Step::Identify(identity) => {
                let access = self.access(&identity)?;
                self.uses_chap = matches!(access.authentication, Authentication::Chap { .. });
                if self.must_wait(from, &identity.initiator) {
                    return Err(LoginStatus::SERVICE_UNAVAILABLE);
                }
                self.machine.admit(access)?
            }
        };
        if reply.stages.transit != Some(Stage::FullFeaturePhase) {
            return Ok((reply, None));
        }
        self.count_attempt(from, true);
        let session = self.begin(request, at).await?;
        Ok((reply, Some(session)))
    }

    /// Whether the next secret of this initiator is not checked yet, after wrong ones.
    fn must_wait(&self, from: IpAddr, initiator: &str) -> bool {
        let name = throttled_name(initiator);
        let wait = self.core.iscsi.throttle().must_wait(from, &name, monotonic_ns());
        self.uses_chap && wait.is_some()
    }

    /// Counts a secret, right or wrong.
    fn count_attempt(&self, from: IpAddr, is_right: bool) {
        let Some(identity) = self.machine.identity().filter(|_| self.uses_chap) else { return };
        let (name, now) = (throttled_name(&identity.initiator), monotonic_ns());
        let mut throttle = self.core.iscsi.throttle();
        match is_right {
            true => throttle.succeeded(from, &name, now),
            false => throttle.failed(from, &name, now),
        }
    }

    /// What an initiator may do, and how it signs in.
    fn access(&mut self, identity: &Identity) -> Result<Access, LoginStatus> {
        let mut random = [0; 1 + CHALLENGE];
        SystemRandom.fill(&mut random);
        let iscsi = &self.core.iscsi;
        if identity.is_discovery {
            return Ok(iscsi.settings().discovery.access(&identity.initiator, random));
        }
        let name = identity.target.as_deref().unwrap_or_default();
        let target = iscsi.targets.find(name).ok_or(LoginStatus::NOT_FOUND)?;
        let access = target.sign_in().access(&identity.initiator, random);
        self.target = Some(target);
        Ok(access)
    }

    /// The session begins, in the place of one with the same name if there is one.
    async fn begin(
        &mut self,
        request: &LoginRequest<'_>,
        (peer, local): (SocketAddr, SocketAddr),
    ) -> Result<Session, LoginStatus> {
        let identity = self.machine.identity().ok_or(LoginStatus::TARGET_ERROR)?;
        let port = Port { name: identity.initiator.clone(), isid: request.isid.0 };
        if let Some(target) = &self.target
            && !target.is_seen_by(&port.name)
        {
            return Err(LoginStatus::AUTHORIZATION_FAILURE);
        }
        self.core.budget.keep_connection();
        let sessions = &self.core.iscsi.sessions;
        let name = self.target.as_ref().map(|target| target.name.clone());
        let until = Deadline::after(ISCSI_REPLACE_TIME_MAX);
        let seat = loop {
            if let Some(mut ended) = sessions.replace(&port, name.as_deref()) {
                let gone = async { while ended.changed().await.is_ok() {} };
                let left = until.left().unwrap_or_default();
                // Initiators try again; two sessions of one name would act for each other.
                let in_time = tokio::time::timeout(left, gone).await;
                in_time.map_err(|_| LoginStatus::OUT_OF_RESOURCES)?;
            }
            match sessions.enter(port.clone(), name.clone(), peer) {
                Ok(seat) => break seat,
                // Another login of this name was faster, and is replaced in its turn.
                Err(SessionRefused::InUse) if !until.passed() => {}
                Err(_) => return Err(LoginStatus::OUT_OF_RESOURCES),
            }
        };
        let start = Start {
            port,
            target: self.target.clone(),
            cid: request.cid,
            parameters: self.machine.parameters(),
            first: request.sn.cmd_sn,
            stat_sn: self.stat_sn.unwrap_or_default().next(),
            addresses: (peer, local),
        };
        Ok(Session::new(self.core, seat, start))
    }
}

fn put(
    wire: &mut Wire,
    request: &LoginRequest<'_>,
    sn: TargetSn,
    status: LoginStatus,
    (reply, tsih): (&Reply, u16),
) {
    wire.put(&LoginResponse {
        stages: reply.stages,
        version_max: VERSION,
        version_active: VERSION,
        isid: request.isid,
        tsih,
        itt: request.itt,
        sn,
        status,
        data: &reply.text,
    });
}

//! How a session begins: names, CHAP, what both agree on (RFC 7143 §6.3).

use super::at::IscsiAt;
use super::stream::Stream;
use crate::client::ClientError;
use base::limits::LAB_SILENCE_MAX;
use base::random::{Random, SystemRandom};
use std::path::Path;
use wire::iscsi::chap::CHALLENGE;
use wire::iscsi::login::{Isid, LoginRequest, LoginStatus};
use wire::iscsi::login_initiator::{InitiatorLogin, Next, Proof};
use wire::iscsi::login_phase::{Credentials, Identity};
use wire::iscsi::negotiate::Parameters;
use wire::iscsi::{InitiatorSn, Request, Response, Serial};

/// Bytes of a data segment that we take.
const DATA_MAX: u32 = 256 << 10;
/// Tag of the login.
const TAG: u32 = 1;

/// Signs in; the numbers with which commands begin, and what was agreed on.
///
/// # Errors
/// The connection breaks, or one of both refuses.
pub fn run(
    stream: &mut Stream,
    at: &IscsiAt,
) -> Result<(InitiatorSn, Serial, Parameters), ClientError> {
    // Each client is an initiator port of its own.
    let mut port = [0; 6];
    SystemRandom.fill(&mut port);
    let isid = Isid([0x80, port[1], port[2], port[3], port[4], port[5]]);
    let identity = Identity {
        initiator: format!("iqn.2026-01.io.plimsoll:lab.{}", crate::proc::host_name()),
        target: Some(at.target.clone()),
        is_discovery: false,
    };
    let wishes = Parameters {
        digests: at.digests,
        initial_r2t: false,
        max_recv_data: DATA_MAX,
        max_burst: 16 * 1024 * 1024 - 512,
        first_burst: DATA_MAX,
        max_outstanding_r2t: 8,
        time2retain: 0,
        ..Parameters::default()
    };
    let mut login = InitiatorLogin::new(identity, proof(at)?, wishes);
    let mut sn = InitiatorSn { cmd_sn: Serial(1), exp_stat_sn: Serial(0) };
    let (mut stages, mut text) = login.begin();
    loop {
        let request = LoginRequest {
            stages,
            version_max: 0,
            version_min: 0,
            isid,
            tsih: 0,
            itt: TAG,
            cid: 0,
            sn,
            data: &text,
        };
        stream.put(&Request::Login(request));
        stream.send_all()?;
        let taken = stream.next_within(LAB_SILENCE_MAX, |response| match response {
            Response::Login(pdu) => Ok((pdu.status, pdu.sn, login.take(&pdu))),
            other => Err(ClientError::Protocol(format!("no login response: {other:?}"))),
        })?;
        let (status, target, next) = taken?;
        sn.exp_stat_sn = target.stat_sn.next();
        if status != LoginStatus::SUCCESS {
            let what = format!("sign in to {}", at.target);
            if status == LoginStatus::AUTHENTICATION_FAILURE && at.user.is_none() {
                let needs = "CHAP; name the initiator in the target: iscsi://USER%SECRET@HOST/…";
                return Err(ClientError::Required { what, needs });
            }
            return Err(ClientError::Refused { what, status: format!("{status:?}") });
        }
        match next.map_err(|error| ClientError::Protocol(error.to_string()))? {
            Next::Send(then, more) => (stages, text) = (then, more),
            Next::Done => return Ok((sn, target.max_cmd_sn, login.parameters())),
        }
    }
}

/// What both sides know, with CHAP.
fn proof(at: &IscsiAt) -> Result<Option<Proof>, ClientError> {
    let Some(user) = &at.user else { return Ok(None) };
    let credentials = |name: &str, secret: String| Credentials {
        name: name.to_owned(),
        secret: secret.into_bytes(),
    };
    let initiator = credentials(user, at.secret.read()?);
    let target = match &at.own {
        Some((name, file)) => Some(credentials(name, secret_in(file)?)),
        None => None,
    };
    let mut random = [0; 1 + CHALLENGE];
    SystemRandom.fill(&mut random);
    Ok(Some(Proof { initiator, target, random }))
}

fn secret_in(file: &Path) -> Result<String, ClientError> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(ClientError::io(format!("read the secret file {}", file.display())))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

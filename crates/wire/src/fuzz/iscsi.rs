//! Targets of iSCSI: PDUs, and the login of both sides.

use crate::iscsi::chap::CHALLENGE;
use crate::iscsi::frame::Pdu;
use crate::iscsi::login_initiator::{InitiatorLogin, Next, Proof};
use crate::iscsi::login_phase::{Access, Authentication, Credentials, Identity, Step, TargetLogin};
use crate::iscsi::negotiate::Parameters;
use crate::iscsi::{Digests, Framed, Framer, Request, Response, pairs};

/// Most bytes of a data segment here.
const DATA_MAX: usize = 8192;

/// A stream of PDUs of either side; the first byte selects the digests. A PDU that is accepted is
/// the same after it is encoded and decoded again.
pub fn iscsi_pdu(data: &[u8]) -> bool {
    let Some((which, mut rest)) = data.split_first() else { return false };
    let digests = Digests { header: which & 1 != 0, data: which & 2 != 0 };
    let framer = Framer::new(digests, DATA_MAX);
    let mut count = 0;
    loop {
        match framer.next(rest) {
            Ok(Framed::Complete(pdu)) => {
                let less = framer.next(rest.get(..pdu.consumed - 1).unwrap_or_default());
                assert!(matches!(less, Ok(Framed::Need(n)) if n <= pdu.consumed));
                if !one(&pdu, framer, digests) {
                    return false;
                }
                rest = rest.get(pdu.consumed..).unwrap_or_default();
                count += 1;
            }
            Ok(Framed::Need(n)) => {
                assert!(n > rest.len() && n <= framer.input_max());
                return count > 0 && rest.is_empty();
            }
            Err(_) => return false,
        }
    }
}

fn one(pdu: &Pdu<'_>, framer: Framer, digests: Digests) -> bool {
    let Ok(data) = pdu.data else { return false };
    let mut again = Vec::new();
    if let Ok(request) = Request::decode(&pdu.head, data) {
        request.put(&mut again, digests);
        let Ok(Framed::Complete(same)) = framer.next(&again) else { panic!("{request:?}") };
        let data = same.data.expect("the digest fits");
        assert_eq!(Request::decode(&same.head, data), Ok(request));
        return true;
    }
    if let Ok(response) = Response::decode(&pdu.head, data) {
        response.put(&mut again, digests);
        let Ok(Framed::Complete(same)) = framer.next(&again) else { panic!("{response:?}") };
        let data = same.data.expect("the digest fits");
        assert_eq!(Response::decode(&same.head, data), Ok(response));
        return true;
    }
    false
}

fn credentials(name: &str, secret: &str) -> Credentials {
    Credentials { name: name.to_owned(), secret: secret.as_bytes().to_vec() }
}

/// Both sides as seeds have them: a `which` of 0 and 1 has no CHAP, 2 and 3 have it one way, 4 and
/// 5 both ways; odd ones are for discovery.
fn sides(which: u8) -> (TargetLogin, Access, InitiatorLogin) {
    let initiator = credentials("someone", "a secret of some length");
    let target = (which & 6 == 4).then(|| credentials("target", "another secret, as long"));
    let authentication = match which & 6 {
        0 => Authentication::None,
        _ => Authentication::Chap {
            initiator: initiator.clone(),
            target: target.clone(),
            random: [7; 1 + CHALLENGE],
        },
    };
    let is_discovery = which & 1 != 0;
    let identity = Identity {
        initiator: "iqn.2026-11.test:initiator".to_owned(),
        target: (!is_discovery).then(|| "iqn.2026-11.test:target".to_owned()),
        is_discovery,
    };
    let proof = (which & 6 != 0).then_some(Proof { initiator, target, random: [9; 1 + CHALLENGE] });
    (
        TargetLogin::new(Parameters::of_target()),
        Access { authentication, portal_group: 1 },
        InitiatorLogin::new(identity, proof, Parameters::of_target()),
    )
}

/// A stream of Login Requests to a target, or of Login Responses to an initiator if the first byte
/// is 80h or more; the rest of that byte selects how they sign in. What is answered is text.
pub fn iscsi_login(data: &[u8]) -> bool {
    let Some((which, mut rest)) = data.split_first() else { return false };
    let (mut target, access, mut initiator) = sides(*which);
    let framer = Framer::new(Digests::default(), DATA_MAX);
    let mut count = 0;
    while let Ok(Framed::Complete(pdu)) = framer.next(rest) {
        rest = rest.get(pdu.consumed..).unwrap_or_default();
        let Ok(data) = pdu.data else { return false };
        let text = if *which & 0x80 == 0 {
            let Ok(Request::Login(request)) = Request::decode(&pdu.head, data) else {
                return false;
            };
            match target.take(&request) {
                Ok(Step::Reply(reply)) => reply.text,
                Ok(Step::Identify(_)) => match target.admit(access.clone()) {
                    Ok(reply) => reply.text,
                    Err(_) => return false,
                },
                Err(_) => return false,
            }
        } else {
            let Ok(Response::Login(response)) = Response::decode(&pdu.head, data) else {
                return false;
            };
            match initiator.take(&response) {
                Ok(Next::Send(_, text)) => text,
                Ok(Next::Done) => return rest.is_empty(),
                Err(_) => return false,
            }
        };
        assert!(pairs::parse(&text).is_ok(), "{:?}", String::from_utf8_lossy(&text));
        count += 1;
    }
    count > 0 && rest.is_empty()
}

/// All requests and all responses of a login that succeeds.
#[cfg(test)]
pub(super) fn whole_login(which: u8) -> (Vec<u8>, Vec<u8>) {
    use crate::iscsi::login::{Isid, LoginRequest, LoginResponse, LoginStatus};
    use crate::iscsi::{InitiatorSn, TargetSn};
    let (mut target, access, mut initiator) = sides(which);
    let (mut requests, mut responses) = (Vec::new(), Vec::new());
    let (mut stages, mut text) = initiator.begin();
    loop {
        let request = LoginRequest {
            stages,
            version_max: 0,
            version_min: 0,
            isid: Isid([0x40, 0, 0, 0, 0, 1]),
            tsih: 0,
            itt: 1,
            cid: 0,
            sn: InitiatorSn::default(),
            data: &text,
        };
        Request::Login(request).put(&mut requests, Digests::default());
        let reply = match target.take(&request).expect("a step") {
            Step::Reply(reply) => reply,
            Step::Identify(_) => target.admit(access.clone()).expect("a reply"),
        };
        let response = LoginResponse {
            stages: reply.stages,
            version_max: 0,
            version_active: 0,
            isid: request.isid,
            tsih: 0,
            itt: 1,
            sn: TargetSn::default(),
            status: LoginStatus::SUCCESS,
            data: &reply.text,
        };
        Response::Login(response).put(&mut responses, Digests::default());
        match initiator.take(&response).expect("the next request") {
            Next::Send(next, more) => (stages, text) = (next, more),
            Next::Done => return (requests, responses),
        }
    }
}

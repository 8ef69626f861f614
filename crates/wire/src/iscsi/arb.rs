//! Arbitrary PDUs for tests.

use super::async_message::{AsyncEvent, AsyncMessage};
use super::bhs::{InitiatorSn, TargetSn};
use super::command::{
    CdbParts, Residual, ScsiCommand, ScsiResponse, ServiceResponse, TaskAttribute,
};
use super::data::{DataIn, DataOut, DataStatus, R2t};
use super::login::{Isid, LoginRequest, LoginResponse, LoginStatus, Stage, Stages};
use super::logout::{LogoutOutcome, LogoutReason, LogoutRequest, LogoutResponse};
use super::nop::{NopIn, NopOut};
use super::reject::{Reject, RejectReason};
use super::snack::{Snack, SnackType};
use super::text::{TextRequest, TextResponse};
use super::tmf::{Function, TmfOutcome, TmfRequest, TmfResponse};
use super::{Request, Response, Serial};
use crate::arb::{Arb, Gen};

impl Arb<'_> for Serial {
    fn arb(g: &mut Gen<'_>) -> Self {
        Self(g.arb())
    }
}

impl Arb<'_> for InitiatorSn {
    fn arb(g: &mut Gen<'_>) -> Self {
        Self { cmd_sn: g.arb(), exp_stat_sn: g.arb() }
    }
}

impl Arb<'_> for TargetSn {
    fn arb(g: &mut Gen<'_>) -> Self {
        Self { stat_sn: g.arb(), exp_cmd_sn: g.arb(), max_cmd_sn: g.arb() }
    }
}

impl Arb<'_> for Residual {
    fn arb(g: &mut Gen<'_>) -> Self {
        match g.byte() % 3 {
            0 => Self::None,
            1 => Self::Underflow(g.arb()),
            _ => Self::Overflow(g.arb()),
        }
    }
}

impl Arb<'_> for Stages {
    fn arb(g: &mut Gen<'_>) -> Self {
        use Stage::{FullFeaturePhase, LoginOperationalNegotiation, SecurityNegotiation};
        let (current, transit) = match g.byte() % 5 {
            0 => (SecurityNegotiation, None),
            1 => (LoginOperationalNegotiation, None),
            2 => (SecurityNegotiation, Some(LoginOperationalNegotiation)),
            3 => (SecurityNegotiation, Some(FullFeaturePhase)),
            _ => (LoginOperationalNegotiation, Some(FullFeaturePhase)),
        };
        Self { current, transit, to_be_continued: transit.is_none() && g.arb() }
    }
}

fn u16_of(g: &mut Gen<'_>) -> u16 {
    g.arb::<u32>() as u16
}

fn command<'a>(g: &mut Gen<'a>) -> ScsiCommand<'a> {
    let write: bool = g.arb();
    ScsiCommand {
        immediate: g.arb(),
        is_final: !write || g.arb(),
        read: g.arb(),
        write,
        attribute: TaskAttribute(g.byte() % 5),
        lun: g.arb(),
        itt: g.arb(),
        expected_length: g.arb(),
        read_length: g.arb(),
        sn: g.arb(),
        cdb: CdbParts { first: g.arb(), rest: g.bytes(244) },
        data: if write { g.bytes(64) } else { &[] },
    }
}

impl<'a> Arb<'a> for Request<'a> {
    fn arb(g: &mut Gen<'a>) -> Self {
        match g.byte() % 8 {
            0 => Self::NopOut(NopOut {
                immediate: true,
                lun: g.arb(),
                itt: g.arb(),
                ttt: g.arb(),
                sn: g.arb(),
                data: g.bytes(64),
            }),
            1 => Self::ScsiCommand(command(g)),
            2 => Self::Tmf(TmfRequest {
                immediate: g.arb(),
                function: Function(g.byte() & 0x7f),
                lun: g.arb(),
                itt: g.arb(),
                referenced_tag: g.arb(),
                sn: g.arb(),
                ref_cmd_sn: g.arb(),
                exp_data_sn: g.arb(),
            }),
            3 => Self::Login(LoginRequest {
                stages: g.arb(),
                version_max: g.byte(),
                version_min: g.byte(),
                isid: Isid(g.arb()),
                tsih: u16_of(g),
                itt: g.arb(),
                cid: u16_of(g),
                sn: g.arb(),
                data: g.bytes(64),
            }),
            4 => Self::Text(text_request(g)),
            5 => Self::DataOut(DataOut {
                is_final: g.arb(),
                lun: g.arb(),
                itt: g.arb(),
                ttt: g.arb(),
                exp_stat_sn: g.arb(),
                data_sn: g.arb(),
                offset: g.arb(),
                data: g.bytes(64),
            }),
            6 => {
                use LogoutReason::{CloseConnection, CloseSession, RemoveForRecovery};
                let reasons = [CloseSession, CloseConnection, RemoveForRecovery];
                Self::Logout(LogoutRequest {
                    immediate: g.arb(),
                    reason: reasons[usize::from(g.byte() % 3)],
                    itt: g.arb(),
                    cid: u16_of(g),
                    sn: g.arb(),
                })
            }
            _ => Self::Snack(snack(g)),
        }
    }
}

fn text_request<'a>(g: &mut Gen<'a>) -> TextRequest<'a> {
    let is_final: bool = g.arb();
    TextRequest {
        immediate: g.arb(),
        is_final,
        to_be_continued: !is_final && g.arb(),
        lun: g.arb(),
        itt: g.arb(),
        ttt: g.arb(),
        sn: g.arb(),
        data: g.bytes(64),
    }
}

fn snack(g: &mut Gen<'_>) -> Snack {
    use SnackType::{DataAck, DataOrR2t, RData, Status};
    Snack {
        kind: [DataOrR2t, Status, DataAck, RData][usize::from(g.byte() % 4)],
        lun: g.arb(),
        itt: g.arb(),
        tag: g.arb(),
        exp_stat_sn: g.arb(),
        beg_run: g.arb(),
        run_length: g.arb(),
    }
}

fn data_in<'a>(g: &mut Gen<'a>) -> DataIn<'a> {
    let is_final: bool = g.arb();
    let status = (is_final && g.arb()).then(|| DataStatus { status: g.byte(), residual: g.arb() });
    DataIn {
        is_final,
        acknowledge: g.arb(),
        status,
        lun: g.arb(),
        itt: g.arb(),
        ttt: g.arb(),
        sn: g.arb(),
        data_sn: g.arb(),
        offset: g.arb(),
        data: g.bytes(64),
    }
}

impl<'a> Arb<'a> for Response<'a> {
    fn arb(g: &mut Gen<'a>) -> Self {
        match g.byte() % 10 {
            0 => Self::NopIn(NopIn {
                lun: g.arb(),
                itt: g.arb(),
                ttt: g.arb(),
                sn: g.arb(),
                data: g.bytes(64),
            }),
            1 => Self::ScsiResponse(ScsiResponse {
                response: ServiceResponse(g.byte()),
                status: g.byte(),
                itt: g.arb(),
                snack_tag: g.arb(),
                sn: g.arb(),
                exp_data_sn: g.arb(),
                residual: g.arb(),
                read_residual: g.arb(),
                sense: g.bytes(96),
                response_data: g.bytes(16),
            }),
            2 => {
                Self::Tmf(TmfResponse { outcome: TmfOutcome(g.byte()), itt: g.arb(), sn: g.arb() })
            }
            3 => Self::Login(LoginResponse {
                stages: g.arb(),
                version_max: g.byte(),
                version_active: g.byte(),
                isid: Isid(g.arb()),
                tsih: u16_of(g),
                itt: g.arb(),
                sn: g.arb(),
                status: LoginStatus { class: g.byte() % 4, detail: g.byte() },
                data: g.bytes(64),
            }),
            4 => Self::Text(text_response(g)),
            5 => Self::DataIn(data_in(g)),
            6 => Self::Logout(LogoutResponse {
                outcome: LogoutOutcome(g.byte()),
                itt: g.arb(),
                sn: g.arb(),
                time2wait: u16_of(g),
                time2retain: u16_of(g),
            }),
            7 => Self::R2t(R2t {
                lun: g.arb(),
                itt: g.arb(),
                ttt: g.arb(),
                sn: g.arb(),
                r2t_sn: g.arb(),
                offset: g.arb(),
                length: g.arb::<u32>() | 1,
            }),
            8 => Self::Async(async_message(g)),
            _ => Self::Reject(Reject {
                reason: RejectReason(g.byte()),
                sn: g.arb(),
                data_sn: g.arb(),
                header: g.bytes(48),
            }),
        }
    }
}

fn text_response<'a>(g: &mut Gen<'a>) -> TextResponse<'a> {
    let is_final: bool = g.arb();
    TextResponse {
        is_final,
        to_be_continued: !is_final && g.arb(),
        lun: g.arb(),
        itt: g.arb(),
        ttt: g.arb(),
        sn: g.arb(),
        data: g.bytes(64),
    }
}

fn async_message<'a>(g: &mut Gen<'a>) -> AsyncMessage<'a> {
    AsyncMessage {
        lun: g.arb(),
        sn: g.arb(),
        event: AsyncEvent(g.byte()),
        vendor_code: g.byte(),
        parameters: [u16_of(g), u16_of(g), u16_of(g)],
        sense: g.bytes(64),
        event_data: g.bytes(16),
    }
}

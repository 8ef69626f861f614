//! Login Request and Login Response (RFC 7143 §11.12, §11.13).

use super::bhs::{Bhs, InitiatorSn, Opcode, PduError, TargetSn};
use super::frame::{Head, PutPdu};

/// Name of the PDU in errors.
const REQUEST: &str = "Login Request";
/// Name of the PDU in errors.
const RESPONSE: &str = "Login Response";
/// The only version of the protocol there is (§11.12.4).
pub const VERSION: u8 = 0;

/// A stage of a connection (§11.12.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Stage {
    /// Authentication of the sides.
    #[default]
    SecurityNegotiation = 0,
    /// Operational parameters.
    LoginOperationalNegotiation = 1,
    /// SCSI commands.
    FullFeaturePhase = 3,
}

impl Stage {
    fn decode(pdu: &'static str, field: &'static str, got: u8) -> Result<Self, PduError> {
        match got {
            0 => Ok(Self::SecurityNegotiation),
            1 => Ok(Self::LoginOperationalNegotiation),
            3 => Ok(Self::FullFeaturePhase),
            _ => Err(PduError::BadField { pdu, field, got: u32::from(got) }),
        }
    }
}

/// The flags of a login PDU (§11.12.1 to §11.12.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stages {
    /// Where the sender is.
    pub current: Stage,
    /// The next stage, requested or granted (the T bit).
    pub transit: Option<Stage>,
    /// The text continues in the next PDU (the C bit); excludes `transit`.
    pub to_be_continued: bool,
}

impl Stages {
    fn decode(pdu: &'static str, b: &Bhs) -> Result<Self, PduError> {
        let flags = b.u8(1);
        let current = Stage::decode(pdu, "CSG", flags >> 2 & 3)?;
        if current == Stage::FullFeaturePhase {
            return Err(PduError::BadField { pdu, field: "CSG", got: current as u32 });
        }
        let transit = match flags & 0x80 {
            0 => None,
            _ => Some(Stage::decode(pdu, "NSG", flags & 3)?),
        };
        let to_be_continued = flags & 0x40 != 0;
        if transit.is_some_and(|next| next <= current) {
            return Err(PduError::Rule { pdu, rule: "NSG is beyond CSG" });
        }
        if to_be_continued && transit.is_some() {
            return Err(PduError::Rule { pdu, rule: "C and T exclude each other" });
        }
        Ok(Self { current, transit, to_be_continued })
    }

    fn byte(self) -> u8 {
        let transit = self.transit.map_or(0, |next| 0x80 | next as u8);
        transit | if self.to_be_continued { 0x40 } else { 0 } | (self.current as u8) << 2
    }
}

/// The initiator's part of a session's identity (§11.12.5): unique within its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Isid(pub [u8; 6]);

/// Login Request. It is always immediate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginRequest<'a> {
    /// Stages.
    pub stages: Stages,
    /// Highest version of the initiator.
    pub version_max: u8,
    /// Lowest version of the initiator.
    pub version_min: u8,
    /// The initiator's part of the session's identity.
    pub isid: Isid,
    /// The target's part: 0 for a new session.
    pub tsih: u16,
    /// Initiator task tag: the same for the whole login.
    pub itt: u32,
    /// Connection within the session.
    pub cid: u16,
    /// Sequence numbers.
    pub sn: InitiatorSn,
    /// Keys and values ([`super::text`]).
    pub data: &'a [u8],
}

impl<'a> LoginRequest<'a> {
    pub(super) fn decode(head: &Head<'a>, data: &'a [u8]) -> Result<Self, PduError> {
        let b = &head.bhs;
        Ok(Self {
            stages: Stages::decode(REQUEST, b)?,
            version_max: b.u8(2),
            version_min: b.u8(3),
            isid: Isid(b.bytes(8)),
            tsih: b.u16(14),
            itt: b.itt(),
            cid: b.u16(20),
            sn: b.initiator_sn(),
            data,
        })
    }
}

impl PutPdu for LoginRequest<'_> {
    fn opcode(&self) -> Opcode {
        Opcode::LOGIN_REQUEST
    }

    fn fields(&self, b: &mut Bhs) {
        b.set_immediate(true);
        b.set_u8(1, self.stages.byte());
        b.set_u8(2, self.version_max);
        b.set_u8(3, self.version_min);
        b.set_bytes(8, self.isid.0);
        b.set_u16(14, self.tsih);
        b.set_itt(self.itt);
        b.set_u16(20, self.cid);
        b.set_initiator_sn(self.sn);
    }

    fn data_len(&self) -> usize {
        self.data.len()
    }

    fn put_data(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.data);
    }
}

/// How a login went: class and detail (§11.13.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LoginStatus {
    /// 0: success, 1: redirection, 2: the initiator is at fault, 3: the target is.
    pub class: u8,
    /// More, by class.
    pub detail: u8,
}

macro_rules! login_statuses {
    ($($(#[$meta:meta])* $name:ident = $class:literal, $detail:literal;)*) => {
        impl LoginStatus {
            $($(#[$meta])* pub const $name: Self = Self { class: $class, detail: $detail };)*

            /// All that have a name.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

login_statuses! {
    /// Success.
    SUCCESS = 0, 0;
    /// Target moved temporarily; TargetAddress has the new address.
    MOVED_TEMPORARILY = 1, 1;
    /// Target moved permanently; TargetAddress has the new address.
    MOVED_PERMANENTLY = 1, 2;
    /// Initiator error, of no other kind.
    INITIATOR_ERROR = 2, 0;
    /// Authentication failure.
    AUTHENTICATION_FAILURE = 2, 1;
    /// The initiator may not use this target.
    AUTHORIZATION_FAILURE = 2, 2;
    /// There is no such target.
    NOT_FOUND = 2, 3;
    /// The target was removed.
    TARGET_REMOVED = 2, 4;
    /// No common version.
    UNSUPPORTED_VERSION = 2, 5;
    /// Too many connections in the session.
    TOO_MANY_CONNECTIONS = 2, 6;
    /// A parameter, such as InitiatorName, is missing.
    MISSING_PARAMETER = 2, 7;
    /// The connection cannot be a part of this session.
    CANNOT_INCLUDE_IN_SESSION = 2, 8;
    /// Session type not supported.
    SESSION_TYPE_NOT_SUPPORTED = 2, 9;
    /// The session does not exist.
    SESSION_DOES_NOT_EXIST = 2, 10;
    /// Invalid request during login.
    INVALID_DURING_LOGIN = 2, 11;
    /// Target error.
    TARGET_ERROR = 3, 0;
    /// Service unavailable.
    SERVICE_UNAVAILABLE = 3, 1;
    /// Out of resources.
    OUT_OF_RESOURCES = 3, 2;
}

/// Login Response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginResponse<'a> {
    /// Stages. They are undefined in a response with another status than success.
    pub stages: Stages,
    /// Highest version of the target.
    pub version_max: u8,
    /// The version that is used.
    pub version_active: u8,
    /// As in the request.
    pub isid: Isid,
    /// The target's part of the session's identity, in the last response.
    pub tsih: u16,
    /// Initiator task tag.
    pub itt: u32,
    /// Sequence numbers.
    pub sn: TargetSn,
    /// The status.
    pub status: LoginStatus,
    /// Keys and values ([`super::text`]).
    pub data: &'a [u8],
}

impl<'a> LoginResponse<'a> {
    pub(super) fn decode(head: &Head<'a>, data: &'a [u8]) -> Result<Self, PduError> {
        let b = &head.bhs;
        let status = LoginStatus { class: b.u8(36), detail: b.u8(37) };
        let nothing = Stages { current: Stage::default(), transit: None, to_be_continued: false };
        Ok(Self {
            stages: match status.class {
                0 => Stages::decode(RESPONSE, b)?,
                _ => Stages::decode(RESPONSE, b).unwrap_or(nothing),
            },
            version_max: b.u8(2),
            version_active: b.u8(3),
            isid: Isid(b.bytes(8)),
            tsih: b.u16(14),
            itt: b.itt(),
            sn: b.target_sn(),
            status,
            data,
        })
    }
}

impl PutPdu for LoginResponse<'_> {
    fn opcode(&self) -> Opcode {
        Opcode::LOGIN_RESPONSE
    }

    fn fields(&self, b: &mut Bhs) {
        b.set_u8(1, self.stages.byte());
        b.set_u8(2, self.version_max);
        b.set_u8(3, self.version_active);
        b.set_bytes(8, self.isid.0);
        b.set_u16(14, self.tsih);
        b.set_itt(self.itt);
        b.set_target_sn(self.sn);
        b.set_u8(36, self.status.class);
        b.set_u8(37, self.status.detail);
    }

    fn data_len(&self) -> usize {
        self.data.len()
    }

    fn put_data(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.data);
    }
}

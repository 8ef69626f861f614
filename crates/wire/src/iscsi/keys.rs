//! The keys of RFC 7143 §13 and §12: how each is negotiated, which side may send it and when, and
//! its default.

/// How the value of a key comes about (§6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The first of the list that the other side has.
    List,
    /// Yes only if both sides send Yes.
    And,
    /// Yes if one side sends Yes.
    Or,
    /// The lower of two numbers.
    Minimum(Range),
    /// The higher of two numbers.
    Maximum(Range),
    /// A number that one side declares; it is not answered.
    DeclaredNumber(Range),
    /// Text that one side declares; it is not answered.
    Declared,
    /// A question of the initiator (SendTargets).
    Question,
    /// A step of CHAP ([`super::chap`]).
    Chap,
    /// Obsolete (§13.25): answered with Reject.
    Obsolete,
}

/// Numbers that a key may have, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Lowest.
    pub min: u32,
    /// Highest.
    pub max: u32,
}

const fn range(min: u32, max: u32) -> Range {
    Range { min, max }
}

/// Most bytes of a length: 24 bits.
pub(super) const LENGTH: Range = range(512, (1 << 24) - 1);
/// Counts.
const COUNT: Range = range(1, 65_535);
/// Seconds.
const SECONDS: Range = range(0, 3_600);

/// When a key may be sent (§13: "Use").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// In the first request of a login (IO).
    Initial,
    /// During the login of the first connection of a session (LO).
    Leading,
    /// During any login (IO or LO).
    Login,
    /// In the full feature phase only (FFPO).
    FullFeature,
    /// Always (ALL).
    All,
}

/// The side that may send a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// Only the initiator.
    Initiator,
    /// Only the target.
    Target,
    /// Both.
    Both,
}

macro_rules! keys {
    ($($(#[$meta:meta])* $name:ident = $text:literal, $rule:expr, $use:ident, $sender:ident;)*) => {
        /// A key that the RFC has.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Key {
            $($(#[$meta])* $name,)*
        }

        impl Key {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The key of this name; names are compared as they are (§6.1).
            pub fn of(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$name),)* _ => None }
            }

            /// How its value comes about.
            pub const fn rule(self) -> Rule {
                match self { $(Self::$name => $rule,)* }
            }

            /// When it may be sent.
            pub const fn usage(self) -> Use {
                match self { $(Self::$name => Use::$use,)* }
            }

            /// The side that may send it.
            pub const fn sender(self) -> Sender {
                match self { $(Self::$name => Sender::$sender,)* }
            }
        }
    };
}

keys! {
    /// §13.1: CRC32C, None.
    HeaderDigest = "HeaderDigest", Rule::List, Login, Both;
    /// §13.1: CRC32C, None.
    DataDigest = "DataDigest", Rule::List, Login, Both;
    /// §13.2.
    MaxConnections = "MaxConnections", Rule::Minimum(COUNT), Leading, Both;
    /// §13.3: All, a name, or nothing for the target of the session.
    SendTargets = "SendTargets", Rule::Question, FullFeature, Initiator;
    /// §13.4.
    TargetName = "TargetName", Rule::Declared, Initial, Both;
    /// §13.5.
    InitiatorName = "InitiatorName", Rule::Declared, Initial, Initiator;
    /// §13.6.
    TargetAlias = "TargetAlias", Rule::Declared, All, Target;
    /// §13.7.
    InitiatorAlias = "InitiatorAlias", Rule::Declared, All, Initiator;
    /// §13.8: `host[:port][,tag]`.
    TargetAddress = "TargetAddress", Rule::Declared, All, Target;
    /// §13.9.
    TargetPortalGroupTag = "TargetPortalGroupTag",
        Rule::DeclaredNumber(range(0, 65_535)), Login, Target;
    /// §13.10.
    InitialR2T = "InitialR2T", Rule::Or, Leading, Both;
    /// §13.11.
    ImmediateData = "ImmediateData", Rule::And, Leading, Both;
    /// §13.12: bytes that the sender of the key takes.
    MaxRecvDataSegmentLength = "MaxRecvDataSegmentLength",
        Rule::DeclaredNumber(LENGTH), All, Both;
    /// §13.13: bytes of one sequence of Data-Ins or Data-Outs.
    MaxBurstLength = "MaxBurstLength", Rule::Minimum(LENGTH), Leading, Both;
    /// §13.14: bytes of unsolicited data.
    FirstBurstLength = "FirstBurstLength", Rule::Minimum(LENGTH), Leading, Both;
    /// §13.15: seconds.
    DefaultTime2Wait = "DefaultTime2Wait", Rule::Maximum(SECONDS), Leading, Both;
    /// §13.16: seconds.
    DefaultTime2Retain = "DefaultTime2Retain", Rule::Minimum(SECONDS), Leading, Both;
    /// §13.17.
    MaxOutstandingR2T = "MaxOutstandingR2T", Rule::Minimum(COUNT), Leading, Both;
    /// §13.18.
    DataPduInOrder = "DataPDUInOrder", Rule::Or, Leading, Both;
    /// §13.19.
    DataSequenceInOrder = "DataSequenceInOrder", Rule::Or, Leading, Both;
    /// §13.20.
    ErrorRecoveryLevel = "ErrorRecoveryLevel", Rule::Minimum(range(0, 2)), Leading, Both;
    /// §13.21: Discovery or Normal.
    SessionType = "SessionType", Rule::Declared, Initial, Initiator;
    /// §13.23 (RFC 7144): RFC3720, ResponseFence, FastAbort.
    TaskReporting = "TaskReporting", Rule::List, Leading, Both;
    /// §13.24 (RFC 7144): 1 for RFC 7143.
    ProtocolLevel = "iSCSIProtocolLevel", Rule::Minimum(range(0, 31)), Leading, Both;
    /// §12.1: CHAP, None and others.
    AuthMethod = "AuthMethod", Rule::List, Login, Both;
    /// §12.1.3: algorithm.
    ChapA = "CHAP_A", Rule::Chap, Login, Both;
    /// §12.1.3: identifier.
    ChapI = "CHAP_I", Rule::Chap, Login, Both;
    /// §12.1.3: challenge.
    ChapC = "CHAP_C", Rule::Chap, Login, Both;
    /// §12.1.3: name.
    ChapN = "CHAP_N", Rule::Chap, Login, Both;
    /// §12.1.3: response.
    ChapR = "CHAP_R", Rule::Chap, Login, Both;
    /// §13.25.
    IfMarker = "IFMarker", Rule::Obsolete, Login, Both;
    /// §13.25.
    OfMarker = "OFMarker", Rule::Obsolete, Login, Both;
    /// §13.25.
    IfMarkInt = "IFMarkInt", Rule::Obsolete, Login, Both;
    /// §13.25.
    OfMarkInt = "OFMarkInt", Rule::Obsolete, Login, Both;
}

impl Key {
    /// Whether its value may be a large binary (§6.1).
    pub const fn is_large_binary(self) -> bool {
        matches!(self, Self::ChapC | Self::ChapR)
    }

    /// Whether it is irrelevant in a discovery session ("Irrelevant when: SessionType=Discovery").
    pub const fn is_irrelevant_in_discovery(self) -> bool {
        matches!(
            self,
            Self::MaxConnections
                | Self::InitialR2T
                | Self::ImmediateData
                | Self::MaxBurstLength
                | Self::FirstBurstLength
                | Self::MaxOutstandingR2T
                | Self::DataPduInOrder
                | Self::DataSequenceInOrder
                | Self::TaskReporting
        )
    }
}

/// Answer: the key is not known (§6.2).
pub const NOT_UNDERSTOOD: &str = "NotUnderstood";
/// Answer: the key is irrelevant with others that were negotiated (§6.2).
pub const IRRELEVANT: &str = "Irrelevant";
/// Answer: none of the offered values is acceptable (§6.2).
pub const REJECT: &str = "Reject";
/// The value of a list that stands for "nothing of this kind" (§6.2).
pub const NONE: &str = "None";
/// The digest (§13.1).
pub const CRC32C: &str = "CRC32C";
/// The authentication method (§12.1).
pub const CHAP: &str = "CHAP";

/// A number (§6.1, numerical-value): decimal, or hexadecimal after `0x`.
pub fn number(text: &str) -> Option<u32> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = hex.map_or((text, 10), |digits| (digits, 16));
    // `from_str_radix` would take a sign.
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, radix).ok()
}

/// A boolean (§6.1).
pub fn boolean(text: &str) -> Option<bool> {
    match text {
        "Yes" => Some(true),
        "No" => Some(false),
        _ => None,
    }
}

/// A boolean as it is sent.
pub const fn yes_no(value: bool) -> &'static str {
    if value { "Yes" } else { "No" }
}

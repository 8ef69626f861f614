//! NTSTATUS (MS-ERREF §2.3.1), those that occur here.

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NtStatus(pub u32);

macro_rules! statuses {
    ($($name:ident = $number:literal;)*) => {
        impl NtStatus {
            $(#[doc = concat!("STATUS_", stringify!($name), ".")]
            pub const $name: Self = Self($number);)*
            /// Numbers and names of all.
            pub const ALL: &[(u32, &str)] =
                &[$(($number, concat!("STATUS_", stringify!($name)))),*];
        }
    };
}

statuses! {
    SUCCESS = 0;
    PENDING = 0x103;
    NOTIFY_CLEANUP = 0x10b;
    NOTIFY_ENUM_DIR = 0x10c;
    BUFFER_OVERFLOW = 0x8000_0005;
    NO_MORE_FILES = 0x8000_0006;
    STOPPED_ON_SYMLINK = 0x8000_002d;
    UNSUCCESSFUL = 0xc000_0001;
    NOT_IMPLEMENTED = 0xc000_0002;
    INVALID_INFO_CLASS = 0xc000_0003;
    INFO_LENGTH_MISMATCH = 0xc000_0004;
    INVALID_HANDLE = 0xc000_0008;
    INVALID_PARAMETER = 0xc000_000d;
    NO_SUCH_FILE = 0xc000_000f;
    INVALID_DEVICE_REQUEST = 0xc000_0010;
    INVALID_VIEW_SIZE = 0xc000_001f;
    END_OF_FILE = 0xc000_0011;
    MORE_PROCESSING_REQUIRED = 0xc000_0016;
    ACCESS_DENIED = 0xc000_0022;
    BUFFER_TOO_SMALL = 0xc000_0023;
    OBJECT_NAME_INVALID = 0xc000_0033;
    OBJECT_NAME_NOT_FOUND = 0xc000_0034;
    OBJECT_NAME_COLLISION = 0xc000_0035;
    OBJECT_PATH_INVALID = 0xc000_0039;
    OBJECT_PATH_NOT_FOUND = 0xc000_003a;
    OBJECT_PATH_SYNTAX_BAD = 0xc000_003b;
    SHARING_VIOLATION = 0xc000_0043;
    QUOTA_EXCEEDED = 0xc000_0044;
    EAS_NOT_SUPPORTED = 0xc000_004f;
    EA_TOO_LARGE = 0xc000_0050;
    FILE_LOCK_CONFLICT = 0xc000_0054;
    LOCK_NOT_GRANTED = 0xc000_0055;
    DELETE_PENDING = 0xc000_0056;
    LOGON_FAILURE = 0xc000_006d;
    RANGE_NOT_LOCKED = 0xc000_007e;
    PRIVILEGE_NOT_HELD = 0xc000_0061;
    DISK_FULL = 0xc000_007f;
    INSUFFICIENT_RESOURCES = 0xc000_009a;
    BAD_IMPERSONATION_LEVEL = 0xc000_00a5;
    MEDIA_WRITE_PROTECTED = 0xc000_00a2;
    FILE_IS_A_DIRECTORY = 0xc000_00ba;
    FILE_FORCED_CLOSED = 0xc000_00b6;
    NOT_SUPPORTED = 0xc000_00bb;
    NETWORK_NAME_DELETED = 0xc000_00c9;
    BAD_NETWORK_NAME = 0xc000_00cc;
    REQUEST_OUT_OF_SEQUENCE = 0xc000_042a;
    REQUEST_NOT_ACCEPTED = 0xc000_00d0;
    NOT_SAME_DEVICE = 0xc000_00d4;
    INTERNAL_ERROR = 0xc000_00e5;
    INVALID_OPLOCK_PROTOCOL = 0xc000_00e3;
    ACCOUNT_LOCKED_OUT = 0xc000_0234;
    UNEXPECTED_IO_ERROR = 0xc000_00e9;
    DIRECTORY_NOT_EMPTY = 0xc000_0101;
    NOT_A_DIRECTORY = 0xc000_0103;
    NAME_TOO_LONG = 0xc000_0106;
    TOO_MANY_OPENED_FILES = 0xc000_011f;
    CANCELLED = 0xc000_0120;
    CANNOT_DELETE = 0xc000_0121;
    FILE_CLOSED = 0xc000_0128;
    INVALID_LEVEL = 0xc000_0148;
    PIPE_BROKEN = 0xc000_014b;
    FS_DRIVER_REQUIRED = 0xc000_019c;
    USER_SESSION_DELETED = 0xc000_0203;
    NOT_FOUND = 0xc000_0225;
    FILE_NOT_AVAILABLE = 0xc000_0467;
    DUPLICATE_OBJECTID = 0xc000_022a;
    TOO_MANY_LINKS = 0xc000_0265;
    REPARSE_POINT_NOT_RESOLVED = 0xc000_0280;
    NETWORK_SESSION_EXPIRED = 0xc000_035c;
    SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP = 0xc05d_0000;
    INVALID_LOCK_RANGE = 0xc000_01a1;
}

impl NtStatus {
    /// Whether it is an error, so that a response has no body of its own.
    pub const fn is_error(self) -> bool {
        self.0 >> 30 == 3
    }

    /// Its name, if it is one of these.
    pub fn name(self) -> Option<&'static str> {
        Self::ALL.iter().find(|(number, _)| *number == self.0).map(|(_, name)| *name)
    }
}

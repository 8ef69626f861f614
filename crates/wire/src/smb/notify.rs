//! CHANGE_NOTIFY (MS-SMB2 §2.2.35).

use super::create::FileId;

/// Flags of a request.
pub mod notify_flags {
    /// Also what is below the directory.
    pub const WATCH_TREE: u16 = 1;
}

/// CompletionFilter: which changes count.
pub mod filter {
    /// Names of files and directories.
    pub const NAMES: u32 = 1 | 2;
    /// Attributes, creation time, extended attributes, security descriptor, access time.
    pub const ATTRIBUTES: u32 = 4 | 0x20 | 0x40 | 0x80 | 0x100;
    /// Size and write time.
    pub const DATA: u32 = 8 | 0x10;
    /// Names, sizes and data of streams.
    pub const STREAMS: u32 = 0x200 | 0x400 | 0x800;
}

body! {
    /// CHANGE_NOTIFY of a client.
    pub struct ChangeNotify = 32 {
        /// [`notify_flags`].
        pub flags: u16,
        /// Most bytes of the answer.
        pub output_max: u32,
        /// The directory.
        pub file: FileId,
        /// [`filter`].
        pub filter: u32,
        /// Zero.
        pub reserved: u32,
    }
}

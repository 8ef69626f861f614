//! Create contexts of opens that outlive their connection (MS-SMB2 §2.2.13.2.3, §2.2.13.2.4,
//! §2.2.13.2.11, §2.2.13.2.12, §2.2.14.2.3, §2.2.14.2.12), and of those of an application that may
//! move to another client (§2.2.13.2.13, §2.2.13.2.15).

use super::codec::{Field, Reader, Result, SmbError};
use super::create::FileId;

/// CreateGuid: a number of a CREATE, chosen by the client.
pub type CreateGuid = [u8; 16];

/// The open shall survive the restart of a server (SMB2_DHANDLE_FLAG_PERSISTENT).
pub const PERSISTENT: u32 = 2;

/// Bytes of `DHnQ`, and of `DHnC`.
const V1: usize = 16;
/// Bytes of the answer to `DHnQ`.
const V1_ANSWER: usize = 8;

fixed! {
    /// `DH2Q`: requests an open that outlives its connection.
    pub struct DurableV2 {
        /// Milliseconds without a connection; 0: as the server wants.
        pub timeout_ms: u32,
        /// [`PERSISTENT`], or nothing.
        pub flags: u32,
        /// Zero.
        pub reserved: u64,
        /// The number of the request.
        pub guid: CreateGuid,
    }
}

fixed! {
    /// The answer to `DH2Q`.
    pub struct DurableV2Answer {
        /// Milliseconds without a connection.
        pub timeout_ms: u32,
        /// [`PERSISTENT`], or nothing.
        pub flags: u32,
    }
}

fixed! {
    /// `DH2C`: continues an open of a connection that was lost.
    pub struct ReconnectV2 {
        /// The open.
        pub file: FileId,
        /// CreateGuid of the request that has made it.
        pub guid: CreateGuid,
        /// [`PERSISTENT`], or nothing.
        pub flags: u32,
    }
}

fixed! {
    /// SMB2_CREATE_APP_INSTANCE_ID: the application that opens the file.
    pub struct AppInstance {
        /// Bytes of the structure, which the server need not look at.
        pub size: u16,
        /// Zero.
        pub reserved: u16,
        /// AppInstanceId.
        pub id: [u8; 16],
    }
}

fixed! {
    /// SMB2_CREATE_APP_INSTANCE_VERSION.
    pub struct AppVersion {
        /// Bytes of the structure, which the server need not look at.
        pub size: u16,
        /// Zero.
        pub reserved: u16,
        /// Zero.
        pub padding: u32,
        /// AppInstanceVersionHigh.
        pub high: u64,
        /// AppInstanceVersionLow.
        pub low: u64,
    }
}

/// Reads a context that has exactly the bytes of a structure.
///
/// # Errors
/// [`SmbError`].
fn exact<T: Field>(data: &[u8], what: &'static str) -> Result<T> {
    if data.len() == T::SIZE { Reader::new(data, what).get() } else { Err(SmbError::Value(what)) }
}

impl DurableV2 {
    /// Reads the data of the context.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(data: &[u8]) -> Result<Self> {
        exact(data, "durable handle")
    }
}

impl DurableV2Answer {
    /// Reads the data of the context.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(data: &[u8]) -> Result<Self> {
        exact(data, "durable handle response")
    }
}

impl ReconnectV2 {
    /// Reads the data of the context.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(data: &[u8]) -> Result<Self> {
        exact(data, "durable handle reconnect")
    }
}

impl AppInstance {
    /// One of this AppInstanceId.
    pub const fn new(id: [u8; 16]) -> Self {
        Self { size: Self::SIZE as u16, reserved: 0, id }
    }

    /// Reads the data of the context.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(data: &[u8]) -> Result<Self> {
        exact(data, "application instance")
    }
}

impl AppVersion {
    /// One of these numbers.
    pub const fn new(high: u64, low: u64) -> Self {
        Self { size: Self::SIZE as u16, reserved: 0, padding: 0, high, low }
    }

    /// Reads the data of the context.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(data: &[u8]) -> Result<Self> {
        exact(data, "application version")
    }
}

/// Looks at the data of `DHnQ`, which is reserved.
///
/// # Errors
/// [`SmbError`] if it is not as long as it must be.
pub fn check_v1(data: &[u8]) -> Result<()> {
    if data.len() == V1 { Ok(()) } else { Err(SmbError::Value("durable handle")) }
}

/// Appends the data of `DHnQ`.
pub fn put_v1(out: &mut Vec<u8>) {
    out.resize(out.len() + V1, 0);
}

/// Appends the data of the answer to `DHnQ`.
pub fn put_v1_answer(out: &mut Vec<u8>) {
    out.resize(out.len() + V1_ANSWER, 0);
}

/// Reads the data of `DHnC`: the open that is continued.
///
/// # Errors
/// [`SmbError`].
pub fn reconnect_v1(data: &[u8]) -> Result<FileId> {
    exact(data, "durable handle reconnect")
}

#[cfg(test)]
mod tests;

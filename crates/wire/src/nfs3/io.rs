//! READLINK, READ and WRITE (RFC 1813 §3.3.5 to §3.3.7). The data of both directions is borrowed.

use super::attr::PostOpAttr;
use super::attr::WccData;
use super::types::{Fh3, Nfspath3, Res, Writeverf3};

xdr_enum! {
    /// How far data must have got before the reply (`stable_how`).
    pub enum StableHow {
        /// In memory will do.
        UNSTABLE = 0 "UNSTABLE",
        /// The data, and what is needed to find it.
        DATA_SYNC = 1 "DATA_SYNC",
        /// Data and all attributes.
        FILE_SYNC = 2 "FILE_SYNC",
    }
}

xdr_struct! {
    /// READLINK3args.
    #[derive(Copy)]
    pub struct ReadlinkArgs<'a> {
        /// The link.
        pub symlink: Fh3<'a>,
    }
}

xdr_struct! {
    /// READLINK3resok.
    #[derive(Copy)]
    pub struct ReadlinkResOk<'a> {
        /// The link itself.
        pub symlink_attributes: PostOpAttr,
        /// Where it leads.
        pub data: Nfspath3<'a>,
    }
}

/// READLINK3res: with a failure, the link's attributes.
pub type ReadlinkRes<'a> = Res<ReadlinkResOk<'a>, PostOpAttr>;

xdr_struct! {
    /// READ3args.
    #[derive(Copy)]
    pub struct ReadArgs<'a> {
        /// The file.
        pub file: Fh3<'a>,
        /// First byte.
        pub offset: u64,
        /// Requested bytes; any number is valid.
        pub count: u32,
    }
}

xdr_struct! {
    /// READ3resok, as a client decodes it. A server writes it with [`super::ReadResOkHead`].
    #[derive(Copy)]
    pub struct ReadResOk<'a> {
        /// The file.
        pub file_attributes: PostOpAttr,
        /// Bytes read. A peer may announce more or less than it sends.
        pub count: u32,
        /// Whether the end of the file was reached.
        pub eof: bool,
        /// The bytes.
        pub data: &'a [u8],
    }
}

/// READ3res: with a failure, the file's attributes.
pub type ReadRes<'a> = Res<ReadResOk<'a>, PostOpAttr>;

xdr_struct! {
    /// WRITE3args. `count` and the length of `data` may differ; the server decides about that.
    #[derive(Copy)]
    pub struct WriteArgs<'a> {
        /// The file.
        pub file: Fh3<'a>,
        /// First byte.
        pub offset: u64,
        /// Bytes to write.
        pub count: u32,
        /// How far before the reply.
        pub stable: StableHow,
        /// The bytes.
        pub data: &'a [u8],
    }
}

xdr_struct! {
    /// WRITE3resok.
    #[derive(Copy)]
    pub struct WriteResOk {
        /// The file before and after.
        pub file_wcc: WccData,
        /// Bytes written.
        pub count: u32,
        /// How far they got.
        pub committed: StableHow,
        /// Changes when unstable data may have been lost.
        pub verf: Writeverf3,
    }
}

/// WRITE3res: with a failure, the file's `wcc_data`.
pub type WriteRes = Res<WriteResOk, WccData>;

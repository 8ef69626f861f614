//! READDIR and READDIRPLUS (RFC 1813 §3.3.16, §3.3.17): arguments, and results as a client reads
//! them. A server writes the results with the encoders of `readdir_reply`.

use std::marker::PhantomData;

use super::attr::PostOpAttr;
use super::types::{Cookieverf3, Fh3, Filename3, PostOpFh3, Res};
use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

xdr_struct! {
    /// READDIR3args.
    #[derive(Copy)]
    pub struct ReaddirArgs<'a> {
        /// The directory.
        pub dir: Fh3<'a>,
        /// Where to continue; 0 is the start.
        pub cookie: u64,
        /// From the reply that brought the cookie; zero at the start.
        pub cookieverf: Cookieverf3,
        /// Most bytes of READDIR3resok in XDR.
        pub count: u32,
    }
}

xdr_struct! {
    /// READDIRPLUS3args.
    #[derive(Copy)]
    pub struct ReaddirplusArgs<'a> {
        /// The directory.
        pub dir: Fh3<'a>,
        /// Where to continue; 0 is the start.
        pub cookie: u64,
        /// From the reply that brought the cookie; zero at the start.
        pub cookieverf: Cookieverf3,
        /// Most bytes of names, file ids and cookies, without attributes and handles.
        pub dircount: u32,
        /// Most bytes of READDIRPLUS3resok in XDR.
        pub maxcount: u32,
    }
}

xdr_struct! {
    /// One entry of READDIR (`entry3`, without the link to the next).
    #[derive(Copy)]
    pub struct Entry3<'a> {
        /// Inode number.
        pub fileid: u64,
        /// Name.
        pub name: Filename3<'a>,
        /// Where to continue after it.
        pub cookie: u64,
    }
}

xdr_struct! {
    /// One entry of READDIRPLUS (`entryplus3`, without the link to the next).
    #[derive(Copy)]
    pub struct Entryplus3<'a> {
        /// Inode number.
        pub fileid: u64,
        /// Name.
        pub name: Filename3<'a>,
        /// Where to continue after it.
        pub cookie: u64,
        /// Its attributes.
        pub name_attributes: PostOpAttr,
        /// Its handle.
        pub name_handle: PostOpFh3<'a>,
    }
}

/// The entries of a reply, checked as a whole and decoded one by one as they are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirEntries<'a, E> {
    /// Each entry after its "one more" flag; the closing flag is not part of it.
    raw: &'a [u8],
    entry: PhantomData<E>,
}

impl<E> DirEntries<'_, E> {
    /// No entries.
    pub const EMPTY: Self = Self { raw: &[], entry: PhantomData };

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }
}

impl<'a, E: Decode<'a>> DirEntries<'a, E> {
    /// The entries in their order.
    pub fn iter(&self) -> impl Iterator<Item = E> + use<'a, E> {
        let mut r = Reader::new(self.raw);
        // The whole list was decoded once before: it ends, it does not fail.
        std::iter::from_fn(move || {
            r.bool("entry follows").ok()?;
            E::decode(&mut r).ok()
        })
    }
}

impl<E> Encode for DirEntries<'_, E> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.raw(self.raw);
        w.bool(false);
    }
}

impl<'a, E: Decode<'a>> Decode<'a> for DirEntries<'a, E> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = r.rest();
        let mut length = 0;
        while r.bool("entry follows")? {
            E::decode(r)?;
            length = start.len() - r.rest().len();
        }
        Ok(Self { raw: start.get(..length).unwrap_or_default(), entry: PhantomData })
    }
}

xdr_struct! {
    /// READDIR3resok, with `dirlist3` in line.
    #[derive(Copy)]
    pub struct ReaddirResOk<'a> {
        /// The directory.
        pub dir_attributes: PostOpAttr,
        /// What the cookies belong to.
        pub cookieverf: Cookieverf3,
        /// The entries.
        pub entries: DirEntries<'a, Entry3<'a>>,
        /// Whether the last entry is among them.
        pub eof: bool,
    }
}

/// READDIR3res: with a failure, the directory's attributes.
pub type ReaddirRes<'a> = Res<ReaddirResOk<'a>, PostOpAttr>;

xdr_struct! {
    /// READDIRPLUS3resok, with `dirlistplus3` in line.
    #[derive(Copy)]
    pub struct ReaddirplusResOk<'a> {
        /// The directory.
        pub dir_attributes: PostOpAttr,
        /// What the cookies belong to.
        pub cookieverf: Cookieverf3,
        /// The entries.
        pub entries: DirEntries<'a, Entryplus3<'a>>,
        /// Whether the last entry is among them.
        pub eof: bool,
    }
}

/// READDIRPLUS3res: with a failure, the directory's attributes.
pub type ReaddirplusRes<'a> = Res<ReaddirplusResOk<'a>, PostOpAttr>;

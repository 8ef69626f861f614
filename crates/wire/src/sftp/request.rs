//! Requests of clients (draft-ietf-secsh-filexfer-02 §6), after the id of the request.

pub use super::arguments::{OfHandle, OfPath, SetByPath, TwoPaths};
use super::attrs::Attrs;
use super::data::{Data, HandleBytes, PathBytes};
use super::extended::Extended;
use super::packet::{PacketType, begin_packet, end_packet};
use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

/// `pflags` of OPEN (§6.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct OpenFlags(pub u32);

impl OpenFlags {
    /// For reading.
    pub const READ: Self = Self(0x01);
    /// For writing.
    pub const WRITE: Self = Self(0x02);
    /// Each write goes to the end.
    pub const APPEND: Self = Self(0x04);
    /// Make the file if there is none.
    pub const CREAT: Self = Self(0x08);
    /// Begin with nothing in it.
    pub const TRUNC: Self = Self(0x10);
    /// With CREAT: fail if there is one.
    pub const EXCL: Self = Self(0x20);

    /// Whether all flags of `other` are among these.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Encode for OpenFlags {
    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.0);
    }
}

impl Decode<'_> for OpenFlags {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.u32("pflags").map(Self)
    }
}

#[cfg(test)]
impl crate::arb::Arb<'_> for OpenFlags {
    fn arb(g: &mut crate::arb::Gen<'_>) -> Self {
        Self(g.arb())
    }
}

xdr_structs! {
    /// OPEN (§6.3).
    #[derive(Copy)]
    Open<'a> { filename: PathBytes<'a>, pflags: OpenFlags, attrs: Attrs }

    /// READ (§6.4).
    #[derive(Copy)]
    Read<'a> { handle: HandleBytes<'a>, offset: u64, len: u32 }

    /// WRITE (§6.4).
    #[derive(Copy)]
    Write<'a> { handle: HandleBytes<'a>, offset: u64, data: Data<'a> }

    /// FSETSTAT (§6.9).
    #[derive(Copy)]
    SetByHandle<'a> { handle: HandleBytes<'a>, attrs: Attrs }

    /// SYMLINK (§6.10) with its arguments as OpenSSH has them, not as the draft: all clients do.
    #[derive(Copy)]
    Symlink<'a> { targetpath: PathBytes<'a>, linkpath: PathBytes<'a> }
}

macro_rules! requests {
    ($($(#[$meta:meta])* $name:ident($type:ty) = $kind:ident;)*) => {
        /// A request.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Request<'a> {
            $($(#[$meta])* $name($type),)*
        }

        impl<'a> Request<'a> {
            /// The type of its packet.
            pub const fn kind(&self) -> PacketType {
                match self {
                    $(Self::$name(_) => PacketType::$kind,)*
                }
            }

            /// The request of a packet of this type, `r` being after its id. `None` for an unknown
            /// type, or one that is not a request.
            ///
            /// # Errors
            /// [`DecodeError`]. Where the next packet begins is known all the same.
            pub fn decode(
                kind: PacketType,
                r: &mut Reader<'a>,
            ) -> Result<Option<Self>, DecodeError> {
                Ok(Some(match kind {
                    $(PacketType::$kind => Self::$name(Decode::decode(r)?),)*
                    _ => return Ok(None),
                }))
            }
        }

        impl Encode for Request<'_> {
            fn encode(&self, w: &mut Writer<'_>) {
                match self {
                    $(Self::$name(args) => args.encode(w),)*
                }
            }
        }

        #[cfg(test)]
        impl<'a> crate::arb::Arb<'a> for Request<'a> {
            fn arb(g: &mut crate::arb::Gen<'a>) -> Self {
                let makers: &[fn(&mut crate::arb::Gen<'a>) -> Self] =
                    &[$(|g| Self::$name(g.arb())),*];
                makers[usize::from(g.byte()) % makers.len()](g)
            }
        }
    };
}

requests! {
    /// Open a file.
    Open(Open<'a>) = OPEN;
    /// End with a handle.
    Close(OfHandle<'a>) = CLOSE;
    /// Read from an open file.
    Read(Read<'a>) = READ;
    /// Write to an open file.
    Write(Write<'a>) = WRITE;
    /// Attributes by path; of a symbolic link itself.
    Lstat(OfPath<'a>) = LSTAT;
    /// Attributes of an open file.
    Fstat(OfHandle<'a>) = FSTAT;
    /// Change attributes by path.
    Setstat(SetByPath<'a>) = SETSTAT;
    /// Change attributes of an open file.
    Fsetstat(SetByHandle<'a>) = FSETSTAT;
    /// Open a directory.
    Opendir(OfPath<'a>) = OPENDIR;
    /// The next names of an open directory.
    Readdir(OfHandle<'a>) = READDIR;
    /// Remove a file.
    Remove(OfPath<'a>) = REMOVE;
    /// Make a directory.
    Mkdir(SetByPath<'a>) = MKDIR;
    /// Remove an empty directory.
    Rmdir(OfPath<'a>) = RMDIR;
    /// A path in its full form.
    Realpath(OfPath<'a>) = REALPATH;
    /// Attributes by path, symbolic links followed.
    Stat(OfPath<'a>) = STAT;
    /// Give a file another name, which must be free.
    Rename(TwoPaths<'a>) = RENAME;
    /// Where a symbolic link leads.
    Readlink(OfPath<'a>) = READLINK;
    /// Make a symbolic link.
    Symlink(Symlink<'a>) = SYMLINK;
    /// A request of an extension.
    Extended(Extended<'a>) = EXTENDED;
}

impl Request<'_> {
    /// Appends the whole packet.
    pub fn put(&self, w: &mut Writer<'_>, id: u32) {
        let begun = begin_packet(w, self.kind());
        w.u32(id);
        self.encode(w);
        end_packet(w, begun, 0);
    }
}

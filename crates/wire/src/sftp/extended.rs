//! Extensions of OpenSSH (its file PROTOCOL, section 4): requests, and replies of their own.

use base::limits::SFTP_IDS_MAX;

use super::arguments::{OfHandle, OfPath, SetByPath, TwoPaths};
use super::data::{HandleBytes, Str, put_string};
use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

xdr_structs! {
    /// copy-data (draft-ietf-secsh-filexfer-extensions-00 §7): `read_len` 0 is to the end.
    #[derive(Copy)]
    CopyData<'a> {
        read_handle: HandleBytes<'a>, read_offset: u64, read_len: u64,
        write_handle: HandleBytes<'a>, write_offset: u64,
    }

    /// home-directory (the same, §5): an empty name is the caller.
    #[derive(Copy)]
    HomeDirectory<'a> { username: Str<'a> }

    /// The reply to limits; 0 is "no limit, or not known".
    #[derive(Copy, Default)]
    Limits {
        max_packet_length: u64, max_read_length: u64, max_write_length: u64, max_open_handles: u64,
    }

    /// The reply to statvfs and fstatvfs, as POSIX `statvfs` names its members.
    #[derive(Copy, Default)]
    Statvfs {
        bsize: u64, frsize: u64, blocks: u64, bfree: u64, bavail: u64, files: u64, ffree: u64,
        favail: u64, fsid: u64, flag: u64, namemax: u64,
    }
}

/// `SSH_FXE_STATVFS_ST_RDONLY` of [`Statvfs::flag`].
pub const STATVFS_RDONLY: u64 = 0x1;
/// `SSH_FXE_STATVFS_ST_NOSUID` of [`Statvfs::flag`].
pub const STATVFS_NOSUID: u64 = 0x2;

/// Numbers of users or groups: a string that holds them one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ids(pub Vec<u32>);

impl Encode for Ids {
    fn encode(&self, w: &mut Writer<'_>) {
        debug_assert!(self.0.len() <= SFTP_IDS_MAX);
        w.u32(4 * self.0.len() as u32);
        self.0.iter().for_each(|id| w.u32(*id));
    }
}

impl Decode<'_> for Ids {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let what = "ids";
        let bytes = super::data::string(r, 4 * SFTP_IDS_MAX, what)?;
        let (ids, rest) = bytes.as_chunks::<4>();
        match rest {
            [] => Ok(Self(ids.iter().map(|id| u32::from_be_bytes(*id)).collect())),
            _ => Err(DecodeError::Short { what }),
        }
    }
}

#[cfg(test)]
impl crate::arb::Arb<'_> for Ids {
    fn arb(g: &mut crate::arb::Gen<'_>) -> Self {
        Self(g.list(5))
    }
}

xdr_structs! {
    /// users-groups-by-id: the ids to look up.
    UsersGroups { uids: Ids, gids: Ids }
}

/// The reply to users-groups-by-id: names in the order asked, empty where there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserGroupNames<'a> {
    /// Names of users.
    pub users: Vec<Str<'a>>,
    /// Names of groups.
    pub groups: Vec<Str<'a>>,
}

fn put_names(w: &mut Writer<'_>, names: &[Str<'_>]) {
    let at = w.len();
    w.u32(0);
    names.iter().for_each(|name| name.encode(w));
    let len = w.len() - at - 4;
    w.patch_u32(at, len as u32);
}

fn names<'a>(r: &mut Reader<'a>) -> Result<Vec<Str<'a>>, DecodeError> {
    let what = "names";
    let mut list = Reader::new(super::data::string(r, base::limits::SFTP_PACKET_MAX, what)?);
    let (mut names, max) = (Vec::new(), SFTP_IDS_MAX);
    while !list.rest().is_empty() {
        if names.len() == max {
            return Err(DecodeError::TooLong { what, max, got: max + 1 });
        }
        names.push(Str::decode(&mut list)?);
    }
    Ok(names)
}

impl Encode for UserGroupNames<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        put_names(w, &self.users);
        put_names(w, &self.groups);
    }
}

impl<'a> Decode<'a> for UserGroupNames<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { users: names(r)?, groups: names(r)? })
    }
}

#[cfg(test)]
impl<'a> crate::arb::Arb<'a> for UserGroupNames<'a> {
    fn arb(g: &mut crate::arb::Gen<'a>) -> Self {
        Self { users: g.list(4), groups: g.list(4) }
    }
}

macro_rules! extensions {
    ($($(#[$meta:meta])* $name:ident($type:ty) = $text:literal $version:literal;)*) => {
        /// A request of an extension.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Extended<'a> {
            $($(#[$meta])* $name($type),)*
            /// One that is not known here: its name, and the rest of the packet.
            Unknown(Str<'a>, &'a [u8]),
        }

        impl Extended<'_> {
            /// Names of the supported extensions, and the version of each, as sent in VERSION.
            pub const KNOWN: &'static [(&'static str, &'static str)] = &[$(($text, $version)),*];

            /// Its name.
            pub fn name(&self) -> &[u8] {
                match self {
                    $(Self::$name(_) => $text.as_bytes(),)*
                    Self::Unknown(name, _) => name.0,
                }
            }
        }

        impl Encode for Extended<'_> {
            fn encode(&self, w: &mut Writer<'_>) {
                put_string(w, self.name());
                match self {
                    $(Self::$name(args) => args.encode(w),)*
                    Self::Unknown(_, rest) => w.raw(rest),
                }
            }
        }

        impl<'a> Decode<'a> for Extended<'a> {
            fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
                let name = Str::decode(r)?;
                $(if name.0 == $text.as_bytes() {
                    return Ok(Self::$name(Decode::decode(r)?));
                })*
                let rest = r.rest();
                *r = Reader::new(&[]);
                Ok(Self::Unknown(name, rest))
            }
        }

        #[cfg(test)]
        impl<'a> crate::arb::Arb<'a> for Extended<'a> {
            fn arb(g: &mut crate::arb::Gen<'a>) -> Self {
                let makers: &[fn(&mut crate::arb::Gen<'a>) -> Self] = &[
                    $(|g| Self::$name(g.arb()),)*
                    |g| Self::Unknown(g.arb(), g.arb()),
                ];
                makers[usize::from(g.byte()) % makers.len()](g)
            }
        }
    };
}

extensions! {
    /// Rename that takes the place of what is there.
    PosixRename(TwoPaths<'a>) = "posix-rename@openssh.com" "1";
    /// The file system of a path.
    Statvfs(OfPath<'a>) = "statvfs@openssh.com" "2";
    /// The file system of an open file.
    Fstatvfs(OfHandle<'a>) = "fstatvfs@openssh.com" "2";
    /// Another name for a file.
    Hardlink(TwoPaths<'a>) = "hardlink@openssh.com" "1";
    /// What was written to disk.
    Fsync(OfHandle<'a>) = "fsync@openssh.com" "1";
    /// Change attributes by path, of a symbolic link itself.
    Lsetstat(SetByPath<'a>) = "lsetstat@openssh.com" "1";
    /// How much the server takes.
    Limits(()) = "limits@openssh.com" "1";
    /// A path in its full form, `~` and `~user` included.
    ExpandPath(OfPath<'a>) = "expand-path@openssh.com" "1";
    /// Copy from file to file at the server.
    CopyData(CopyData<'a>) = "copy-data" "1";
    /// Names of users and groups.
    UsersGroupsById(UsersGroups) = "users-groups-by-id@openssh.com" "1";
    /// Where a user is at home.
    HomeDirectory(HomeDirectory<'a>) = "home-directory" "1";
}

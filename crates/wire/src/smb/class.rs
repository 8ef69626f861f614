//! What QUERY_INFO and SET_INFO carry (MS-FSCC §2.4, §2.5).

use super::codec::{Field, Reader, Result, SmbError};
use super::create::Facts;

/// FileAttributes (MS-FSCC §2.6).
pub mod attributes {
    /// Not to be written.
    pub const READ_ONLY: u32 = 1;
    /// Not shown.
    pub const HIDDEN: u32 = 2;
    /// Of the system.
    pub const SYSTEM: u32 = 4;
    /// A directory.
    pub const DIRECTORY: u32 = 0x10;
    /// Changed since it was saved.
    pub const ARCHIVE: u32 = 0x20;
    /// Nothing else.
    pub const NORMAL: u32 = 0x80;
    /// It is removed soon.
    pub const TEMPORARY: u32 = 0x100;
    /// It may have holes.
    pub const SPARSE: u32 = 0x200;
    /// A reparse point.
    pub const REPARSE_POINT: u32 = 0x400;
    /// Its data is somewhere else.
    pub const OFFLINE: u32 = 0x1000;
    /// Searches leave it out.
    pub const NOT_INDEXED: u32 = 0x2000;
    /// It is encrypted by the file system.
    pub const ENCRYPTED: u32 = 0x4000;
    /// Those that a client can set.
    pub const SETTABLE: u32 =
        READ_ONLY | HIDDEN | SYSTEM | ARCHIVE | TEMPORARY | OFFLINE | NOT_INDEXED;
    /// Those that are kept.
    pub const KEPT: u32 = SETTABLE | SPARSE;
    /// Those that a CREATE may name: also some that are not a client's to set, which are ignored.
    pub const NAMED: u32 = 0x7fb7;
}

/// Classes of files.
pub mod file_class {
    /// FileBasicInformation.
    pub const BASIC: u8 = 4;
    /// FileStandardInformation.
    pub const STANDARD: u8 = 5;
    /// FileInternalInformation.
    pub const INTERNAL: u8 = 6;
    /// FileEaInformation.
    pub const EA: u8 = 7;
    /// FileAccessInformation.
    pub const ACCESS: u8 = 8;
    /// FileRenameInformation.
    pub const RENAME: u8 = 10;
    /// FileLinkInformation.
    pub const LINK: u8 = 11;
    /// FileDispositionInformation.
    pub const DISPOSITION: u8 = 13;
    /// FilePositionInformation.
    pub const POSITION: u8 = 14;
    /// FileFullEaInformation.
    pub const FULL_EA: u8 = 15;
    /// FileModeInformation.
    pub const MODE: u8 = 16;
    /// FileAlignmentInformation.
    pub const ALIGNMENT: u8 = 17;
    /// FileAllInformation.
    pub const ALL: u8 = 18;
    /// FileAllocationInformation.
    pub const ALLOCATION: u8 = 19;
    /// FileEndOfFileInformation.
    pub const END_OF_FILE: u8 = 20;
    /// FileAlternateNameInformation.
    pub const ALTERNATE_NAME: u8 = 21;
    /// FileStreamInformation.
    pub const STREAM: u8 = 22;
    /// FileCompressionInformation.
    pub const COMPRESSION: u8 = 28;
    /// FileNetworkOpenInformation.
    pub const NETWORK_OPEN: u8 = 34;
    /// FileAttributeTagInformation.
    pub const ATTRIBUTE_TAG: u8 = 35;
    /// FileNormalizedNameInformation.
    pub const NORMALIZED_NAME: u8 = 48;
    /// FileIdInformation.
    pub const ID: u8 = 59;
    /// FileDispositionInformationEx.
    pub const DISPOSITION_EX: u8 = 64;
    /// FileRenameInformationEx.
    pub const RENAME_EX: u8 = 65;
}

/// FileModeInformation (MS-FSCC §2.4.31).
pub mod mode {
    /// Each write is on disk before it is answered.
    pub const WRITE_THROUGH: u32 = 2;
    /// Options that remain with an open: as those of CREATE.
    pub const OF_OPEN: u32 = WRITE_THROUGH | 4 | 8;
    /// All that there are; how a local program waits is its own matter.
    pub const ALL: u32 = OF_OPEN | 0x10 | 0x20 | 0x1000;
}

/// Classes of file systems.
pub mod fs_class {
    /// FileFsVolumeInformation.
    pub const VOLUME: u8 = 1;
    /// FileFsSizeInformation.
    pub const SIZE: u8 = 3;
    /// FileFsDeviceInformation.
    pub const DEVICE: u8 = 4;
    /// FileFsAttributeInformation.
    pub const ATTRIBUTE: u8 = 5;
    /// FileFsControlInformation.
    pub const CONTROL: u8 = 6;
    /// FileFsFullSizeInformation.
    pub const FULL_SIZE: u8 = 7;
    /// FileFsObjectIdInformation.
    pub const OBJECT_ID: u8 = 8;
    /// FileFsSectorSizeInformation.
    pub const SECTOR_SIZE: u8 = 11;
}

fixed! {
    /// FileBasicInformation. A time of 0 or of all ones is left as it is when it is set.
    pub struct Basic {
        /// FILETIME.
        pub created: u64,
        /// FILETIME.
        pub accessed: u64,
        /// FILETIME.
        pub written: u64,
        /// FILETIME.
        pub changed: u64,
        /// [`attributes`]; 0 leaves them.
        pub attributes: u32,
        /// Zero.
        pub reserved: u32,
    }
}

fixed! {
    /// FileStandardInformation.
    pub struct Standard {
        /// Bytes on disk.
        pub allocation: u64,
        /// Bytes.
        pub size: u64,
        /// Names.
        pub links: u32,
        /// Whether it is removed at the last close.
        pub delete_pending: u8,
        /// Whether it is a directory.
        pub directory: u8,
        /// Zero.
        pub reserved: u16,
    }
}

fixed! {
    /// FileFsSizeInformation and FileFsFullSizeInformation in units of a block.
    pub struct FullSize {
        /// All units.
        pub total: u64,
        /// Those that the caller may use.
        pub available: u64,
        /// Those that are free.
        pub free: u64,
        /// Sectors in a unit.
        pub sectors: u32,
        /// Bytes in a sector.
        pub sector: u32,
    }
}

impl Basic {
    /// From the attributes that CREATE returns.
    pub const fn of(facts: &Facts) -> Self {
        let Facts { created, accessed, written, changed, attributes, .. } = *facts;
        Self { created, accessed, written, changed, attributes, reserved: 0 }
    }
}

/// What is known of an open file, for the information classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFileInfo {
    /// Times, sizes, attributes.
    pub facts: Facts,
    /// Names.
    pub links: u32,
    /// Whether it is removed at the last close.
    pub delete_pending: bool,
    /// Its number.
    pub fileid: u64,
    /// The number of its file system.
    pub fsid: u64,
    /// Rights of the open.
    pub access: u32,
    /// Options of the open that remain.
    pub mode: u32,
    /// The current byte offset of the open (FilePositionInformation).
    pub position: u64,
    /// Its path in the share in UTF-16LE, with a leading `\`.
    pub path: Vec<u8>,
}

impl OpenFileInfo {
    fn is_directory(&self) -> bool {
        self.facts.attributes & attributes::DIRECTORY != 0
    }

    fn standard(&self) -> Standard {
        Standard {
            allocation: self.facts.allocation,
            size: self.facts.size,
            links: self.links,
            delete_pending: self.delete_pending.into(),
            directory: self.is_directory().into(),
            reserved: 0,
        }
    }

    fn put_name(&self, out: &mut Vec<u8>) {
        (self.path.len() as u32).put(out);
        out.extend_from_slice(&self.path);
    }

    fn put_all(&self, out: &mut Vec<u8>) {
        Basic::of(&self.facts).put(out);
        self.standard().put(out);
        self.fileid.put(out);
        0u32.put(out);
        self.access.put(out);
        self.position.put(out);
        self.mode.put(out);
        0u32.put(out);
        self.put_name(out);
    }

    fn put_streams(&self, out: &mut Vec<u8>) {
        if self.is_directory() {
            return;
        }
        let name = super::utf16::encode("::$DATA");
        0u32.put(out);
        (name.len() as u32).put(out);
        self.facts.size.put(out);
        self.facts.allocation.put(out);
        out.extend_from_slice(&name);
    }

    fn put_network_open(&self, out: &mut Vec<u8>) {
        self.facts.put(out);
        0u32.put(out);
    }

    /// The data of a class; `None` if it is not served. With it, its least size: a smaller buffer
    /// is refused, a larger one that does not hold all of it receives the beginning.
    pub fn class(&self, class: u8) -> Option<(Vec<u8>, usize)> {
        let mut out = Vec::new();
        let least = match class {
            file_class::BASIC => {
                Basic::of(&self.facts).put(&mut out);
                40
            }
            file_class::STANDARD => {
                self.standard().put(&mut out);
                24
            }
            file_class::INTERNAL => {
                self.fileid.put(&mut out);
                8
            }
            file_class::EA | file_class::ALIGNMENT => {
                0u32.put(&mut out);
                4
            }
            file_class::ACCESS => {
                self.access.put(&mut out);
                4
            }
            file_class::POSITION => {
                self.position.put(&mut out);
                8
            }
            file_class::MODE => {
                self.mode.put(&mut out);
                4
            }
            file_class::ALL => {
                self.put_all(&mut out);
                104
            }
            file_class::NORMALIZED_NAME => {
                let path = self.path.get(2..).unwrap_or_default();
                (path.len() as u32).put(&mut out);
                out.extend_from_slice(path);
                8
            }
            file_class::STREAM => {
                self.put_streams(&mut out);
                32.min(out.len())
            }
            file_class::COMPRESSION => {
                self.facts.size.put(&mut out);
                0u64.put(&mut out);
                16
            }
            file_class::NETWORK_OPEN => {
                self.put_network_open(&mut out);
                56
            }
            file_class::ATTRIBUTE_TAG => {
                self.facts.attributes.put(&mut out);
                0u32.put(&mut out);
                8
            }
            file_class::ID => {
                self.fsid.put(&mut out);
                self.fileid.put(&mut out);
                self.fsid.put(&mut out);
                24
            }
            _ => return None,
        };
        Some((out, least))
    }
}

/// FileRenameInformation and FileLinkInformation of SMB 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewName<'a> {
    /// Whether what is there is replaced.
    pub replace: bool,
    /// The new path in the share, in UTF-16LE.
    pub name: &'a [u8],
}

impl<'a> NewName<'a> {
    /// Where the name begins.
    pub const NAME_AT: usize = 20;

    /// Reads it.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(data: &'a [u8]) -> Result<Self> {
        let mut r = Reader::new(data, "new name");
        let replace: u8 = r.get()?;
        let _reserved: [u8; 7] = r.get()?;
        if r.get::<u64>()? != 0 {
            return Err(SmbError::Value("RootDirectory"));
        }
        let len: u32 = r.get()?;
        Ok(Self { replace: replace & 1 != 0, name: r.take(len as usize)? })
    }

    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        u8::from(self.replace).put(out);
        [0u8; 15].put(out);
        (self.name.len() as u32).put(out);
        out.extend_from_slice(self.name);
    }
}

/// Appends FileFsVolumeInformation.
pub fn put_volume(out: &mut Vec<u8>, created: u64, serial: u32, label: &str) {
    let label = super::utf16::encode(label);
    created.put(out);
    serial.put(out);
    (label.len() as u32).put(out);
    0u16.put(out);
    out.extend_from_slice(&label);
}

/// Attributes of a file system.
pub mod fs_attributes {
    /// Names that differ only in case can be there.
    pub const CASE_SENSITIVE: u32 = 1;
    /// Names keep their case.
    pub const CASE_PRESERVED: u32 = 2;
    /// Names are Unicode.
    pub const UNICODE: u32 = 4;
    /// There are security descriptors.
    pub const ACLS: u32 = 8;
    /// Files may have holes.
    pub const SPARSE: u32 = 0x40;
    /// Nothing can be changed.
    pub const READ_ONLY: u32 = 0x8_0000;
    /// Files may have several names.
    pub const HARD_LINKS: u32 = 0x40_0000;
    /// Files can share blocks.
    pub const BLOCK_REFCOUNTING: u32 = 0x0800_0000;
}

/// Appends FileFsAttributeInformation.
pub fn put_fs_attributes(out: &mut Vec<u8>, attributes: u32, name_max: u32) {
    // Programs look for this name before they use what it can do.
    let name = super::utf16::encode("NTFS");
    attributes.put(out);
    name_max.put(out);
    (name.len() as u32).put(out);
    out.extend_from_slice(&name);
}

/// Appends FileFsControlInformation of a file system that has no quotas of Windows.
pub fn put_no_quota(out: &mut Vec<u8>) {
    // Free space at which content is indexed: not here.
    out.extend_from_slice(&[0; 24]);
    // Neither a threshold nor a limit by default.
    u64::MAX.put(out);
    u64::MAX.put(out);
    0u64.put(out);
}

/// Appends FileFsSectorSizeInformation for sectors of this size.
pub fn put_sector_size(out: &mut Vec<u8>, sector: u32) {
    for _ in 0..4 {
        sector.put(out);
    }
    // Aligned to the device and to the partition.
    3u32.put(out);
    0u32.put(out);
    0u32.put(out);
}

//! What is done over SMB before the power goes; what must be there then, and the flush without
//! which it is not.

use std::time::{Duration, SystemTime};

use e2e::smb::scene::UID;
use e2e::smb::{Ask, Smb, new_name};
use sim::forget::ForgetFs;
use wire::smb::class::{Basic, file_class};
use wire::smb::codec::Field;
use wire::smb::create::{Disposition, FileId, options};
use wire::smb::io::WRITE_THROUGH;
use wire::smb::ioctl::code;
use wire::smb::status::NtStatus;
use wire::smb::time;

const OLD: &[u8] = b"what was here before";
const NEW: &[u8] = b"what has come instead of it";
/// A time of last write.
const TIME: u64 = 1_000_000_000;

/// Something that is done, in a folder of its own.
pub struct Case {
    /// Its name, and its folder's.
    pub name: &'static str,
    /// What exists before: files, and folders (without content).
    pub before: &'static [(&'static str, Option<&'static [u8]>)],
    /// Does it.
    pub act: fn(&mut Smb, &str),
    /// What must be there once it is acknowledged, whatever happens then.
    pub after: &'static [(&'static str, Thing)],
    /// Flushes, by the names that `PLIMSOLL_TEST_SKIP_FLUSH` takes; without each of them it is not.
    pub needs: &'static [&'static str],
}

/// What is at a name.
#[derive(Debug, Clone, Copy)]
pub enum Thing {
    Nothing,
    Folder,
    /// A file with this content.
    File(&'static [u8]),
    /// An empty file that belongs to the user that created it.
    Made,
    /// [`OLD`], last written at [`TIME`].
    OldSinceTime,
}

use Thing::{File, Folder, Made, Nothing, OldSinceTime};

impl Case {
    /// What is not as it was acknowledged.
    pub fn lost(&self, image: &ForgetFs) -> Option<String> {
        self.after.iter().find_map(|(name, thing)| {
            let left = image.look(&format!("share/{}/{name}", self.name));
            let found = left.as_ref().map(|left| (left.mode & libc::S_IFMT, &left.data[..]));
            let is_right = match (*thing, found) {
                (Nothing, found) => found.is_none(),
                (Folder, Some((kind, _))) => kind == libc::S_IFDIR,
                (File(content), Some((kind, data))) => kind == libc::S_IFREG && data == content,
                (Made, Some((kind, data))) => {
                    let is_hers = left.as_ref().is_some_and(|left| left.uid == UID);
                    kind == libc::S_IFREG && data.is_empty() && is_hers
                }
                (OldSinceTime, Some((_, data))) => {
                    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(TIME);
                    data == OLD && left.as_ref().is_some_and(|left| left.mtime == time)
                }
                (_, None) => false,
            };
            (!is_right).then(|| format!("{name}: not {thing:?} but {found:?}"))
        })
    }
}

fn open(smb: &mut Smb, ask: &Ask<'_>) -> FileId {
    let opened = smb.create(ask).expect("a connection");
    opened.unwrap_or_else(|why| panic!("{}: {why:?}", ask.path))
}

fn well(status: std::io::Result<NtStatus>) {
    assert_eq!(status.expect("a connection"), NtStatus::SUCCESS);
}

/// Opens, does something, and never closes: what was acknowledged is all that counts.
fn on(
    smb: &mut Smb,
    ask: &Ask<'_>,
    what: impl FnOnce(&mut Smb, FileId) -> std::io::Result<NtStatus>,
) {
    let file = open(smb, ask);
    let done = what(smb, file);
    well(done);
}

fn number(value: u64) -> [u8; 8] {
    value.to_le_bytes()
}

const F_OLD: &[(&str, Option<&[u8]>)] = &[("f", Some(OLD))];

pub static CASES: [Case; 17] = [
    Case {
        name: "create",
        before: &[],
        act: |smb, at| {
            open(smb, &Ask::make(&format!("{at}\\f")));
        },
        after: &[("f", Made)],
        needs: &["create-file", "create-directory"],
    },
    Case {
        name: "create-directory",
        before: &[],
        act: |smb, at| {
            open(smb, &Ask::make(&format!("{at}\\d")).dir());
        },
        after: &[("d", Folder)],
        needs: &["mkdir-parent"],
    },
    Case {
        name: "overwrite",
        before: F_OLD,
        act: |smb, at| {
            let path = format!("{at}\\f");
            let ask = Ask { disposition: Disposition::Overwrite, ..Ask::open(&path) };
            open(smb, &ask);
        },
        after: &[("f", File(b""))],
        needs: &["setattr"],
    },
    Case {
        name: "flush",
        before: F_OLD,
        act: |smb, at| {
            on(smb, &Ask::open(&format!("{at}\\f")), |smb, file| {
                well(smb.write(file, 0, NEW, 0));
                smb.flush(file)
            });
        },
        after: &[("f", File(NEW))],
        needs: &["commit"],
    },
    Case {
        name: "write-through",
        before: F_OLD,
        act: |smb, at| {
            on(smb, &Ask::open(&format!("{at}\\f")), |smb, file| {
                smb.write(file, 0, NEW, WRITE_THROUGH)
            });
        },
        after: &[("f", File(NEW))],
        needs: &["commit"],
    },
    Case {
        name: "opened-for-write-through",
        before: F_OLD,
        act: |smb, at| {
            let path = format!("{at}\\f");
            let ask = Ask::open(&path).with(options::WRITE_THROUGH);
            on(smb, &ask, |smb, file| smb.write(file, 0, NEW, 0));
        },
        after: &[("f", File(NEW))],
        needs: &["commit"],
    },
    Case {
        name: "size",
        before: F_OLD,
        act: |smb, at| {
            on(smb, &Ask::open(&format!("{at}\\f")), |smb, file| {
                smb.set(file, file_class::END_OF_FILE, &number(8))
            });
        },
        after: &[("f", File(b"what was"))],
        needs: &["setattr"],
    },
    Case {
        name: "times",
        before: F_OLD,
        act: |smb, at| {
            let mut basic = Vec::new();
            let written = time::from_unix(TIME as i64, 0);
            Basic { created: 0, accessed: 0, written, changed: 0, attributes: 0, reserved: 0 }
                .put(&mut basic);
            on(smb, &Ask::open(&format!("{at}\\f")), |smb, file| {
                smb.set(file, file_class::BASIC, &basic)
            });
        },
        after: &[("f", OldSinceTime)],
        needs: &["setattr"],
    },
    Case {
        name: "rename",
        before: &[("f", Some(NEW)), ("g", Some(OLD))],
        act: |smb, at| {
            let to = new_name(&format!("{at}\\g"), true);
            on(smb, &Ask::open(&format!("{at}\\f")), |smb, file| {
                smb.set(file, file_class::RENAME, &to)
            });
        },
        after: &[("f", Nothing), ("g", File(NEW))],
        needs: &["rename-from"],
    },
    Case {
        name: "rename-elsewhere",
        before: &[("f", Some(OLD)), ("d", None)],
        act: |smb, at| {
            let to = new_name(&format!("{at}\\d\\g"), false);
            on(smb, &Ask::open(&format!("{at}\\f")), |smb, file| {
                smb.set(file, file_class::RENAME, &to)
            });
        },
        after: &[("f", Nothing), ("d/g", File(OLD))],
        needs: &["rename-from", "rename-to"],
    },
    Case {
        name: "rename-directory",
        before: &[("d", None), ("e", None)],
        act: |smb, at| {
            let to = new_name(&format!("{at}\\e\\d"), false);
            on(smb, &Ask::open(&format!("{at}\\d")).dir(), |smb, dir| {
                smb.set(dir, file_class::RENAME, &to)
            });
        },
        after: &[("d", Nothing), ("e/d", Folder)],
        needs: &["rename-from", "rename-to"],
    },
    Case {
        name: "link",
        before: F_OLD,
        act: |smb, at| {
            let to = new_name(&format!("{at}\\g"), false);
            on(smb, &Ask::open(&format!("{at}\\f")), |smb, file| {
                smb.set(file, file_class::LINK, &to)
            });
        },
        after: &[("f", File(OLD)), ("g", File(OLD))],
        needs: &["link-directory"],
    },
    Case {
        name: "delete-on-close",
        before: F_OLD,
        act: |smb, at| {
            let path = format!("{at}\\f");
            let ask = Ask::open(&path).with(options::DELETE_ON_CLOSE);
            on(smb, &ask, Smb::close);
        },
        after: &[("f", Nothing)],
        needs: &["remove-directory"],
    },
    Case {
        name: "disposition",
        before: F_OLD,
        act: |smb, at| {
            on(smb, &Ask::open(&format!("{at}\\f")), |smb, file| {
                well(smb.set(file, file_class::DISPOSITION, &[1]));
                smb.close(file)
            });
        },
        after: &[("f", Nothing)],
        needs: &["remove-directory"],
    },
    Case {
        name: "remove-directory",
        before: &[("d", None)],
        act: |smb, at| {
            on(smb, &Ask::open(&format!("{at}\\d")).dir(), |smb, dir| {
                well(smb.set(dir, file_class::DISPOSITION, &[1]));
                smb.close(dir)
            });
        },
        after: &[("d", Nothing)],
        needs: &["rmdir-directory"],
    },
    Case {
        name: "zeros",
        before: F_OLD,
        act: |smb, at| {
            let range = [number(0), number(4)].concat();
            on(smb, &Ask::open(&format!("{at}\\f")), |smb, file| {
                Ok(smb.control(code::SET_ZERO_DATA, file, &range, 0)?.status())
            });
        },
        after: &[("f", File(b"\0\0\0\0 was here before"))],
        // Where no holes can be made, as here, zeros are written.
        needs: &["commit"],
    },
    Case {
        name: "copy",
        before: &[("f", Some(NEW)), ("g", Some(OLD))],
        act: |smb, at| {
            let source = open(smb, &Ask::open(&format!("{at}\\f")));
            let key = smb.control(code::REQUEST_RESUME_KEY, source, &[], 32).expect("an answer");
            let key = wire::smb::ioctl::Response::decode(&key.message).expect("a key");
            let mut input = key.output[..24].to_vec();
            for number in [1u32, 0] {
                number.put(&mut input);
            }
            let length = NEW.len() as u32;
            wire::smb::ioctl::Chunk { source: 0, target: 0, length, reserved: 0 }.put(&mut input);
            on(smb, &Ask::open(&format!("{at}\\g")), |smb, target| {
                Ok(smb.control(code::COPYCHUNK, target, &input, 12)?.status())
            });
        },
        after: &[("g", File(NEW))],
        needs: &["copy"],
    },
];

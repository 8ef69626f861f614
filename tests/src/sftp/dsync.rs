//! A run of dsync as far as a client needs it that holds one: it is begun, and goes no further.

use std::io;

use wire::dsync::frame::{self, HEAD};
use wire::dsync::{
    Bytes, Directory, Entries, Entry, Hello, Kind, MAGIC, Message, Meta, Options, Role, Start,
    Time, VERSION,
};
use wire::xdr::Seq;

use super::Sftp;

impl Sftp {
    /// Begins a run that writes to a directory of a share, on a channel with the subsystem `dsync`,
    /// and sends directories of the source that the server has to wait for. Then it is silent.
    ///
    /// # Errors
    /// The server refuses the run, or the connection has ended.
    pub fn begin_dsync(&mut self, place: &str, directories: usize) -> io::Result<()> {
        let start = Start {
            role: Role::DESTINATION,
            place: Bytes(place.as_bytes().to_vec()),
            options: options(),
            streams: None,
        };
        self.put_frame(&Message::Hello(Hello { magic: MAGIC, version: VERSION }))?;
        self.put_frame(&Message::Start(start))?;
        loop {
            match frame::message(&self.frame()?).map_err(io::Error::other)? {
                Message::Hello(_) => {}
                Message::Ready(_) => break,
                other => return Err(io::Error::other(format!("not ready: {other:?}"))),
            }
        }
        let name = Bytes(Vec::new());
        self.put_frame(&Message::Directory(Directory { name, meta: Some(meta()) }))?;
        let entry = |n| Entry { name: Bytes(format!("{n:08}").into_bytes()), meta: meta() };
        let entries = Seq((0..directories).map(entry).collect());
        self.put_frame(&Message::Entries(Entries { entries }))
    }

    fn put_frame(&mut self, message: &Message<'_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        frame::put(message, &mut bytes);
        self.put(&bytes)
    }

    fn frame(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(head) = self.came.first_chunk::<HEAD>() {
                let end = HEAD + frame::length(*head).map_err(io::Error::other)?;
                if self.came.len() >= end {
                    return Ok(self.came.drain(..end).skip(HEAD).collect());
                }
            }
            self.until(|_| Some(()))?;
        }
    }
}

fn options() -> Options {
    Options {
        delete: false,
        checksum: false,
        dry_run: false,
        owners: false,
        names: false,
        xattrs: false,
        devices: false,
        set_id: false,
        pack: false,
        in_place: false,
        bandwidth: 0,
        rules: Seq::default(),
    }
}

fn meta() -> Meta {
    Meta {
        kind: Kind::DIRECTORY,
        mode: 0o755,
        uid: 0,
        gid: 0,
        size: 0,
        mtime: Time { seconds: 1, nanoseconds: 1 },
        major: 0,
        minor: 0,
        target: Bytes(Vec::new()),
        link: None,
        xattrs: Seq::default(),
    }
}

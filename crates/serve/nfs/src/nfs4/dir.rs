//! READDIR (RFC 8881 §18.23).

use base::limits::NFS4_READDIR_MAX;
use vfs::fs::{DirEntry, Features, Space};
use wire::nfs4::{Bitmap4, Nfsstat4, ReaddirArgs4, ReaddirEncoder4, attr4};
use wire::xdr::{Encode, Writer};

use super::attr::{PSEUDO_ABILITIES, put_attrs};
use super::fattr::{SPACE, check_readable};
use super::names::directory;
use super::pseudo::{Below, Pseudo, mounted_on, table_change};
use super::run::{CompoundContext, Fail, Handled, context};
use super::target::{FileHandleTarget, Target};

/// A reply that could not hold even an empty listing is refused before anything is looked at.
const SMALLEST: u32 = 16;

pub(super) fn readdir(run: &mut CompoundContext<'_>, args: &ReaddirArgs4) -> Handled {
    let place = run.current()?.clone();
    check_readable(&args.attr_request)?;
    if let FileHandleTarget::File(target) = &place {
        run.target(Nfsstat4::SERVERFAULT)?;
        directory(run, target).map_err(|fail| match fail {
            Fail::Status(Nfsstat4::SYMLINK) => Nfsstat4::NOTDIR.into(),
            fail => fail,
        })?;
    }
    // These cookies are never sent (RFC 8881 §18.23.3).
    if args.cookie == 1 || args.cookie == 2 {
        return Err(Nfsstat4::BAD_COOKIE.into());
    }
    if args.maxcount < SMALLEST {
        return Err(Nfsstat4::TOOSMALL.into());
    }
    match &place {
        FileHandleTarget::Pseudo(pseudo) => list_pseudo(run, args, *pseudo),
        FileHandleTarget::File(target) => list(run, args, target),
    }
}

fn list(run: &mut CompoundContext<'_>, args: &ReaddirArgs4, target: &Target) -> Handled {
    let (minor, lease_s) = (run.minor(), run.service.lease.as_secs() as u32);
    let cx = context(run.progress, &run.peer, run.may_block);
    let (fs, want) = (&target.share.fs, args.attr_request);
    let (abilities, features) = (fs.abilities(), fs.features());
    let idmap = &*run.service.idmap;
    let space = if want.and(&SPACE).is_empty() { Space::default() } else { fs.space(cx)? };
    let plus = needs_attributes(&want);
    let mut w = Writer::new(run.out.vec());
    let mut reply = ReaddirEncoder4::begin(&mut w, args.maxcount.min(NFS4_READDIR_MAX));
    let mut each = |e: DirEntry<'_>| {
        if matches!(e.name, b"." | b"..") {
            return true;
        }
        reply.add(e.cookie, e.name, |w| match &e.entry {
            Some(entry) => {
                let mounted_on = fs.mounted_on(&entry.handle).unwrap_or(entry.attr.fileid);
                let found = (&entry.attr, &entry.handle, mounted_on);
                let of = (&abilities, &space, features);
                put_attrs(w, minor, lease_s, &want, found, of, idmap);
            }
            None => put_without(w, &want, e.fileid),
        })
    };
    let listed = fs.list(cx, &target.handle, args.cookie, args.cookieverf, plus, &mut each);
    let done = match listed {
        Ok(done) => done,
        Err(status) => {
            reply.abort();
            return Err(status.into());
        }
    };
    if reply.entries() == 0 && !done.eof {
        reply.abort();
        return Err(Nfsstat4::TOOSMALL.into());
    }
    reply.finish(done.verifier, done.eof);
    Ok(())
}

/// Whether more is wanted than a plain listing knows.
fn needs_attributes(want: &Bitmap4) -> bool {
    !want.without(&Bitmap4::of(&[attr4::RDATTR_ERROR, attr4::FILEID])).is_empty()
}

/// An entry without attributes: its number; and an error for the rest, if the client requests
/// `rdattr_error`.
fn put_without(w: &mut Writer<'_>, want: &Bitmap4, fileid: u64) {
    let plain = Bitmap4::of(&[attr4::FILEID, attr4::MOUNTED_ON_FILEID, attr4::RDATTR_ERROR]);
    let attrs = wire::nfs4::Attrs4 {
        rdattr_error: want.has(attr4::RDATTR_ERROR).then_some(if needs_attributes(want) {
            Nfsstat4::NOENT
        } else {
            Nfsstat4::OK
        }),
        fileid: want.has(attr4::FILEID).then_some(fileid),
        mounted_on_fileid: want.has(attr4::MOUNTED_ON_FILEID).then_some(fileid),
        ..wire::nfs4::Attrs4::default()
    };
    debug_assert!(attrs.mask().without(&plain).is_empty());
    attrs.encode(w);
}

fn list_pseudo(run: &mut CompoundContext<'_>, args: &ReaddirArgs4, pseudo: Pseudo) -> Handled {
    let (minor, lease_s) = (run.minor(), run.service.lease.as_secs() as u32);
    let cx = context(run.progress, &run.peer, run.may_block);
    let (service, want) = (run.service, args.attr_request);
    let shares = service.shares.load();
    let change = table_change(&shares);
    // Cookies are the shares' numbers, which stay as long as the server runs.
    let verifier = service.verifier;
    if args.cookie != 0 && args.cookieverf != verifier {
        return Err(Nfsstat4::NOT_SAME.into());
    }
    let mut names = pseudo.list(&shares, args.cookie);
    names.retain(|(.., below)| match below {
        Below::Share(share) => run.may_see(share),
        Below::Pseudo(_) => true,
    });
    let mut w = Writer::new(run.out.vec());
    let mut reply = ReaddirEncoder4::begin(&mut w, args.maxcount.min(NFS4_READDIR_MAX));
    let all = names.len();
    for (cookie, name, below) in names {
        let (attr, handle, mounted, abilities, space, features) = match below {
            Below::Pseudo(below) => {
                let attr = below.attr(change);
                (
                    attr,
                    below.handle(),
                    attr.fileid,
                    PSEUDO_ABILITIES,
                    Space::default(),
                    Features::default(),
                )
            }
            Below::Share(share) => {
                let handle = share.fs.root();
                let found = share.fs.getattr(cx, &handle).and_then(|attr| {
                    let none = want.and(&SPACE).is_empty();
                    Ok((attr, if none { Space::default() } else { share.fs.space(cx)? }))
                });
                let (attr, space) = match found {
                    Ok(found) => found,
                    Err(status) => {
                        reply.abort();
                        return Err(status.into());
                    }
                };
                (attr, handle, mounted_on(share), share.fs.abilities(), space, share.fs.features())
            }
        };
        let found = (&attr, &handle, mounted);
        let put = |w: &mut Writer<'_>| {
            let of = (&abilities, &space, features);
            put_attrs(w, minor, lease_s, &want, found, of, &service.idmap);
        };
        if !reply.add(cookie, name, put) {
            break;
        }
    }
    let taken = reply.entries();
    if taken == 0 && all > 0 {
        reply.abort();
        return Err(Nfsstat4::TOOSMALL.into());
    }
    reply.finish(verifier, taken == all);
    Ok(())
}

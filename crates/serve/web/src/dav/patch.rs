//! PROPPATCH (RFC 4918 §9.2): all changes or none. Times are set on the file itself: those of
//! Windows (`Win32LastModifiedTime`), and `getlastmodified` for clients that use it.

use std::sync::{Arc, PoisonError};

use vfs::attr::{SetAttr, SetTime, Time, Wcc};
use vfs::fs::{Change, Changed, Context, FileSystem, Flush};
use vfs::handle::Handle;
use vfs::status::Status;
use wire::dav::WIN32;
use wire::dav::body::Patch;
use wire::dav::xml::{Name, Writer};

use super::dead::Dead;
use super::precondition::lineage_of;
use super::props::LiveProperty;
use super::state::{Lineage, Touched};
use super::{Dav, Job, Outcome, multi, refuse};
use crate::date;
use crate::response::Response;

/// What the changes come to, once they have been sorted.
#[derive(Debug, Default)]
struct Plan {
    set: SetAttr,
    dead: Vec<Patch>,
    /// What cannot be, and why.
    refused: Vec<(Name, u16)>,
}

impl Plan {
    fn of(patches: &[Patch]) -> Self {
        let mut plan = Self::default();
        for patch in patches {
            match (LiveProperty::of(patch.name()), patch) {
                (None | Some(LiveProperty::DisplayName), _) => plan.dead.push(patch.clone()),
                (Some(live), Patch::Set(element)) if live.may_be_set() => {
                    match date::parse(element.text().trim()) {
                        Some(sec) => plan.time(live, sec),
                        None => plan.refused.push((patch.name().clone(), 409)),
                    }
                }
                _ => plan.refused.push((patch.name().clone(), 403)),
            }
        }
        plan
    }

    fn time(&mut self, live: LiveProperty, sec: i64) {
        let at = SetTime::At(Time { sec, nsec: 0 });
        match live {
            LiveProperty::Win32LastAccess => self.set.atime = at,
            _ => self.set.mtime = at,
        }
    }

    /// Makes the changes.
    fn make(&self, dav: &Dav, fs: &dyn FileSystem, cx: Context<'_>, file: &Handle) -> Change<()> {
        let _one_at_a_time = dav.patching.lock().unwrap_or_else(PoisonError::into_inner);
        let before = Dead::read(fs, cx, file)?;
        let mut after = before.clone();
        self.dead.iter().for_each(|patch| after.apply(patch));
        let mut flush = Flush::NONE;
        if after != before {
            match after.write(fs, cx, file) {
                Ok(changed) => flush = changed.flush,
                // Windows sets its properties on every file: where they cannot be stored, it may
                // continue.
                Err(failed) if failed.status == Status::NotSupported && self.only_win32() => {}
                Err(failed) => return Err(failed),
            }
        }
        if self.set == SetAttr::default() {
            return Ok(Changed { value: (), wcc: Wcc::default(), flush });
        }
        match fs.setattr(cx, file, &self.set, None) {
            Ok(changed) => {
                flush.targets.extend(changed.flush.targets);
                Ok(Changed { value: (), wcc: changed.wcc, flush })
            }
            Err(failed) => {
                // All or nothing (§9.2). A failure to undo it is not reported separately.
                if after != before {
                    let _ = before.write(fs, cx, file);
                }
                Err(failed)
            }
        }
    }

    fn only_win32(&self) -> bool {
        self.dead.iter().all(|patch| *patch.name().ns == *WIN32)
    }
}

/// Answers PROPPATCH.
pub(super) async fn proppatch(job: &mut Job<'_, '_>) -> Outcome {
    let patches = Patch::parse(&job.body().await?);
    let patches = patches.or_else(|error| refuse(400, &error.to_string()))?;
    let path = job.path.to_bytes();
    let of = match job.dav.locks.is_empty() {
        true => Lineage::default(),
        false => lineage_of(job.core, &job.who, &job.path).await?,
    };
    job.permit(&[Touched { path: &path, of: &of, name: false, tree: false }]).await?;
    let Ok(node) = job.found().await?.node() else {
        return refuse(403, "the list of shares has no properties that can be set");
    };
    let mut plan = Plan::of(&patches);
    if plan.refused.is_empty() {
        let (dav, plan_made, file) = (Arc::clone(job.dav), Arc::new(plan), node.handle);
        let make = Arc::clone(&plan_made);
        let change = move |fs: &dyn FileSystem, cx: Context<'_>| make.make(&dav, fs, cx, &file);
        let code = match job.core.alter(&job.who, &node.reached, change).await {
            Ok(()) => return Ok(answer(&multi::href(&path, node.is_dir()), &patches, &[])),
            // These are of the properties, not of the file (§9.2.1).
            Err(Status::NoSpace | Status::Quota) => 507,
            Err(Status::NotSupported) => 403,
            Err(status) => return Err(status.into()),
        };
        let names = plan_made.dead.iter().map(|patch| (patch.name().clone(), code));
        plan = Plan { refused: names.collect(), ..Plan::default() };
    }
    Ok(answer(&multi::href(&path, node.is_dir()), &patches, &plan.refused))
}

/// The response: success, or the refused properties and those not set because of them (424).
fn answer(href: &str, patches: &[Patch], refused: &[(Name, u16)]) -> Response {
    let mut codes: Vec<(&Name, u16)> = Vec::new();
    for patch in patches {
        let name = patch.name();
        let why = refused.iter().find(|(other, _)| other == name).map(|(_, code)| *code);
        let code = why.unwrap_or(if refused.is_empty() { 200 } else { 424 });
        if !codes.iter().any(|(other, _)| *other == name) {
            codes.push((name, code));
        }
    }
    let mut out = multi::BEGIN.to_owned();
    let mut w = Writer::new(&mut out);
    w.raw("<D:response>").dav("href", href);
    for code in [200, 403, 409, 507, 424] {
        let mut names = codes.iter().filter(|(_, other)| *other == code).peekable();
        if names.peek().is_none() {
            continue;
        }
        w.raw("<D:propstat><D:prop>");
        for (name, _) in names {
            w.empty(name);
        }
        w.raw("</D:prop>");
        multi::write_status(&mut w, code);
        if code == 403 {
            w.raw("<D:error><D:cannot-modify-protected-property/></D:error>");
        }
        w.raw("</D:propstat>");
    }
    w.raw("</D:response>\n").raw(multi::END);
    Response::new(207).bytes(multi::XML, out.into_bytes())
}

//! Disks of a pool of ZFS: replace, add, remove, offline, online.

use super::super::{Keeper, disks, lock, wrong};
use super::kernel_name;
use crate::pool::{DISKS_MAX, Failure};
use crate::profile::Profile;
use crate::request::MemberStatus;
use crate::zfs::command::{CHANGE_TIME, Tools};
use crate::zfs::{Health, Role, layout};

/// The name of a member for a command. An output has no names that would be options.
fn vdev(member: &MemberStatus) -> Result<String, Failure> {
    let name = member.identity.vdev.as_str();
    if name.is_empty() || name.starts_with('-') {
        return wrong(format!("{name} is not a device that ZFS can be given"));
    }
    let path = std::path::Path::new("/dev").join(name);
    // zfs-fuse prints the last part of a path, and accepts only all of it.
    let is_short = !name.starts_with('/') && path.exists();
    Ok(if is_short { path.display().to_string() } else { name.to_owned() })
}

impl Keeper {
    /// The member that a request names, and all of them.
    fn member_zfs(
        &self,
        name: &str,
        member: &str,
    ) -> Result<(MemberStatus, Vec<MemberStatus>), Failure> {
        let status = self.look(name, &self.known(name)?);
        let found = disks::member(&status.members, member)?.clone();
        Ok((found, status.members))
    }

    pub(super) fn replace_zfs(
        &self,
        name: &str,
        member: &str,
        disk: &str,
    ) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        let tools = self.of_zfs(name)?;
        let (old, members) = self.member_zfs(name, member)?;
        if matches!(old.role, Role::Cache | Role::Spare) {
            let role = old.role.name();
            return wrong(format!("a {role} disk has no data: remove it, and add another"));
        }
        let title = old.identity.title();
        let old_name = vdev(&old)?;
        let path = match self.spare(&members, disk) {
            Some(spare) => vdev(&spare)?,
            None => {
                if self.is_itself(&old, disk) {
                    tools.zpool(&["online", name, &old_name], CHANGE_TIME)?;
                    return Ok(format!("The disk {title} is online again."));
                }
                let new = self.exclusive(disk)?;
                if new.size < old.member.size {
                    let (new_mib, old_mib) = (new.size >> 20, old.member.size >> 20);
                    return wrong(format!(
                        "{disk} has {new_mib} MiB, less than the {old_mib} MiB it is to replace"
                    ));
                }
                new.lasting_path().display().to_string()
            }
        };
        tools.zpool(&["replace", name, &old_name, &path], CHANGE_TIME)?;
        self.see_zfs(&tools, name)?;
        Ok(format!("The replacement of the disk {title} has begun."))
    }

    /// A spare of the pool that is not in use, by the name of a request.
    fn spare(&self, members: &[MemberStatus], disk: &str) -> Option<MemberStatus> {
        let found = disks::member(members, disk).ok()?;
        let is_free = found.role == Role::Spare && found.health == Some(Health::Available);
        // Numbers name members, not disks.
        let is_number = disk.bytes().all(|byte| byte.is_ascii_digit());
        (is_free && !is_number).then(|| found.clone())
    }

    /// Whether a disk is the one that it is to replace, which has come back.
    fn is_itself(&self, old: &MemberStatus, disk: &str) -> bool {
        let paths = self.paths(&[disk.to_owned()]).unwrap_or_default();
        let new = paths.first().and_then(|path| kernel_name(path));
        new.is_some() && new == kernel_name(&old.identity.vdev)
    }

    pub(super) fn add_zfs(
        &self,
        name: &str,
        disks: &[String],
        role: Role,
        mirror: bool,
    ) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        let tools = self.of_zfs(name)?;
        let known = self.known(name)?;
        let status = self.look(name, &known);
        if status.members.len() + disks.len() > DISKS_MAX {
            return wrong(format!("a pool has at most {DISKS_MAX} disks"));
        }
        if disks.is_empty() {
            return wrong("no disk is named");
        }
        let profile = known.profile.unwrap_or(Profile::Stripe);
        if role == Role::Data {
            fits(profile, &status.members, disks.len())?;
        }
        if mirror && (role != Role::Log || disks.len() < 2) {
            return wrong("only a log can be a mirror, of at least two disks");
        }
        let paths = self.all_exclusive(disks)?;
        let arguments = match role {
            Role::Data => layout::data(profile, &paths).map_err(Failure::Wrong)?,
            Role::Special => return wrong("metadata has no disks apart from the data"),
            _ => layout::others(role, mirror, &paths),
        };
        let mut all = vec!["add", name];
        all.extend(arguments.iter().map(String::as_str));
        tools.zpool(&all, CHANGE_TIME)?;
        self.see_zfs(&tools, name)?;
        let count = disks.len();
        Ok(format!("{count} {} disks are added to the pool {name}.", role.name()))
    }

    pub(super) fn remove_zfs(&self, name: &str, member: &str) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        let tools = self.of_zfs(name)?;
        let (old, members) = self.member_zfs(name, member)?;
        let (title, device) = (old.identity.title(), vdev(&old)?);
        let inner = old.group.rsplit('/').next().unwrap_or_default().to_owned();
        let legs = members.iter().filter(|one| one.role == old.role && one.group == old.group);
        let legs = legs.count();
        let copies = self.known(name)?.profile.map_or(2, Profile::copies);
        let is_spared = inner.starts_with("spare-") || inner.starts_with("replacing-");
        let verb = match (old.role, inner.as_str()) {
            _ if is_spared => "detach",
            (Role::Cache | Role::Spare, _) | (Role::Log, "") => "remove",
            (Role::Log, _) if legs > 2 => "detach",
            // A log with one leg less would be no mirror: all of it goes.
            (Role::Log, _) => return self.remove_group(&tools, name, &inner),
            (Role::Data, group) if group.starts_with("mirror-") && legs > copies => "detach",
            _ => return wrong("data would have fewer copies: replace the disk instead"),
        };
        tools.zpool(&[verb, name, &device], CHANGE_TIME)?;
        self.see_zfs(&tools, name)?;
        Ok(format!("The disk {title} is removed from the pool."))
    }

    fn remove_group(&self, tools: &Tools, name: &str, group: &str) -> Result<String, Failure> {
        tools.zpool(&["remove", name, group], CHANGE_TIME)?;
        self.see_zfs(tools, name)?;
        Ok(format!("The log {group} is removed from the pool."))
    }

    pub(super) fn set_online_zfs(
        &self,
        name: &str,
        member: &str,
        online: bool,
    ) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        let tools = self.of_zfs(name)?;
        let (found, _) = self.member_zfs(name, member)?;
        let verb = if online { "online" } else { "offline" };
        tools.zpool(&[verb, name, &vdev(&found)?], CHANGE_TIME)?;
        Ok(format!("The disk {} is {verb}.", found.identity.title()))
    }

    /// Takes disks online that were missing and are back. Those that the administrator took
    /// offline stay so.
    pub(in super::super) fn rejoin_zfs(&self, name: &str) {
        let Ok(tools) = self.of_zfs(name) else { return };
        let Ok(Some(pool)) = tools.status(name) else { return };
        let lost = pool.leaves.iter().filter(|leaf| {
            let is_lost = matches!(leaf.health, Health::Removed | Health::Unavailable);
            is_lost && kernel_name(leaf.was.as_deref().unwrap_or(&leaf.name)).is_some()
        });
        for leaf in lost {
            match tools.zpool(&["online", name, &leaf.name], CHANGE_TIME) {
                Ok(_) => base::info!("host", "the disk {} of the pool {name} is back", leaf.name),
                Err(e) => base::warning!("host", "{e}"),
            }
        }
    }
}

/// Whether data disks in this number can be added: a further group must be as safe as the others.
fn fits(profile: Profile, members: &[MemberStatus], count: usize) -> Result<(), Failure> {
    let group = layout::group(profile, count).map_err(Failure::Wrong)?;
    let first = members.iter().find(|one| one.role == Role::Data);
    let first = first.map(|one| one.group.split('/').next().unwrap_or_default().to_owned());
    let width = members
        .iter()
        .filter(|one| one.role == Role::Data && one.group.split('/').next() == first.as_deref())
        .count();
    if profile.parity() > 0 && group != width {
        return wrong(format!("groups of this pool have {width} disks: add as many"));
    }
    Ok(())
}

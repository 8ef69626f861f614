//! Something takes the place of what is at a destination: that is set aside, and removed when the
//! new one is there as a whole. If anything fails, it is put back.

use vfs::attr::Wcc;
use vfs::fs::{Change, Changed, Context, FileSystem};

use super::multi::Failures;
use super::{Job, tree};
use crate::response::Response;
use files::caller::Reached;
use files::set_aside::SetAside;
use files::{Spot, VPath};

/// A name in a directory.
type NameInDirectory<'a> = (&'a vfs::handle::Handle, &'a [u8]);

/// Renames two things one after the other, so that the second gets the first one's name. If it
/// cannot, the first has its name again.
fn rename_both(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    (first, aside): (NameInDirectory<'_>, NameInDirectory<'_>),
    (second, to): (NameInDirectory<'_>, NameInDirectory<'_>),
) -> Change<()> {
    let mut flush = fs.rename(cx, first, aside)?.flush;
    match fs.rename(cx, second, to) {
        Ok(renamed) => {
            for target in renamed.flush.targets {
                if flush.targets.iter().all(|other| other.key() != target.key()) {
                    flush.targets.push(target);
                }
            }
            Ok(Changed { value: (), wcc: Wcc::default(), flush })
        }
        Err(failed) => {
            // If not even that can be, it is where listings show it.
            let _ = fs.rename(cx, aside, first);
            Err(failed)
        }
    }
}

/// Both renames as one operation: the request may be dropped between two of them.
async fn exchange(
    job: &Job<'_, '_>,
    reached: &Reached,
    (first, aside): (&Spot, &Spot),
    (second, to): (&Spot, &Spot),
) -> vfs::fs::Result<()> {
    let place = |spot: &Spot| (spot.dir, spot.name.clone());
    let (first, aside, second, to) = (place(first), place(aside), place(second), place(to));
    let both = move |fs: &dyn FileSystem, cx: Context<'_>| {
        rename_both(
            fs,
            cx,
            ((&first.0, &first.1), (&aside.0, &aside.1)),
            ((&second.0, &second.1), (&to.0, &to.1)),
        )
    };
    job.core.alter(&job.who, reached, both).await
}

/// Puts what is at `new` where `old` is, which is removed then. Gives what of the old one could not
/// be removed: then both are where they were, as far as they still are.
///
/// # Errors
/// As of RENAME; nothing has changed then.
pub(super) async fn replace(
    job: &Job<'_, '_>,
    new: &Spot,
    (old, path): (&Spot, &VPath),
) -> vfs::fs::Result<Result<Failures, Response>> {
    let hidden = SetAside::new();
    let aside = Spot { name: hidden.name.clone(), ..old.clone() };
    exchange(job, &old.reached, (old, &aside), (new, old)).await?;
    let removed = tree::remove(job, &aside, path).await;
    if !matches!(&removed, Ok(failures) if failures.is_empty()) {
        exchange(job, &old.reached, (old, new), (&aside, old)).await?;
    }
    Ok(removed)
}

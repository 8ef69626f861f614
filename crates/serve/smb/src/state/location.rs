//! Where a file was found.

use vfs::locks::FileKey;
pub(crate) use vfs::locks::Location;

use files::Spot;
use files::walk::Link;

/// Where a path has led, or would have led; the directory's key is looked up afterwards.
pub(crate) fn of(spot: &Spot) -> Location {
    let dir_key = FileKey { fsid: 0, fileid: 0, generation: 0 };
    match &spot.link {
        Some(Link { dir, name, attr }) => {
            Location { dir: *dir, dir_key, name: name.clone(), link: Some(Box::new(*attr)) }
        }
        None => Location { dir: spot.dir, dir_key, name: spot.name.clone(), link: None },
    }
}

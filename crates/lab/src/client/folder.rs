//! What a folder of a run's own takes of a protocol.

use super::ClientError;

/// What a folder takes of a protocol. Handles are the protocol's own.
pub(super) trait Folder {
    /// The target itself.
    fn root(&self) -> Vec<u8>;
    /// Makes a folder, which must not be there.
    fn make(&mut self, dir: &[u8], name: &str) -> Result<(), ClientError>;
    /// What has this name.
    fn find(&mut self, dir: &[u8], name: &str) -> Result<Option<Vec<u8>>, ClientError>;
    /// Some of the names in a folder, without `.` and `..`; none if there are none.
    fn names(&mut self, dir: &[u8]) -> Result<Vec<String>, ClientError>;
    /// Removes a file, or an empty folder. One that is not there is no error.
    fn remove(&mut self, dir: &[u8], name: &str, folder: bool) -> Result<(), ClientError>;
}

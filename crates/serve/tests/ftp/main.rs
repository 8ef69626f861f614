//! FTP through the real codec: a service in this process, and a client that says what it is told.

mod client;
mod hostile;
mod listings;
#[path = "../files/scene.rs"]
mod scene;
mod sent;
mod sessions;
mod slow;
mod tls;
mod told;
mod transfers;

//! What people transfer files with, each put through the same tasks against the real server: up,
//! down, resume, rename, delete, a directory of 50 000, odd names, nothing, 10 GiB. What a program
//! has no command for is "no"; the table in `docs/protocols/clients.md` must say the same.

#[path = "file_clients/ftp.rs"]
mod ftp;
#[path = "file_clients/http.rs"]
mod http;
#[path = "file_clients/scene.rs"]
mod scene;
#[path = "file_clients/several.rs"]
mod several;
#[path = "file_clients/smb.rs"]
mod smb;
#[path = "file_clients/ssh.rs"]
mod ssh;
#[path = "file_clients/tasks.rs"]
mod tasks;

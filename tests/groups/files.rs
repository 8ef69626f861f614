//! FTP, SFTP, HTTP and WebDAV with the clients of today; units with QEMU's tools.

#[path = "../accounting.rs"]
mod accounting;
#[path = "../file_clients.rs"]
mod file_clients;
#[path = "../file_services.rs"]
mod file_services;
#[path = "../ftp_clients.rs"]
mod ftp_clients;
#[path = "../interleaved.rs"]
mod interleaved;
#[path = "../iscsi_tools.rs"]
mod iscsi_tools;
#[path = "../lock_protocols.rs"]
mod lock_protocols;
#[path = "../lock_table.rs"]
mod lock_table;
#[path = "../secure_protocols.rs"]
mod secure_protocols;
#[path = "../sftp_subsystem.rs"]
mod sftp_subsystem;
#[path = "../smb_answers.rs"]
mod smb_answers;
#[path = "../smb_clients.rs"]
mod smb_clients;
#[path = "../smb_clones.rs"]
mod smb_clones;
#[path = "../smb_notify.rs"]
mod smb_notify;
#[path = "../smb_safety.rs"]
mod smb_safety;
#[path = "../smb_torture.rs"]
mod smb_torture;
#[path = "../stopped_holder.rs"]
mod stopped_holder;
#[path = "../transfer_log.rs"]
mod transfer_log;
#[path = "../webdav.rs"]
mod webdav;

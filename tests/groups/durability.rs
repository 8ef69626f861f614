//! What was acknowledged survives a crash, and a failure is reported to the clients it concerns.

#[path = "../crash.rs"]
mod crash;
#[path = "../crash_configuration.rs"]
mod crash_configuration;
#[path = "../crash_files.rs"]
mod crash_files;
#[path = "../crash_lun.rs"]
mod crash_lun;
#[path = "../crash_smb.rs"]
mod crash_smb;
#[path = "../crash_v4.rs"]
mod crash_v4;
#[path = "../faults.rs"]
mod faults;
#[path = "../leaks.rs"]
mod leaks;
#[path = "../lun_faults.rs"]
mod lun_faults;
#[path = "../lun_space.rs"]
mod lun_space;

//! Administration: command line, API, browser, certificates, alerts, services, package.

#[path = "../acme.rs"]
mod acme;
#[path = "../alerts.rs"]
mod alerts;
#[path = "../browser.rs"]
mod browser;
#[path = "../command_line.rs"]
mod command_line;
#[path = "../echo.rs"]
mod echo;
#[path = "../fabric_server.rs"]
mod fabric_server;
#[path = "../hardware.rs"]
mod hardware;
#[path = "../idle.rs"]
mod idle;
#[path = "../linked.rs"]
mod linked;
#[path = "../local_users.rs"]
mod local_users;
#[path = "../luns.rs"]
mod luns;
#[path = "../memory_limit.rs"]
mod memory_limit;
#[path = "../network.rs"]
mod network;
#[path = "../network_browser.rs"]
mod network_browser;
#[path = "../old_state.rs"]
mod old_state;
#[path = "../openapi.rs"]
mod openapi;
#[path = "../package.rs"]
mod package;
#[path = "../pool_configuration.rs"]
mod pool_configuration;
#[path = "../pool_howto.rs"]
mod pool_howto;
#[path = "../pool_mount.rs"]
mod pool_mount;
#[path = "../pool_page.rs"]
mod pool_page;
#[path = "../pool_previous.rs"]
mod pool_previous;
#[path = "../pool_refusals.rs"]
mod pool_refusals;
#[path = "../pool_restart.rs"]
mod pool_restart;
#[path = "../pool_rollback.rs"]
mod pool_rollback;
#[path = "../pool_rollback_smb.rs"]
mod pool_rollback_smb;
#[path = "../pool_snapdir.rs"]
mod pool_snapdir;
#[path = "../pool_snapshots.rs"]
mod pool_snapshots;
#[path = "../pool_without.rs"]
mod pool_without;
#[path = "../pool_zfs.rs"]
mod pool_zfs;
#[path = "../pools.rs"]
mod pools;
#[path = "../pools_space.rs"]
mod pools_space;
#[path = "../reach.rs"]
mod reach;
#[path = "../secrets.rs"]
mod secrets;
#[path = "../services.rs"]
mod services;
#[path = "../shares_live.rs"]
mod shares_live;
#[path = "../story.rs"]
mod story;

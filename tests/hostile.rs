//! What hostile or very many peers can do to the services that transfer files: thousands that do
//! nothing stop no other client, guessing passwords is slow, and no path leads out of a share.

#[path = "hostile/crowds.rs"]
mod crowds;
#[path = "hostile/depth.rs"]
mod depth;
#[path = "hostile/floods.rs"]
mod floods;
#[path = "hostile/guesses.rs"]
mod guesses;
#[path = "hostile/idle.rs"]
mod idle;
#[path = "hostile/leases.rs"]
mod leases;
#[path = "limits_together/mod.rs"]
mod limits_together;
#[path = "hostile/locks.rs"]
mod locks;
#[path = "hostile/memory.rs"]
mod memory;
#[path = "hostile/paths.rs"]
mod paths;
#[path = "hostile/reconnects.rs"]
mod reconnects;
#[path = "hostile/smb.rs"]
mod smb;
#[path = "hostile/strangers.rs"]
mod strangers;

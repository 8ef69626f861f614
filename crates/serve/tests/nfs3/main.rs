//! The NFSv3 service over loopback, with the real codec against file systems in memory and on disk.

mod budgets;
mod client;
mod hostile;
mod pipeline;
mod procedures;
mod replay;
mod scripted;
mod server;

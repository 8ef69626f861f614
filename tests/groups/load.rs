//! The laboratory: planted limits, sweeps, the emulated link.

#[path = "../bridge.rs"]
mod bridge;
#[path = "../cold_reads.rs"]
mod cold_reads;
#[path = "../lab_agents.rs"]
mod lab_agents;
#[path = "../lab_archives.rs"]
mod lab_archives;
#[path = "../lab_columns.rs"]
mod lab_columns;
#[path = "../lab_filebench.rs"]
mod lab_filebench;
#[path = "../lab_iozone.rs"]
mod lab_iozone;
#[path = "../lab_iozone_long.rs"]
mod lab_iozone_long;
#[path = "../lab_loads.rs"]
mod lab_loads;
#[path = "../lab_net.rs"]
mod lab_net;
#[path = "../lab_net_long.rs"]
mod lab_net_long;
#[path = "../lab_open.rs"]
mod lab_open;
#[path = "../lab_programs.rs"]
mod lab_programs;
#[path = "../lab_prove.rs"]
mod lab_prove;
#[path = "../lab_runs.rs"]
mod lab_runs;
#[path = "../lab_suites.rs"]
mod lab_suites;
#[path = "../lab_suites_disk.rs"]
mod lab_suites_disk;
#[path = "../latency.rs"]
mod latency;
#[path = "../observed.rs"]
mod observed;
#[path = "../planted_clients.rs"]
mod planted_clients;
#[path = "../planted_limits.rs"]
mod planted_limits;
#[path = "../planted_observed.rs"]
mod planted_observed;
#[path = "../slurm.rs"]
mod slurm;
#[path = "../smb_lab.rs"]
mod smb_lab;
#[path = "../sweep.rs"]
mod sweep;
#[path = "../tcp_loss.rs"]
mod tcp_loss;
#[path = "../tcp_segments.rs"]
mod tcp_segments;

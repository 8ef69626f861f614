//! The hardware of this machine, as its kernel and firmware show it, and its health.
//!
//! Readers go through [`host::Root`], so that captured machines are tests. What is missing is
//! absent with its reason, never an error; every read and every list is bounded.
//!
//! - [`chassis`]: system, board, chassis, processors, memory. [`smbios`]: the table of the
//!   firmware. [`edac`]: errors of memory.
//! - [`pci`]: functions and slots. [`hca`]: InfiniBand adapters in them.
//! - [`disk`]: disks with their bays. [`smart`]: their health. [`schedule`]: when it is queried.
//! - [`sensors`]: temperatures and fans.
//! - [`watch`]: what is remembered from one look to the next. [`faults`]: what is wrong.

pub mod chassis;
pub mod disk;
pub mod edac;
mod enclosure;
pub mod faults;
pub mod files;
pub mod hca;
pub mod pci;
pub mod schedule;
pub mod sensors;
pub mod smart;
pub mod smbios;
pub mod watch;

use host::Root;
use serde::{Deserialize, Serialize};

use chassis::{Chassis, Cpu, Module};
use disk::Disk;
use edac::Controller;
use files::Absence;
use hca::Hca;
use pci::{Function, Slot};
use sensors::Sensor;

/// What a machine is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hardware {
    /// System, board, chassis.
    pub chassis: Chassis,
    /// Processors in their sockets.
    pub cpus: Vec<Cpu>,
    /// Memory modules in their places.
    pub memory: Vec<Module>,
    /// Controllers of memory.
    pub controllers: Vec<Controller>,
    /// Slots and cards.
    pub slots: Vec<Slot>,
    /// PCI functions, those of processor and chipset too.
    pub functions: Vec<Function>,
    /// InfiniBand adapters and RDMA devices.
    pub hcas: Vec<Hca>,
    /// Disks.
    pub disks: Vec<Disk>,
    /// Temperatures, fans, voltages, power.
    pub sensors: Vec<Sensor>,
    /// What is not shown, and why.
    pub lacks: Vec<Absence>,
}

impl Hardware {
    /// Reads all of it. No disk is touched.
    pub fn read(root: &Root) -> Self {
        let mut lacks = Vec::new();
        let table = chassis::table(root, &mut lacks);
        let controllers = edac::read(root);
        let (functions, hcas) = (pci::functions(root), hca::read(root));
        let sensors = sensors::read(root);
        lacks.extend(chassis::lacks_of(&controllers));
        let none = |subject: &str, empty: bool| {
            empty.then(|| Absence::new(subject, files::Reason::NotOffered))
        };
        lacks.extend(none("PCI functions", functions.is_empty()));
        lacks.extend(none("InfiniBand adapters", hcas.is_empty()));
        lacks.extend(none("sensors", sensors.is_empty()));
        Self {
            chassis: chassis::read(root, &table),
            cpus: chassis::cpus(root, &table),
            memory: chassis::memory(&table, &controllers),
            slots: pci::slots(&functions, &table.slots, &hcas),
            disks: disk::read(root),
            controllers,
            functions,
            hcas,
            sensors,
            lacks,
        }
    }
}

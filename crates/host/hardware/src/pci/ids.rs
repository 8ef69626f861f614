//! Names of PCI classes, vendors and devices, where the machine has them (`pci.ids`).

use std::collections::HashMap;

use host::Root;

use super::Function;
use crate::files::clean;

const FILES: [&str; 3] =
    ["usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids", "usr/share/pci.ids"];

/// Names of what the machine has.
#[derive(Debug, Default)]
pub(super) struct Names {
    vendors: HashMap<u16, Option<String>>,
    devices: HashMap<(u16, u16), Option<String>>,
    classes: HashMap<u16, Option<String>>,
}

impl Names {
    /// Reads those of these functions.
    pub(super) fn of(root: &Root, functions: &[Function]) -> Self {
        let mut names = Self::default();
        for function in functions {
            names.vendors.insert(function.vendor, None);
            names.devices.insert((function.vendor, function.device), None);
            names.classes.insert(class_of(function), None);
        }
        let file = FILES.iter().find_map(|file| root.read(file).ok());
        if let Some(text) = file.filter(|_| !functions.is_empty()) {
            names.read(&text);
        }
        names
    }

    /// Lines of vendors and classes begin in the first column, those of devices after one tab,
    /// those of subsystems after two.
    fn read(&mut self, text: &str) {
        let (mut vendor, mut class) = (None, None);
        for line in text.lines() {
            if let Some(entry) = line.strip_prefix("C ") {
                vendor = None;
                class = number(entry, 2).map(|(number, _)| number);
            } else if let Some(entry) = line.strip_prefix('\t') {
                if entry.starts_with('\t') {
                    continue;
                }
                if let Some((vendor, (device, name))) = vendor.zip(number(entry, 4)) {
                    enter(&mut self.devices, (vendor, device), name);
                } else if let Some((class, (subclass, name))) = class.zip(number(entry, 2)) {
                    enter(&mut self.classes, class << 8 | subclass, name);
                }
            } else if let Some((number, name)) = number(line, 4) {
                (vendor, class) = (Some(number), None);
                enter(&mut self.vendors, number, name);
            }
        }
    }

    /// Enters the names into the functions.
    pub(super) fn enter(&self, functions: &mut [Function]) {
        for function in functions {
            let ids = (function.vendor, function.device);
            function.vendor_name = self.vendors.get(&function.vendor).cloned().flatten();
            function.device_name = self.devices.get(&ids).cloned().flatten();
            function.class_name = self.classes.get(&class_of(function)).cloned().flatten();
        }
    }
}

/// Class and subclass.
fn class_of(function: &Function) -> u16 {
    (function.class >> 8) as u16
}

fn enter<K: std::hash::Hash + Eq>(names: &mut HashMap<K, Option<String>>, key: K, name: &str) {
    if let Some(entry) = names.get_mut(&key) {
        *entry = clean(name.as_bytes());
    }
}

/// A number of this many hexadecimal digits, and what follows it.
fn number(line: &str, digits: usize) -> Option<(u16, &str)> {
    let (number, name) = line.split_at_checked(digits)?;
    let number = u16::from_str_radix(number, 16).ok()?;
    Some((number, name.strip_prefix("  ")?.trim()))
}

//! Files of logical units (`docs/formats/luns.md`, `docs/formats/reservations.md`). The secret of
//! initiators is described, never shown.

use serde_json::{Value, json};
use service::luns::table::Record;
use vfs::journal;
use vfs::lun::reservations::store;

use super::Inspected;

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The table of units, and their persistent reservations.
pub(super) fn recognise(bytes: &[u8]) -> Option<Inspected> {
    let value = if bytes.starts_with(&service::luns::MAGIC) {
        let records = journal::read(bytes, service::luns::MAGIC).ok()?;
        let unit = |(guid, record): (&Vec<u8>, &Vec<u8>)| {
            let Some(record) = Record::decode(record) else {
                // A version before had the name as key.
                return json!({
                    "name": String::from_utf8_lossy(guid),
                    "identifier": hexadecimal(record.get(..16).unwrap_or_default()),
                });
            };
            json!({
                "name": record.name,
                "identifier": hexadecimal(guid),
                "number": record.number,
                "block": record.block,
                "file": record.path.display().to_string(),
                "stage": format!("{:?}", record.stage),
            })
        };
        let units: Vec<Value> = records.iter().map(unit).collect();
        json!({ "format": "table of logical units", "units": units })
    } else if bytes.starts_with(&store::MAGIC) {
        let records = journal::read(bytes, store::MAGIC).ok()?;
        let unit = |(guid, record): (&Vec<u8>, &Vec<u8>)| {
            let state = store::decode(record).unwrap_or_default();
            let registered: Vec<Value> =
                state.registrations().map(|(port, key)| json!([port.name, key])).collect();
            let held =
                state.holding().map(|held| format!("{:?} by {}", held.kind, held.holder.name));
            json!({
                "identifier": hexadecimal(guid),
                "generation": state.generation(),
                "registered": registered,
                "reservation": held,
            })
        };
        let units: Vec<Value> = records.iter().map(unit).collect();
        json!({ "format": "persistent reservations", "units": units })
    } else {
        return None;
    };
    Some(Inspected::from(value))
}

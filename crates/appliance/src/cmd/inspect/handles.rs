//! The durable table of handles (`docs/formats/handles.md`).

use serde_json::{Value, json};
use vfs::host::handle_table::{self, Content};

use super::Inspected;

/// First bytes of a redb database.
const REDB: &[u8; 4] = b"redb";

/// What `handles-TAG-FORM.redb` holds; the form is in its name, a copy keeps it.
pub(super) fn recognise(name: &str, bytes: &[u8]) -> Option<Inspected> {
    if !bytes.starts_with(REDB) {
        return None;
    }
    let kernel = name.contains("-kernel");
    if !kernel && !name.contains("-table") {
        return None;
    }
    let found = match handle_table::read(bytes, kernel) {
        Ok(content) => found(kernel, &content),
        // The format is recognised, so the error is shown.
        Err(e) => Inspected::from(json!({
            "format": "table of handles",
            "damaged": e.to_string(),
            "hint": "a server may be writing to it: try again",
        })),
    };
    Some(found)
}

fn found(kernel: bool, content: &Content) -> Inspected {
    let form = if kernel { "kernel" } else { "table" };
    let dirs = content.dirs.iter().map(|d| {
        json!({
            "inode": d.ino,
            "birth": d.birth,
            "parent": d.parent,
            "hint": d.hint,
            "name": d.name,
        })
    });
    let moved = content
        .moved
        .iter()
        .map(|m| json!({ "file": m.file, "hint": m.hint, "parents": m.parents }));
    let mut text = format!(
        "table of handles, form {form}: {} directories, {} files moved or linked\n",
        content.dirs.len(),
        content.moved.len()
    );
    for d in &content.dirs {
        text += &format!("  directory {} {:?} in {}", d.ino, d.name, d.parent);
        text += &if d.hint == d.parent { "\n".into() } else { format!(", first in {}\n", d.hint) };
    }
    for m in &content.moved {
        text += &format!("  {} first in {}, then in {}\n", m.file, m.hint, m.parents.join(", "));
    }
    if content.unknown > 0 {
        text += &format!("  {} rows that this version cannot read\n", content.unknown);
    }
    let value = json!({
        "format": "table of handles",
        "form": form,
        "dirs": dirs.collect::<Vec<Value>>(),
        "moved": moved.collect::<Vec<Value>>(),
        "unknown": content.unknown,
    });
    Inspected { value, text }
}

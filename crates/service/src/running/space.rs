//! File systems of shares that are nearly full: one problem for each, however many shares it has.

use base::units;
use control::appliance::ShareStatus;

/// Free space below this part of a file system is a problem.
const SPACE_LOW: f64 = 0.05;

/// A sentence for each file system with little space, by its first share. `fsid` identifies the
/// file system of a share by the share's name.
pub fn problems(shares: &[ShareStatus], fsid: impl Fn(&str) -> Option<u64>) -> Vec<String> {
    let mut found: Vec<(Option<u64>, &ShareStatus, usize)> = Vec::new();
    for share in shares.iter().filter(|share| is_low(share)) {
        let id = fsid(&share.name);
        match found.iter_mut().find(|(other, ..)| id.is_some() && *other == id) {
            Some((.., more)) => *more += 1,
            None => found.push((id, share, 0)),
        }
    }
    found.iter().map(|(_, share, more)| sentence(share, *more)).collect()
}

fn is_low(share: &ShareStatus) -> bool {
    let (left, of) = (share.available_bytes as f64, share.total_bytes as f64);
    of > 0.0 && left / of < SPACE_LOW
}

fn sentence(share: &ShareStatus, more: usize) -> String {
    let left = units::bytes(share.available_bytes as f64);
    let others = match more {
        0 => String::new(),
        1 => " and 1 more share".to_owned(),
        n => format!(" and {n} more shares"),
    };
    format!("the file system of {}{others} has {left} left", share.name)
}

#[cfg(test)]
mod tests;

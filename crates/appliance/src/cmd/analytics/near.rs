//! Names that are near to a mistyped one.

/// At most three of `known`, nearest first, that a slip of the finger may have meant.
pub fn to(wanted: &str, known: &[String]) -> Vec<String> {
    let most = 2 + wanted.chars().count() / 4;
    let mut near: Vec<(usize, &String)> = known
        .iter()
        .map(|name| (distance(wanted, name), name))
        .filter(|(distance, _)| *distance <= most)
        .collect();
    near.sort();
    near.into_iter().take(3).map(|(_, name)| name.clone()).collect()
}

/// Levenshtein's distance: insertions, deletions and replacements.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

//! The target of the test service: a sign-in, and lines behind it.

use crate::echo::{SignIn, cut, text};

/// A connection's bytes: lines are cut the same with more behind them, and a sign-in means the same
/// once more.
pub fn echo(data: &[u8]) -> bool {
    let (mut rest, mut lines) = (data, 0);
    while let Ok(Some(line)) = cut(rest) {
        assert!(!line.is_empty() && line.len() <= rest.len());
        assert_eq!(cut(line), Ok(Some(line)));
        if lines == 0 {
            let Ok(first) = SignIn::decode(text(line)) else { return false };
            let mut sent = Vec::new();
            first.encode(&mut sent);
            assert_eq!(SignIn::decode(text(&sent)), Ok(first));
        }
        rest = rest.get(line.len()..).unwrap_or_default();
        lines += 1;
    }
    lines > 0 && rest.is_empty()
}

//! Bodies.

use super::*;

#[tokio::test]
async fn a_body_is_read_in_parts_and_bounded() {
    let mut source: &[u8] = b"0123456789";
    let mut body = Body::new(&mut source, Some(10));
    let mut part = Vec::new();
    assert!(!body.fill(&mut part, 4).await.unwrap());
    assert_eq!(part, b"0123");
    assert_eq!(body.read_all(10).await.unwrap(), b"456789");
    let mut source: &[u8] = b"0123456789";
    assert!(matches!(Body::new(&mut source, None).read_all(9).await, Err(BodyError::TooLong)));
}

//! What a result comes to.

use super::settle;
use crate::net::record::EndRecord;
use crate::net::record::tests::net_result;

#[test]
fn a_lost_agent_degrades_the_run_and_explains_what_failed() {
    let faults = || vec!["transaction 2: near end: flowop write: it is closed".to_owned()];
    let mut result = net_result();
    settle(faults(), &mut result);
    let failed = result.failed.as_deref().expect("failed");
    assert!(failed.ends_with("it is closed; why") && result.degraded.is_empty(), "{failed}");
    let lost = |lost: Option<&str>| EndRecord {
        name: "h".into(),
        agent: "127.0.0.1:1".into(),
        pid: 1,
        machine: serde_json::Value::Null,
        lost: lost.map(str::to_owned),
    };
    let mut result = net_result();
    result.ends = vec![lost(None), lost(Some("its connection ended"))];
    settle(faults(), &mut result);
    assert_eq!((result.failed, result.degraded.len()), (None, 2));
}

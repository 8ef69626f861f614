//! What a replay cache keeps of a reply.

use super::*;

fn reply(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut Writer::new(&mut bytes));
    bytes
}

#[test]
fn only_results_of_a_successful_reply_are_kept() {
    let success = reply(|w| {
        rpc::success(w, 0x0102_0304);
        w.raw(b"results!");
    });
    assert_eq!(results(&success), Some(&b"results!"[..]));
    let empty = reply(|w| rpc::success(w, 7));
    assert_eq!(results(&empty), Some(&b""[..]));
    for refusal in [
        reply(|w| rpc::system_err(w, 7)),
        reply(|w| rpc::garbage_args(w, 7)),
        reply(|w| rpc::prog_unavail(w, 7)),
        reply(|w| rpc::auth_error(w, 7, AuthStat::BADCRED)),
        empty[..20].to_vec(),
        Vec::new(),
    ] {
        assert_eq!(results(&refusal), None, "{refusal:?}");
    }
}

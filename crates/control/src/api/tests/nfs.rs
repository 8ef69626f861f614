//! NFS clients through the router: structure, unknown ids, the permission for expiring one.

use super::appliance::CLIENT;
use super::*;

const PATH: &str = "/api/v1/services/nfs";

#[tokio::test]
async fn clients_opens_and_locks_are_listed() {
    let server = Server::new();
    let clients = value(server.get(&format!("{PATH}/clients")).await).await;
    assert_eq!(clients["more"], json!(true));
    assert_eq!(clients["rows"][0]["id"], CLIENT);
    assert_eq!(clients["rows"][0]["addresses"], json!(["10.0.0.7"]));
    let opens = value(server.get(&format!("{PATH}/opens")).await).await;
    assert_eq!(opens["rows"][0]["file"], "/export/tank/a");
    assert_eq!(opens["rows"][0]["share"], "tank");
    let locks = value(server.get(&format!("{PATH}/locks?client={CLIENT}")).await).await;
    assert_eq!(locks["rows"][0]["file"], "inode 12");
    assert_eq!(locks["rows"][0]["length"], Value::Null);
}

#[tokio::test]
async fn an_unknown_client_is_reported() {
    let server = Server::new();
    for what in ["opens", "locks"] {
        let answer = server.get(&format!("{PATH}/{what}?client=nfs4-77")).await;
        let (status, failed) = refusal(answer).await;
        assert_eq!(
            (status, &*failed),
            (StatusCode::NOT_FOUND, "this client does not exist"),
            "{what}"
        );
    }
    let request = Request::delete(format!("{PATH}/clients/nfs4-77"))
        .header(AUTHORIZATION, format!("Bearer {TOKEN}"));
    assert_eq!(refusal(server.send(request, "").await).await.0, StatusCode::NOT_FOUND);
    assert_eq!(server.fake.expired(), None);
}

#[tokio::test]
async fn ending_a_client_requires_sign_in_on_the_servers_page() {
    let server = Server::new();
    let delete = || Request::delete(format!("{PATH}/clients/{CLIENT}"));
    let token = format!("Bearer {TOKEN}");
    assert_eq!(server.send(delete(), "").await.status(), StatusCode::UNAUTHORIZED);
    let foreign = delete().header(AUTHORIZATION, &token).header("sec-fetch-site", "cross-site");
    assert_eq!(server.send(foreign, "").await.status(), StatusCode::FORBIDDEN);
    assert_eq!(server.fake.expired(), None);
    let ended = server.send(delete().header(AUTHORIZATION, &token), "").await;
    assert_eq!(ended.status(), StatusCode::OK);
    assert_eq!(value(ended).await["name"], "Linux NFSv4.2 anna");
    assert_eq!(server.fake.expired(), Some(format!("api-token: {CLIENT}")));
    let last = server.last_recorded();
    assert_eq!((&*last.who, &*last.action, last.after), ("api-token", "expire", json!(CLIENT)));
    for path in ["clients", "opens", "locks"] {
        let request = Request::get(format!("{PATH}/{path}"));
        assert_eq!(server.send(request, "").await.status(), StatusCode::UNAUTHORIZED, "{path}");
    }
}

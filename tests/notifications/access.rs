//! Access to an approver's notifications, and what ends them.

use countersign::store::identity::credential::RoleName;
use reqwest::Method;
use serde_json::json;

use super::receiver::Browser;
use super::{NotificationScene, PATH};

#[tokio::test(flavor = "multi_thread")]
async fn the_approver_itself_and_administrators_decide_where() {
    let scene = NotificationScene::new(1).await;
    let cluster = &scene.cluster;
    let (id, _) = scene.add_webhook("/hook").await;
    let any = cluster.key(&cluster.tenant, RoleName::Approver, None).await;
    let any = cluster.client(Some(&any));
    let bob = cluster.approver("bob").await.client;
    let bot = &scene.bot.client;
    let (one, test) = (format!("{PATH}/{id}"), format!("{PATH}/{id}/test"));
    for other in [&any, &bob, bot] {
        other
            .post(PATH, &scene.webhook("/other"))
            .await
            .refused(403, "FORBIDDEN");
        other.delete(&one).await.refused(403, "FORBIDDEN");
        other
            .call(Method::POST, &test)
            .send()
            .await
            .refused(403, "FORBIDDEN");
    }
    for other in [&bob, bot] {
        other.get(PATH).await.refused(403, "FORBIDDEN");
    }
    any.get(PATH).await.expect(200);
    cluster.client(None).get(PATH).await.expect(401);

    // Another tenant has an alice of its own.
    let tenant = cluster.administration.create_tenant("other").await.unwrap();
    for role in [RoleName::Approver, RoleName::Admin] {
        let bound = (role == RoleName::Approver).then_some("alice");
        let there = cluster.client(Some(&cluster.key(&tenant, role, bound).await));
        assert_eq!(
            there.get(PATH).await.expect(200).json()["notifications"],
            json!([])
        );
        there.delete(&one).await.refused(404, "NOT_FOUND");
        there
            .call(Method::POST, &test)
            .send()
            .await
            .refused(404, "NOT_FOUND");
    }

    let listed = scene.admin.get(PATH).await.expect(200).json();
    assert_eq!(listed["notifications"][0]["notificationId"], json!(id));
    scene
        .admin
        .post(PATH, &scene.webhook("/by-admin"))
        .await
        .expect(201);
    scene
        .admin
        .call(Method::POST, &test)
        .send()
        .await
        .expect(200);
    scene.admin.delete(&one).await.expect(204);
    scene.admin.delete(&one).await.expect(404);
    let audit = scene.audit().await;
    assert!(
        audit.contains(&format!("notification.removed alice/{id} webhook admin:")),
        "{audit}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_goes_with_its_device_and_everything_with_the_tenant() {
    let scene = NotificationScene::new(1).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(client, "phone").await;
    let laptop = owner.another(client, &phone, "laptop").await;
    let tablet = owner.another(client, &phone, "tablet").await;
    scene.add_webhook("/hook").await;
    for device in [&phone, &laptop, &tablet] {
        let push = scene.push(device, &Browser::new(1), &format!("/{}", device.id()));
        scene.post(&push).await.expect(201);
    }
    let rows = async || {
        scene
            .cluster
            .database
            .number("select count(*) from notifications")
            .await
    };
    assert_eq!(rows().await, 4);
    let gone = owner.revoke(&phone, laptop.keys.id());
    owner.delete(client, &laptop.id(), &gone).await.expect(200);
    assert_eq!(rows().await, 3);
    let push = scene.push(&laptop, &Browser::new(1), "/again");
    scene
        .post(&push)
        .await
        .refused_at(403, "POLICY_DENY", "/deviceId");
    // An administrator ends a device by its key.
    let key = format!("/platform/v1/approvers/alice/keys/{}", tablet.id());
    scene.admin.delete(&key).await.expect(204);
    assert_eq!(rows().await, 2);
    scene.admin.delete(&owner.path()).await.expect(204);
    // The webhook belongs to no device.
    assert_eq!(
        (rows().await, scene.only_line().await["kind"].clone()),
        (1, json!("webhook"))
    );
    let tenant = format!("/platform/v1/tenants/{}", scene.cluster.tenant);
    scene.cluster.operator().delete(&tenant).await.expect(204);
    assert_eq!(rows().await, 0);
}

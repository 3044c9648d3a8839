-- A device in force invites another device of its approver, and the gateway carries the answer.

-- The device that invites; null if an administrator or the operator does.
alter table invitations add column device_id text collate "C";
-- The new device's request to be added, and the proof that it knows the link's secret.
alter table invitations add column device_request text;
alter table invitations add column device_proof text;

-- An approver's devices may invite a few times in a while.
create index invitations_by_device on invitations (tenant_id, bound_id, created_at) where device_id is not null;

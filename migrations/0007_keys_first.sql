-- Where two indexes look equally good, as they all do on a table that was not analysed yet, the planner takes the newest. That
-- must be the key of the row: anything else reads all that a tenant has in order to find one of them.

-- It no longer begins like the key of the item, tenant and approver, for the same reason.
alter table inbox_items
    drop constraint inbox_items_message_key,
    add constraint inbox_items_message_key unique (tenant_id, message_id, approver_id);

alter table inbox_items
    drop constraint inbox_items_pkey,
    add constraint inbox_items_pkey primary key (tenant_id, request_id, approver_id);

alter table exchanges
    drop constraint exchanges_pkey,
    add constraint exchanges_pkey primary key (tenant_id, request_id);

alter table messages
    drop constraint messages_pkey,
    add constraint messages_pkey primary key (tenant_id, recipient_kind, recipient, message_id);

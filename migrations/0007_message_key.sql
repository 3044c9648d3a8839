-- The key by which an approver's message is found no longer begins like the key of its item, tenant and approver: on a table
-- that was not analysed yet the planner took one for the other, and read all that an approver ever had to find one row.

alter table inbox_items
    drop constraint inbox_items_message_key,
    add constraint inbox_items_message_key unique (tenant_id, message_id, approver_id);

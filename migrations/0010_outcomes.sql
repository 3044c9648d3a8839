-- The outcome that an enforcer signs about a decision, stored by its acknowledgement. Not validated: no row could violate it, and
-- looking at all of them would take long.
alter domain payload_part drop constraint payload_part_check;
alter domain payload_part add constraint payload_part_check
    check (value in ('artifact', 'decision', 'outcome')) not valid;

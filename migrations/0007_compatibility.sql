-- Compatibility with clients of an older dialect of the protocol; see docs/compatibility.md.

-- How the messages of its holder are read and answered: by the protocol, or leniently.
alter table credentials add column profile text collate "C" not null default 'strict';
alter table credentials add constraint credentials_profile check (profile in ('strict', 'compat'));

-- A session that an approver has offered has no enforcer until one claims its code, and is for that approver alone.
alter table pairing_sessions add column offered_by text collate "C";
-- The approver's answer, which the gateway hands to the enforcer unread.
alter table pairing_sessions add column response_json text;
alter table pairing_sessions alter column enforcer_id drop not null;
alter table pairing_sessions add constraint pairing_sessions_offered
    check (enforcer_id is not null or (offered_by is not null and completed_at is null));

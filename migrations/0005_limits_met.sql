-- When upstream answered a credential with a limit: a request that moved on leaves no other trace of it.
-- Times are milliseconds since 1970. Rows outlive their credential, hence no foreign key.

CREATE TABLE limits_met (
    credential_id BLOB    NOT NULL CHECK (length(credential_id) = 16),
    at            INTEGER NOT NULL,
    PRIMARY KEY (credential_id, at)
) STRICT, WITHOUT ROWID;

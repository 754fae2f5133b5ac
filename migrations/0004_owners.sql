-- Who owns what lives on upstream. Times are milliseconds since 1970.
-- Rows outlive the credentials, endpoints and keys that they name, hence no foreign keys: what another
-- key made stays that key's, whatever becomes of it.

CREATE TABLE owners (
    -- Not a list of values: for more than two, SQLite builds a temporary index at every row.
    kind          TEXT    NOT NULL CHECK (kind = 'response' OR kind = 'conversation' OR kind = 'file' OR kind = 'upload'
                                          OR kind = 'batch' OR kind = 'message_batch' OR kind = 'turn_state'),
    -- As upstream wrote it.
    id            TEXT    NOT NULL CHECK (length(id) > 0),
    -- No bytes for what keyless requests made.
    key_id        BLOB    NOT NULL CHECK (length(key_id) = 16 OR length(key_id) = 0),
    credential_id BLOB    NOT NULL CHECK (length(credential_id) = 16),
    endpoint_id   BLOB    CHECK (length(endpoint_id) = 16),
    made_at       INTEGER NOT NULL,
    -- Two providers may give the same id; so neither key can take the other's object away.
    PRIMARY KEY (kind, id, key_id)
) STRICT, WITHOUT ROWID;

-- For lists, which there are of some kinds only; the many rows of other kinds are spared it.
CREATE INDEX owners_by_key ON owners (key_id, kind) WHERE kind <> 'response' AND kind <> 'turn_state';

-- For what is forgotten with time.
CREATE INDEX owners_by_age ON owners (kind, made_at);

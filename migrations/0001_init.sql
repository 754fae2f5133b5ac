-- The first schema: configuration, admin tokens and the request log.
-- Ids are the 16 bytes of a UUIDv7, so that ordering by id is ordering by time of creation.
-- Times are milliseconds since 1970.

CREATE TABLE meta (
    id              INTEGER PRIMARY KEY CHECK (id = 1),
    -- Keys the fingerprints of upstream secrets; were it to change, no credential would be known again.
    instance_secret BLOB    NOT NULL CHECK (length(instance_secret) = 32),
    -- Goes up with every configuration write, so that other processes notice.
    config_version  INTEGER NOT NULL CHECK (config_version >= 1),
    created_at      INTEGER NOT NULL,
    probed_at       INTEGER
) STRICT;

CREATE TRIGGER meta_instance_secret_is_final
BEFORE UPDATE OF instance_secret ON meta
BEGIN
    SELECT RAISE(ABORT, 'the instance secret never changes');
END;

CREATE TABLE endpoints (
    id              BLOB    PRIMARY KEY CHECK (length(id) = 16),
    name            TEXT    NOT NULL UNIQUE CHECK (length(name) > 0),
    base_url        TEXT    NOT NULL,
    models          TEXT    CHECK (models IS NULL OR json_type(models) = 'array'),
    headers         TEXT    NOT NULL CHECK (json_type(headers) = 'array'),
    state           TEXT    NOT NULL CHECK (state IN ('active', 'draining', 'disabled')),
    disabled_reason TEXT    CHECK (disabled_reason IN ('operator', 'auth', 'billing')),
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    CHECK ((state = 'disabled') = (disabled_reason IS NOT NULL))
) STRICT;

CREATE TABLE endpoint_protocols (
    endpoint_id BLOB    NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    position    INTEGER NOT NULL,
    protocol    TEXT    NOT NULL CHECK (protocol IN ('openai', 'openai.videos', 'anthropic', 'gemini', 'fal.queue')),
    PRIMARY KEY (endpoint_id, protocol)
) STRICT, WITHOUT ROWID;

CREATE TABLE credentials (
    id              BLOB    PRIMARY KEY CHECK (length(id) = 16),
    name            TEXT    NOT NULL UNIQUE CHECK (length(name) > 0),
    is_named        INTEGER NOT NULL CHECK (is_named IN (0, 1)),
    secret          TEXT    NOT NULL CHECK (length(secret) > 0),
    fingerprint     BLOB    NOT NULL UNIQUE CHECK (length(fingerprint) = 32),
    -- Who brought the secret: what the environment brought drains once it is no longer listed there.
    origin          TEXT    NOT NULL DEFAULT 'operator' CHECK (origin IN ('operator', 'environment')),
    models          TEXT    CHECK (models IS NULL OR json_type(models) = 'array'),
    stream_limit    INTEGER CHECK (stream_limit >= 0),
    create_limit    INTEGER CHECK (create_limit >= 0),
    job_limit       INTEGER CHECK (job_limit >= 0),
    state           TEXT    NOT NULL CHECK (state IN ('active', 'draining', 'disabled')),
    disabled_reason TEXT    CHECK (disabled_reason IN ('operator', 'auth', 'billing')),
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    CHECK ((state = 'disabled') = (disabled_reason IS NOT NULL))
) STRICT;

CREATE TABLE accounts (
    id              BLOB    PRIMARY KEY CHECK (length(id) = 16),
    name            TEXT    NOT NULL UNIQUE CHECK (length(name) > 0),
    quota_scope     TEXT    NOT NULL CHECK (quota_scope IN ('account', 'credential')),
    stream_limit    INTEGER CHECK (stream_limit >= 0),
    create_limit    INTEGER CHECK (create_limit >= 0),
    job_limit       INTEGER CHECK (job_limit >= 0),
    priority        INTEGER NOT NULL,
    weight          INTEGER NOT NULL CHECK (weight >= 1),
    state           TEXT    NOT NULL CHECK (state IN ('active', 'draining', 'disabled')),
    disabled_reason TEXT    CHECK (disabled_reason IN ('operator', 'auth', 'billing')),
    made_for        BLOB    REFERENCES credentials (id) ON DELETE SET NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    CHECK ((state = 'disabled') = (disabled_reason IS NOT NULL))
) STRICT;

CREATE INDEX accounts_made_for ON accounts (made_for) WHERE made_for IS NOT NULL;

CREATE TABLE credential_accounts (
    credential_id BLOB    NOT NULL REFERENCES credentials (id) ON DELETE CASCADE,
    account_id    BLOB    NOT NULL REFERENCES accounts (id) ON DELETE RESTRICT,
    position      INTEGER NOT NULL,
    PRIMARY KEY (credential_id, account_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX credential_accounts_by_account ON credential_accounts (account_id);

CREATE TABLE credential_endpoints (
    credential_id BLOB    NOT NULL REFERENCES credentials (id) ON DELETE CASCADE,
    endpoint_id   BLOB    NOT NULL REFERENCES endpoints (id) ON DELETE RESTRICT,
    position      INTEGER NOT NULL,
    PRIMARY KEY (credential_id, endpoint_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX credential_endpoints_by_endpoint ON credential_endpoints (endpoint_id);

CREATE TABLE client_keys (
    id          BLOB    PRIMARY KEY CHECK (length(id) = 16),
    name        TEXT    NOT NULL UNIQUE CHECK (length(name) > 0),
    hash        BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
    secret_hint TEXT    NOT NULL,
    weight      INTEGER NOT NULL CHECK (weight >= 1),
    -- Whether client_key_accounts narrows the key. A key that loses its last account can then use
    -- none, instead of all of them.
    is_scoped   INTEGER NOT NULL CHECK (is_scoped IN (0, 1)),
    models      TEXT    CHECK (models IS NULL OR json_type(models) = 'array'),
    expires_at  INTEGER,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE client_key_accounts (
    key_id     BLOB    NOT NULL REFERENCES client_keys (id) ON DELETE CASCADE,
    account_id BLOB    NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    position   INTEGER NOT NULL,
    PRIMARY KEY (key_id, account_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX client_key_accounts_by_account ON client_key_accounts (account_id);

-- What the operator set. A cleared override keeps its row with a null value, because a later write
-- must still be told that the setting has changed since it was read.
CREATE TABLE settings (
    key        TEXT    PRIMARY KEY CHECK (length(key) > 0),
    value      TEXT,
    version    INTEGER NOT NULL UNIQUE CHECK (version >= 1),
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE admin_tokens (
    id          BLOB    PRIMARY KEY CHECK (length(id) = 16),
    name        TEXT    NOT NULL UNIQUE CHECK (length(name) > 0),
    hash        BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
    secret_hint TEXT    NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT;

-- The request log. Its ids ascend, so inserts append; no second index, since an insert must be cheap.
-- Nor a list of values in a CHECK: for more than two, SQLite builds a temporary index at every row.
-- Rows outlive the keys, accounts, credentials and endpoints that they name, hence no foreign keys.
CREATE TABLE requests (
    id                  BLOB    PRIMARY KEY CHECK (length(id) = 16),
    started_at          INTEGER NOT NULL,
    key_id              BLOB,
    account_id          BLOB,
    credential_id       BLOB,
    endpoint_id         BLOB,
    protocol            TEXT    CHECK (protocol = 'openai' OR protocol = 'openai.videos' OR protocol = 'anthropic'
                                       OR protocol = 'gemini' OR protocol = 'fal.queue'),
    method              TEXT    NOT NULL,
    path                TEXT    NOT NULL,
    model               TEXT,
    upstream_model      TEXT,
    status              INTEGER,
    reason              TEXT,
    outcome             TEXT    NOT NULL CHECK (outcome = 'ok' OR outcome = 'refused' OR outcome = 'failed'
                                                OR outcome = 'broken' OR outcome = 'client_gone'),
    attempts            INTEGER NOT NULL,
    request_bytes       INTEGER NOT NULL,
    response_bytes      INTEGER NOT NULL,
    queued_ms           INTEGER,
    headers_ms          INTEGER,
    first_byte_ms       INTEGER,
    total_ms            INTEGER,
    input_tokens        INTEGER,
    output_tokens       INTEGER,
    cached_tokens       INTEGER,
    upstream_request_id TEXT,
    error               TEXT
) STRICT, WITHOUT ROWID;

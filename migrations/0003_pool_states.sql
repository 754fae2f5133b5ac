-- What the pool must remember of what upstream said, and who changed what.
-- Times are milliseconds since 1970.

ALTER TABLE accounts ADD COLUMN cooldown_per_model INTEGER NOT NULL DEFAULT 0 CHECK (cooldown_per_model IN (0, 1));
ALTER TABLE accounts ADD COLUMN trust_reset        INTEGER NOT NULL DEFAULT 0 CHECK (trust_reset IN (0, 1));

-- Cooldowns that have not ended. They outlive what they are of for a while, hence no foreign keys.
CREATE TABLE cooldowns (
    kind       TEXT    NOT NULL CHECK (kind IN ('account', 'credential')),
    subject_id BLOB    NOT NULL CHECK (length(subject_id) = 16),
    -- Empty where it is not of one model.
    model      TEXT    NOT NULL,
    until      INTEGER NOT NULL,
    -- The end that upstream stated, where that is later than the next look.
    told_until INTEGER,
    length_ms  INTEGER NOT NULL CHECK (length_ms >= 0),
    is_quota   INTEGER NOT NULL CHECK (is_quota IN (0, 1)),
    PRIMARY KEY (kind, subject_id, model)
) STRICT, WITHOUT ROWID;

-- Who changed what. Never holds the value of a secret.
CREATE TABLE audit (
    id      BLOB    PRIMARY KEY CHECK (length(id) = 16),
    at      INTEGER NOT NULL,
    actor   TEXT    NOT NULL CHECK (length(actor) > 0),
    action  TEXT    NOT NULL CHECK (length(action) > 0),
    subject TEXT    NOT NULL,
    detail  TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

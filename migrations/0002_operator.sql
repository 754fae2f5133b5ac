-- Who may operate this instance: one password, and a row for every session that it opened.
-- Times are milliseconds since 1970.

CREATE TABLE operator (
    id            INTEGER PRIMARY KEY CHECK (id = 1),
    -- In PHC form, with its algorithm and parameters.
    password_hash TEXT    NOT NULL CHECK (length(password_hash) > 0),
    changed_at    INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
    id         BLOB    PRIMARY KEY CHECK (length(id) = 16),
    -- SHA-256 of the cookie's value, which itself is stored nowhere.
    hash       BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
    address    TEXT    NOT NULL,
    user_agent TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;

CREATE INDEX sessions_by_address ON sessions (address);

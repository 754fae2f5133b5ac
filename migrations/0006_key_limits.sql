-- A client key's own limits; null means none. Zero would let nothing through, and so is none: a key
-- that is to do nothing is revoked or ends.

ALTER TABLE client_keys ADD COLUMN requests_per_minute INTEGER CHECK (requests_per_minute >= 1);

ALTER TABLE client_keys ADD COLUMN concurrency INTEGER CHECK (concurrency >= 1);

ALTER TABLE client_keys ADD COLUMN tokens_per_day INTEGER CHECK (tokens_per_day >= 1);

# The page of settings.
settings-title = Settings
settings-lead = What is set here comes before the environment, and the environment before the default. A change is in force as soon as it is saved.
settings-saved = Saved and in force.
settings-cleared = Cleared: the inherited value is in force.
settings-nothing = Nothing was changed, so nothing was saved.
settings-capacity = Capacity
settings-routing = Routing
settings-timeouts = Timeouts
settings-clients = Clients
settings-operation = Operation
settings-review = Review changes: { $group }
settings-refused = Stored, but without effect
settings-refused-lead = These rows stand in the database, but this version does not take them. The inherited value is in effect instead. Clearing a row removes it.
setting-unknown = This version knows no setting of that name.
setting-takes-number = Not accepted: it takes a whole number from { $min } to { $max }.
setting-takes-switch = Not accepted: it takes true or false.
setting-takes-origins = Not accepted: it takes * or origins such as https://chat.example.com, separated by commas.
setting-refused-changed = Somebody else changed this row meanwhile, so it was not cleared. What is stored now is shown.
review-title = Review changes
review-lead = Nothing is saved yet. Once saved, this takes effect at once.
review-from = { $value } ({ $source ->
    [override] set here or through the API
    [environment] from the environment
   *[default] from the default
})
review-to = { $value }
review-edit = Edit again
review-save = { $count ->
    [one] Save change
   *[other] Save { $count } changes
}
setting-on = On
setting-off = Off
setting-nothing = none
setting-in-effect = In effect: { $value }, from { $source ->
    [override] this page or the API
    [environment] the environment
   *[default] the default
}
setting-if-cleared = If cleared: { $value }, from { $source ->
    [environment] the environment
   *[default] the default
}
setting-clear = Clear: { $name }
setting-locked = Set by { $env }, so that it cannot be set here. Change it there and restart.
setting-accepts-number = Accepted is a whole number from { $min } to { $max }, without separators. Nothing was saved.
setting-accepts-switch = Accepted is on or off. Nothing was saved.
setting-accepts-origins = Accepted is * or origins such as https://chat.example.com, separated by commas. Nothing was saved.
setting-conflict = Somebody else changed this meanwhile. Choose which value shall stand; nothing was saved yet.
setting-mine = Yours: { $value }
setting-theirs = Theirs, in effect now: { $value }
setting-not-cleared = It was not cleared. Theirs, in effect now: { $value }. Clear it again to drop it, or leave it as it is.

setting-account-stream-limit = Streams per account
setting-account-stream-limit-about = Streams that one account may carry at once; 0 means unlimited.
setting-account-create-limit = Starting requests per account
setting-account-create-limit-about = Requests that one account may be starting at once; 0 means unlimited.
setting-account-job-limit = Jobs per account
setting-account-job-limit-about = Jobs that one account may carry at once; 0 means unlimited.
setting-account-stream-reserve = Reserved streams per account
setting-account-stream-reserve-about = Stream slots of every account that are kept for clients coming back to a running response.
setting-capacity-wait-seconds = Wait for capacity (seconds)
setting-capacity-wait-seconds-about = How long a request may wait for a free slot; 0 means that it is refused at once.
setting-waiters-per-key = Waiting requests per key
setting-waiters-per-key-about = How many requests of one client key may wait at once.
setting-park-commit-seconds = Answer waiting streams after (seconds)
setting-park-commit-seconds-about = After so many seconds of waiting a streaming request is answered and kept alive until its turn comes; of use where the wait for capacity is longer.
setting-fair-share-congestion-threshold-pct = Congestion threshold for fair share (%)
setting-fair-share-congestion-threshold-pct-about = From how many percent of its capacity in use on the pool is shared out by the weights of the client keys that want it; 0 means never.
setting-max-attempts = Attempts per request
setting-max-attempts-about = How many accounts one request may be tried on.
setting-connect-timeout-seconds = Time to connect (seconds)
setting-connect-timeout-seconds-about = Time to connect to upstream, TLS included.
setting-header-timeout-seconds = Time to response headers (seconds)
setting-header-timeout-seconds-about = Time until upstream’s response headers arrive.
setting-idle-timeout-seconds = Longest silence (seconds)
setting-idle-timeout-seconds-about = Longest silence inside a response; there is no limit on its whole length.
setting-request-body-limit-mb = Largest request body (MiB)
setting-request-body-limit-mb-about = A request with a larger body is refused.
setting-require-client-key = Require a client key
setting-require-client-key-about = Whether requests without a client key are refused; when off, anyone who reaches this address may send requests.
setting-cors-allowed-origins = Allowed browser origins
setting-cors-allowed-origins-about = Origins whose browsers may send requests: * for all, or a list separated by commas.
setting-request-log-retention-days = Request log (days)
setting-request-log-retention-days-about = How long the request log is kept; 0 means that nothing is kept.
setting-stage-trace = Log every stage
setting-stage-trace-about = Whether every stage of every request is logged.
setting-shutdown-grace-seconds = Grace after a stop (seconds)
setting-shutdown-grace-seconds-about = How long requests in flight may go on after a stop was asked for.
setting-session-ttl-hours = Length of a login (hours)
setting-session-ttl-hours-about = How long a login to the dashboard lasts.
setting-selection-strategy = Choice of account
setting-selection-strategy-about = Which account takes a request among those that can: least_loaded (the least used), round_robin (each in turn) or fill_first (the first until it is full).
setting-affinity-ttl-seconds = Same account for a conversation (seconds)
setting-affinity-ttl-seconds-about = How long a conversation prefers the account that it was on, so that the provider's cache still helps. 0 means not at all.
setting-retry-upstream-5xx = Move on after server errors
setting-retry-upstream-5xx-about = Also tries another account after 500, 502, 504, 520, 524 and 527. The work may have been done already and may then be billed twice.
setting-breaker-failure-threshold = Failures until an endpoint rests
setting-breaker-failure-threshold-about = After so many failures in a row an endpoint gets no requests for a minute; then one request tries it.
setting-accepts-words = One of: { $words }
setting-takes-words = Not accepted: it takes one of { $words }.

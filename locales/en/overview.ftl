overview-title = Overview
attention-title = Needs attention
attention-none = Accounts that take work: { $active } of { $accounts }.
attention-waiting = { $count ->
    [0] Nothing waits.
    [one] One request waits.
   *[other] { $count } requests wait.
}
attention-more = and { $count } more
attention-disk = The database cannot be written. Requests are still served; changes and the request log are not kept.
attention-no-account = There is no account yet, so no request can be served.
attention-add-account = Add account
attention-no-key = There is no client key yet, so no client can get in.
attention-add-key = Make key
attention-credential-auth = Credential { $name } was refused by its provider.
attention-credential-billing = Credential { $name } is out of service: its provider does not bill it.
attention-account-auth = Account { $name } was refused by its provider.
attention-account-billing = Account { $name } is out of service: its provider does not bill it.
attention-nothing-takes-work = No account takes work: every request is refused.
attention-open = Anyone who reaches this address may send requests, since no client key is required.
attention-require-key = Require client keys
attention-replace-secret = Replace secret
attention-enable = Enable again
attention-open-pool = Open the pool
live-pause = Pause
live-resume = Resume
live-paused = Paused; last seen
live-log-in = Log in
live-signed-out-help = This page no longer follows what happens.
now-title = Now
tile-in-flight = Streams in flight
tile-reserve = plus { $count } in reserve for clients that come back
tile-served = { $count ->
    [one] one request being served
   *[other] { $count } requests being served
}
tile-waiting = Waiting
tile-oldest = the oldest for { $wait }
tile-waiting-help = for a free slot
tile-requests = Requests a minute
tile-requests-help = that began at { $minute }; being served now: { $count }
tile-accounts = Accounts taking work
tile-keys = { $count ->
    [one] one client key
   *[other] { $count } client keys
}
recent-title = Last { $minutes } minutes
recent-none = Nothing in this period.
recent-not-kept = No request log is kept, so there is nothing to count.
outcomes-title = Requests by outcome
recent-ok = { $count } ok
recent-refused = { $count } refused by fairlane
recent-failed = { $count } failed upstream
recent-left = { $count } left by the client
recent-chart = Requests by minute: { $total } in all, at most { $top } a minute
recent-top = up to { $top } a minute
recent-table = Requests by minute and outcome
first-byte-title = Time to first byte
first-byte-p50 = p50
first-byte-p95 = p95
first-byte-top = up to { $top } ms
first-byte-chart = Time to first byte: half within { $half } ms, 95 of 100 within { $most } ms, from { $count ->
    [one] one answer
   *[other] { $count } answers
}
first-byte-found = Half within { $half } ms, 95 of 100 within { $most } ms, from { $count ->
    [one] one answer
   *[other] { $count } answers
}.
first-byte-cut = There are more; only the newest were looked at.
first-byte-table = Time to first byte by minute
fullness-title = In flight and capacity
fullness-in-flight = in flight
fullness-capacity = capacity
fullness-top = up to { $top } streams
fullness-none = Nothing in this period.
fullness-chart = In flight: now { $now }, peak { $peak }, capacity { $capacity }
fullness-chart-unlimited = In flight: now { $now }, peak { $peak }, capacity unlimited
fullness-found = Now { $now }, peak { $peak }.
fullness-table = Most streams in flight by minute
aside-title = Accounts that cool, drain or are disabled
aside-none = { $count ->
    [0] There is no account yet.
   *[other] Every account takes work.
}
busy-title = Keys that hold or wait for most
busy-help = A share is what a key may hold while the pool is congested. With room to spare it may hold more.
busy-none = No key holds a stream, none waits.
busy-key-removed = a removed key
busy-key-none = without a key
column-account = Account
column-state = State
column-key = Key
column-in-flight = In flight
column-waiting = Waiting
column-minute = Minute
column-ok = Ok
column-refused = Refused
column-failed = Failed
column-left = Client left
column-p50 = p50 (ms)
column-p95 = p95 (ms)
column-requests = Answers
column-most = Most in flight
attention-resting = Endpoint { $name } rests after failures in a row. One request tries again in { $in } ({ $at }).
attention-cooling-account = Account { $name } cools since { $since }, because its provider limits it. Free in { $in } ({ $at }).
attention-cooling-credential = Credential { $name } cools since { $since }, because its provider limits it. Free in { $in } ({ $at }).
attention-cooling-many = { $count } accounts or credentials cool, because their providers limit them. The first is free in { $in }.

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
now-title = Now
tile-in-flight = Streams in flight
tile-reserve = Reserve per account: { $count }
tile-waiting = Waiting
tile-waiting-help = for a free slot
tile-requests = Requests being served
tile-requests-help = of every kind, at any stage
tile-accounts = Accounts taking work
tile-keys = { $count ->
    [one] one client key
   *[other] { $count } client keys
}
recent-title = Last { $minutes } minutes
recent-none = No requests have ended in this period.
recent-not-kept = No request log is kept, so there is nothing to count.
recent-ok = { $count } ok
recent-refused = { $count } refused by fairlane
recent-failed = { $count } failed upstream
recent-left = { $count } left by the client
recent-chart = Requests by minute: { $total } in all, at most { $top } a minute
recent-top = at most { $top } a minute
recent-table = Requests by minute and outcome
column-minute = Minute
column-ok = Ok
column-refused = Refused
column-failed = Failed
column-left = Client left

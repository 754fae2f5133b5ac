nav-concurrency = Concurrency
conc-filters = { $count ->
    [0] Filter: none
    [one] Filter: one on
   *[other] Filter: { $count } on
}
conc-filter = Narrow the view
conc-apply = Apply
conc-clear = Clear
conc-any-key = Any key
conc-any-account = Any account
conc-any-stage = Any stage
conc-gone = a removed one
conc-pool = Pool
conc-of-capacity = of { $capacity } in flight
conc-of-unlimited = in flight, without a limit
conc-waiting = { $count } waiting, the oldest for { $wait }
conc-nobody-waits = Nobody waits.
conc-gate-closed = Congested: keys are held to their shares
conc-gate-open = Not congested (from { $from } on)
conc-gate-off = Fair share is off
conc-gate-nothing = No account can serve now
conc-gate-unlimited = No shares: some account is unlimited
conc-congested-from = congested from { $from } on
conc-reserve = { $count } in reserve
conc-others = other keys
conc-all-keys = Show all keys
conc-accounts = Accounts
conc-idle = { $count } idle
conc-no-account = { $count ->
    [0] There is no account yet.
   *[other] Every account takes work and is idle.
}
conc-slots = { $streams ->
    [one] one stream
   *[other] { $streams } streams
}, { $creates } starting, { $jobs ->
    [one] one job
   *[other] { $jobs } jobs
}
conc-accounts-help = A cell is a slot; hatched ones at the end are the reserve for clients that come back. A thin line below a bar: requests being started, and jobs.
conc-keys = Keys that hold or wait
conc-drawn = Drawn
conc-share = Share
conc-weight = Weight
conc-oldest = Longest wait
conc-refused = Refused in 1 min
conc-over = over its share
conc-share-help = The mark in a bar is the key's share: what it may hold while the pool is congested.
conc-waits = Who waits for what
conc-why = Waits because
conc-frees = Goes on when
conc-soonest = (at the earliest in { $in })
conc-live = Live requests
conc-live-all = { $count } in all
conc-live-none = No request is in flight.
conc-live-none-match = No request in flight matches.
conc-request = Request
conc-stage = Stage
conc-in-stage = In stage for
conc-age = Age
conc-release = Release
conc-more = Show 50 more
conc-more-left = { $count } more are not shown.
conc-reset = Count slots anew
conc-reset-ask = Count every slot anew?
conc-reset-leases = { $count ->
    [0] No lease is held.
    [one] The slots in use are counted anew from the one lease that is held.
   *[other] The slots in use are counted anew from the { $count } leases that are held.
}
conc-reset-waiters = { $count ->
    [0] Nobody waits.
    [one] The one request that waits is looked at again.
   *[other] The { $count } requests that wait are looked at again.
}
conc-reset-keeps = Nothing that runs is cut off, and no cooldown ends. Where the counts were right, nothing changes.
conc-done-reset = Counted anew. Slots that were wrong: { $slots }. Requests let in: { $granted }.
conc-done-released = The slots of that lease are free.
conc-release-title = Release slots
conc-release-ask = Release the slots of { $lease }?
conc-release-frees = It gives back on { $accounts }: streams { $streams }, starts { $creates }, jobs { $jobs }.
conc-release-held = Held for { $age } by { $name }.
conc-release-runs = Its request runs on. Until that ends, the provider sees one more than the limit allows, and may refuse.
conc-release-waiters = { $count ->
    [0] Nobody waits for them now.
    [one] One request waits and may go.
   *[other] { $count } requests wait; the next in turn may go.
}
waits-stream = no stream slot is free
waits-create = no start slot is free
waits-job = no job slot is free
waits-credential = every credential is at its own limit
waits-owner = the one account that knows its state is full
waits-cooling = every account cools
waits-share = the key holds its share
waits-other = nothing can take it now
frees-stream = a stream ends
frees-create = upstream begins to answer
frees-job = a job ends
frees-slot = a slot there comes free
frees-cooldown = a cooldown ends
frees-share = a stream of the key ends, or others need less
frees-pool = the pool changes
stage-received = received
stage-authenticated = authenticated
stage-parsed = parsed
stage-selected = choosing an account
stage-parked = waiting for a slot
stage-admitted = admitted
stage-dispatched = sent upstream
stage-upstream-headers = upstream answers
stage-first-byte = streaming
stage-finished = finished

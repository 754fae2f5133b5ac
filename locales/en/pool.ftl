nav-pool = Pool
pool-active = Active
pool-draining = Draining
pool-disabled = Disabled
pool-disabled-auth = Disabled: secret refused
pool-disabled-billing = Disabled: billing refused
pool-unlimited = unlimited
pool-no-cap = none
pool-inherited = { $value } (inherited)
pool-name = Name
pool-state = State
pool-secret-hint = Secret ends in
pool-calls = Calls
pool-streams = Streams
pool-creates = Starts
pool-accounts = Accounts
pool-credentials = Credentials
pool-endpoints = Endpoints
pool-actions = Actions
pool-edit = Edit
pool-enable = Enable
pool-drain = Drain
pool-disable = Disable
pool-remove = Remove
pool-rotate = Rotate
pool-cancel = Cancel
pool-save = Save
pool-confirm = { $action }: { $name }?
pool-press = { $action } { $name }
pool-not-done = This was not done.
pool-enable-effect = It takes new work at once. That the provider refused it before is forgotten.
pool-drain-effect = It takes no new work. Requests that run go on to their end.
pool-disable-effect = It takes no new work until somebody enables it. Requests that run go on to their end.
pool-rotate-effect = New requests use the new secret, and the old one is deleted. Name, accounts, endpoints and limits stay. If the provider had refused the old secret, it is enabled again.
pool-remove-account-effect = The account and its limits are deleted, and client keys that were bound to it lose it. This cannot be undone. An account that a credential is charged to cannot be removed.
pool-remove-credential-effect = Its secret is deleted and takes no new work. An account that was made for it alone is deleted as well. This cannot be undone.
pool-remove-endpoint-effect = The endpoint is deleted. This cannot be undone. An endpoint that a credential works at cannot be removed.
pool-in-use = It is still used by these credentials: { $by }. Change or remove them first.
pool-add-account = Add account
pool-add-credential = Add credential
pool-add-endpoint = Add endpoint
pool-edit-account = Edit account
pool-edit-credential = Edit credential
pool-edit-endpoint = Edit endpoint
pool-no-accounts = No accounts yet
pool-no-accounts-help = An account is whoever the provider bills and limits.
pool-no-credentials = No credentials yet
pool-no-credentials-help = A credential is a secret that the provider accepts. Add an endpoint first.
pool-no-endpoints = No endpoints yet
pool-no-endpoints-help = An endpoint is an address of a provider and the protocols it understands.
pool-presets = Fill in from a preset:
pool-name-help = How you will recognise it.
pool-credential-name-help = How you will recognise it. Left empty, it is given a name.
pool-name-taken = Another one has this name.
pool-endpoints-help = Where the secret works.
pool-endpoints-fault = Choose at least one endpoint. If one is missing here, it was removed meanwhile.
pool-accounts-help = Whom requests are charged to. If none is chosen, it gets an account of its own.
pool-choice-gone = Choose again: what was chosen is not there any more.
pool-create-limit = Requests being started at once
pool-cap-help = Beside the limits of its accounts. Left empty or 0: no limit of its own.
pool-priority = Priority
pool-priority-help = Lower numbers are chosen first. Left empty: 0.
pool-priority-fault = A whole number is needed.
pool-weight = Weight
pool-weight-help = Its share among accounts of the same priority. Left empty: 1.
pool-weight-fault = A whole number from 1 is needed.
pool-refused = This was refused: { $what }
pool-more = More
pool-test = Test
pool-test-again = Test again
pool-tested = Test of { $name }
pool-test-of = { $credential } at { $endpoint }
pool-test-none = Nothing was called: no credential works at this endpoint yet.
pool-enable-again = Enable again
pool-gentler = To stop it without losing anything:
pool-loses-users = { $count ->
    [one] One credential still uses it: { $names }.
   *[other] { $count } credentials still use it: { $names }.
}
pool-loses-keys = { $count ->
    [one] One client key is bound to it and loses it: { $names }.
   *[other] { $count } client keys are bound to it and lose it: { $names }.
}
pool-loses-alone = { $count ->
    [one] One account has no other credential and can take no more work: { $names }.
   *[other] { $count } accounts have no other credential and can take no more work: { $names }.
}
pool-done-added = Added: { $name }.
pool-done-saved = Saved: { $name }.
pool-done-enabled = { $name } takes new work.
pool-done-drained = { $name } takes no new work. What runs goes on to its end.
pool-done-disabled = { $name } is disabled. What runs goes on to its end.
pool-done-rotated = { $name } has its new secret. The old one is deleted.
pool-done-removed = It was removed.
pool-own-help = 0 = unlimited.
pool-in-effect = In effect: { $value }. If cleared: { $inherited }.
pool-job-limit = Jobs at once
pool-job-limit-help = Kept for later: this version runs no jobs. Left empty: no limit of its own.
pool-scope = Limits and cooldowns apply to
pool-scope-account = The account as a whole: its credentials share them
pool-scope-credential = Each of its credentials separately
pool-scope-help = Choose the second only where the provider counts each key on its own.
pool-scope-fault = Choose one of the two.
pool-models = Models
pool-models-help = One a line. Where the provider calls it otherwise: the clients' name = the provider's name. Left empty: every model.
pool-models-fault = Line { $line } is no model, or names one that is listed already.
pool-headers = Headers added to every request
pool-headers-help = One a line, as Name: value.
pool-headers-fault = Line { $line } is no header that can be added: write Name: value, each name once, and none that fairlane sets itself.
pool-used = { $used } / { $cap }
pool-drained = Drained
pool-clear-cooldown = Clear cooldown
pool-clear-cooldown-effect = Requests go to it again at once, and those that wait for it are let in. If the provider still limits it, it cools anew: this does not give back any quota.
pool-done-cleared = { $name } takes requests again: its cooldown has ended.
stand-cooling = Cooling
stand-quota = Quota used up
stand-probing = Probing
stand-resting = Resting
stand-full = Full
stand-free-in = free in { $in } ({ $at })
stand-told = the provider says: free in { $in } ({ $at })
stand-looks-in = one request looks in { $in } ({ $at })
stand-tries-in = failed too often; one request tries again in { $in } ({ $at })
stand-next-alone = the next request goes alone; its answer decides
stand-one-out = one request is out; its answer decides
stand-drained = nothing is in flight on it: safe to remove
stand-auth = The provider refuses its secret. Replace the secret, or test it; it is also tested again by itself.
stand-billing = The provider wants to be paid. Settle that there, then enable it.
stand-model = { $model }: free in { $in }
stand-more-models = { $count ->
    [one] and one more model
   *[other] and { $count } more models
}
stand-credentials = { $count ->
    [one] one of its { $all } credentials cools
   *[other] { $count } of its { $all } credentials cool
}
stand-in-flight = In flight on it now: { $streams ->
    [0] no stream
    [one] one stream
   *[other] { $streams } streams
}, { $creates ->
    [0] no request being started
    [one] one request being started
   *[other] { $creates } requests being started
}.
stand-requests = In flight at it now: { $count ->
    [0] no request
    [one] one request
   *[other] { $count } requests
}.
pool-per-model = When limited, cool only the model that was asked for
pool-per-model-help = For providers that count each model on its own. Otherwise the whole account waits.
pool-trust-reset = Believe resets that are more than an hour away
pool-trust-reset-help = Otherwise one request looks every hour whether the provider lets it pass already.
stand-full-at = ordinary requests may hold { $cap }

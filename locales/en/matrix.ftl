matrix-title = Models
matrix-lead = Which credential serves which model at which endpoint. Credentials with the same list of models share a column; an arrow shows what the provider is asked for instead.
matrix-all = Every endpoint
matrix-every = Every model, under its own name:
matrix-model = Clients ask for
matrix-yes = yes
matrix-and = and { $count } more
matrix-more = Not shown: { $models ->
    [0] no model
    [one] one model
   *[other] { $models } models
}, { $groups ->
    [0] no list of models
    [one] one other list of models
   *[other] { $groups } other lists of models
}.
matrix-only = Show { $name } alone

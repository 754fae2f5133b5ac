# Import by paste.
import-title = Import
import-open = Import secrets or a document
import-lead = Nothing is changed before you have seen what would happen.
import-text = Secrets or pool document
import-text-help = One secret a line; or a table whose first line names columns out of name, secret, account; or a pool document in JSON. At most 1 MiB.
import-text-empty = Paste at least one secret, or a document.
import-endpoint-of = Endpoint of the secrets
import-endpoint-none = None: it is a document
import-endpoint-help = For a list. A document names its endpoints itself.
import-endpoint-fault = Choose the endpoint at which these secrets work.
import-there = In the pool
import-presets = Presets, added with the import
import-sync = Also drain what is not listed
import-sync-help = Of a list: other credentials that work at this endpoint alone. Of a document: whatever it leaves out of the kinds that it lists; client keys are removed.
import-preview = Show what would change
import-preview-title = What the import would do
import-not-yet = Nothing has been changed yet
import-nothing = Nothing changes.
import-refused = Nothing was changed. Secrets are never sent back: mend what stands below and paste everything again.
import-gone = This import is not held any more: pasted texts are kept for ten minutes. Paste it again.
import-changed-meanwhile = The pool was changed meanwhile, and nothing was imported. This is what the import would do now.
import-mistakes = What is wrong
import-rest = What the other lines would do
import-sum = { $added } new, { $changed } changed, { $unlisted } drained or removed, { $unchanged } unchanged, { $repeated } duplicate
import-kind = Kind
import-change = Change
import-place = Where
import-endpoint = Endpoint
import-account = Account
import-credential = Credential
import-key = Client key
import-added = New
import-changed = Changed
import-rotated = New secret
import-drained = Drained
import-removed = Removed
import-unchanged = Unchanged
import-more = { $count ->
    [one] and one more
   *[other] and { $count } more
}
import-line = Line { $number }
import-repeats = Duplicates, left out
import-repeat = The same secret as in { $first }.
import-notes = Put right or left out
import-comment = Begins with # and is left out.
import-cleaned = Quotes or invisible characters around the secret are removed.
import-comma = Holds a comma. Write one secret a line, or begin with a line such as name,secret,account.
import-minted = { $count ->
    [one] One client key is given a secret, which is shown once, after the import.
   *[other] { $count } client keys are given a secret, which is shown once, after the import.
}
import-word = To drain or remove what is not listed, type { $word }
import-word-help = Requests that run go on to their end. Client keys that are removed stop at once.
import-word-fault = Type { $word } to go on.
import-apply = Import this
import-apply-wide = Import this and drain the rest
import-other = Paste something else
import-done = Imported
import-done-help = The import is in force.
import-what-changed = What was done
import-to-pool = To the pool

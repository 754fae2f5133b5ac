# What a test of an endpoint and a secret came to.
test-button = Test connection
test-called = Called
test-status = Status
test-no-status = none
test-took = Took
test-message = Message
test-may-save = You can save it all the same.
test-works = It works: { $count ->
    [one] one model
   *[other] { $count } models
} listed.
test-secret-refused = The provider refuses the key.
test-secret-refused-cure = Check that the key is complete, not revoked, and of this provider.
test-wrong-address = This address does not answer like such an API.
test-wrong-address-cure = Compare the address above with the provider's documentation.
test-limited = The provider limits this account right now.
test-limited-cure = The key is known. Requests will wait until the limit is over.
test-upstream-trouble = The provider has trouble of its own.
test-upstream-trouble-cure = Try again in a minute.
test-refused = The provider refused the call.
test-refused-cure = Its message above says why.
test-unreachable = No connection could be made.
test-unreachable-cure = Check the host name, the port and whether this server may reach it.
test-too-slow = No answer in time.
test-too-slow-cure = Try again. If it stays so, a firewall may be swallowing the connection.

login-title = Log in
login-password = Password
login-password-help = Lost it? On the server: fairlane admin reset-password
login-button = Log in
login-wrong = That is not the password.
login-too-many = Too many attempts. Try again in { $wait }.

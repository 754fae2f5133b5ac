login-title = 登录
login-password = 密码
login-password-help = 忘记密码？请在服务器上运行 fairlane admin reset-password
login-button = 登录
login-wrong = 密码不正确。
login-too-many = 尝试次数过多，请在 { $wait }后重试。

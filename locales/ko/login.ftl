login-title = 로그인
login-password = 비밀번호
login-password-help = 비밀번호를 잊었다면 서버에서 실행: fairlane admin reset-password
login-button = 로그인
login-wrong = 비밀번호가 올바르지 않습니다.
login-too-many = 시도가 너무 많았습니다. 남은 대기 시간: { $wait }.

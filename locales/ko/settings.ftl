# 설정 페이지.
settings-title = 설정
settings-lead = 여기서 설정한 값이 환경 변수보다, 환경 변수가 기본값보다 우선합니다. 변경 사항은 저장하는 즉시 적용됩니다.
settings-saved = 저장되어 적용 중입니다.
settings-cleared = 설정값을 지웠습니다. 이제 상속된 값이 적용됩니다.
settings-nothing = 변경된 항목이 없어 저장하지 않았습니다.
settings-capacity = 용량
settings-routing = 라우팅
settings-timeouts = 시간 제한
settings-clients = 클라이언트
settings-operation = 운영
settings-review = 변경 내용 검토: { $group }
settings-refused = 저장되어 있지만 적용되지 않는 항목
settings-refused-lead = 데이터베이스에 있지만 이 버전에서 쓸 수 없는 항목입니다. 대신 상속된 값이 적용됩니다. 지우면 항목이 없어집니다.
setting-unknown = 이 버전에는 이런 이름의 설정이 없습니다.
setting-takes-number = 허용되지 않는 값입니다. { $min }부터 { $max }까지의 정수만 쓸 수 있습니다.
setting-takes-switch = 허용되지 않는 값입니다. true 또는 false만 쓸 수 있습니다.
setting-takes-origins = 허용되지 않는 값입니다. * 또는 https://chat.example.com 같은 출처를 쉼표로 구분해 쓸 수 있습니다.
setting-refused-changed = 그사이 다른 사람이 이 항목을 변경해 지우지 않았습니다. 현재 저장된 내용이 표시됩니다.
review-title = 변경 내용 검토
review-lead = 아직 저장되지 않았습니다. 저장하면 즉시 적용됩니다.
review-from = { $value } ({ $source ->
    [override] 이 페이지 또는 API에서 설정
    [environment] 환경 변수
   *[default] 기본값
})
review-to = { $value }
review-edit = 다시 수정
review-save = 변경 { $count }건 저장
setting-on = 켜짐
setting-off = 꺼짐
setting-nothing = 없음
setting-in-effect = 적용 중: { $value } ({ $source ->
    [override] 이 페이지 또는 API에서 설정
    [environment] 환경 변수
   *[default] 기본값
})
setting-if-cleared = 지우면: { $value } ({ $source ->
    [environment] 환경 변수
   *[default] 기본값
})
setting-clear = 지우기: { $name }
setting-locked = 환경 변수 { $env }에 지정된 값이므로 여기서 설정할 수 없습니다. 환경 변수를 변경한 뒤 다시 시작하십시오.
setting-accepts-number = { $min }부터 { $max }까지의 정수를 구분 기호 없이 입력하십시오. 아무것도 저장되지 않았습니다.
setting-accepts-switch = 켜짐 또는 꺼짐만 선택할 수 있습니다. 아무것도 저장되지 않았습니다.
setting-accepts-origins = * 또는 https://chat.example.com 같은 출처를 쉼표로 구분해 입력하십시오. 아무것도 저장되지 않았습니다.
setting-conflict = 그사이 다른 사람이 이 값을 변경했습니다. 어느 값을 사용할지 선택하십시오. 아직 아무것도 저장되지 않았습니다.
setting-mine = 내가 입력한 값: { $value }
setting-theirs = 현재 적용 중인 다른 사람의 값: { $value }
setting-not-cleared = 지우지 않았습니다. 현재 적용 중인 다른 사람의 값: { $value }. 없애려면 다시 지우고, 유지하려면 그대로 두십시오.

setting-account-stream-limit = 계정당 스트림 수
setting-account-stream-limit-about = 계정 하나가 동시에 처리할 수 있는 스트림 수입니다. 0은 무제한입니다.
setting-account-create-limit = 계정당 시작 중인 요청 수
setting-account-create-limit-about = 계정 하나에서 동시에 시작할 수 있는 요청 수입니다. 0은 무제한입니다.
setting-account-job-limit = 계정당 작업 수
setting-account-job-limit-about = 계정 하나가 동시에 맡을 수 있는 작업 수입니다. 0은 무제한입니다.
setting-account-stream-reserve = 계정당 예비 스트림 수
setting-account-stream-reserve-about = 진행 중인 응답에 다시 연결하는 클라이언트를 위해 계정마다 남겨 두는 스트림 슬롯 수입니다.
setting-capacity-wait-seconds = 용량 대기 시간 (초)
setting-capacity-wait-seconds-about = 요청이 빈 슬롯을 기다릴 수 있는 시간입니다. 0이면 즉시 거부합니다.
setting-waiters-per-key = 키당 대기 요청 수
setting-waiters-per-key-about = 클라이언트 키 하나의 요청이 동시에 대기할 수 있는 최대 건수입니다.
setting-park-commit-seconds = 대기 중 스트림 응답 시작 (초)
setting-park-commit-seconds-about = 이 시간만큼 대기한 스트리밍 요청에는 응답을 먼저 시작하고 차례가 올 때까지 연결을 유지합니다. 용량 대기 시간이 더 길 때 쓰입니다.
setting-fair-share-congestion-threshold-pct = 공정 배분 혼잡 임계값 (%)
setting-fair-share-congestion-threshold-pct-about = 풀의 용량이 이 비율 이상 사용되면 풀을 쓰려는 클라이언트 키들의 가중치에 따라 나눕니다. 0이면 나누지 않습니다.
setting-max-attempts = 요청당 시도 횟수
setting-max-attempts-about = 요청 하나를 시도할 수 있는 최대 계정 수입니다.
setting-connect-timeout-seconds = 연결 시간 제한 (초)
setting-connect-timeout-seconds-about = TLS를 포함해 업스트림에 연결하기까지 허용되는 시간입니다.
setting-header-timeout-seconds = 응답 헤더 시간 제한 (초)
setting-header-timeout-seconds-about = 업스트림의 응답 헤더가 도착하기까지 허용되는 시간입니다.
setting-idle-timeout-seconds = 최대 무응답 시간 (초)
setting-idle-timeout-seconds-about = 응답 도중 데이터가 오지 않아도 되는 최대 시간입니다. 응답 전체 길이에는 제한이 없습니다.
setting-request-body-limit-mb = 최대 요청 본문 크기 (MiB)
setting-request-body-limit-mb-about = 본문이 이보다 큰 요청은 거부합니다.
setting-require-client-key = 클라이언트 키 필수
setting-require-client-key-about = 클라이언트 키가 없는 요청을 거부할지 정합니다. 끄면 이 주소에 접근할 수 있는 누구나 요청을 보낼 수 있습니다.
setting-cors-allowed-origins = 허용된 브라우저 출처
setting-cors-allowed-origins-about = 브라우저에서 요청을 보낼 수 있는 출처입니다. 모두 허용하려면 *, 아니면 쉼표로 구분한 목록을 입력합니다.
setting-request-log-retention-days = 요청 로그 보관 기간 (일)
setting-request-log-retention-days-about = 요청 로그를 보관하는 기간입니다. 0이면 보관하지 않습니다.
setting-stage-trace = 모든 단계 기록
setting-stage-trace-about = 모든 요청의 모든 단계를 로그에 기록할지 정합니다.
setting-shutdown-grace-seconds = 종료 유예 시간 (초)
setting-shutdown-grace-seconds-about = 종료 요청 후 진행 중인 요청을 계속 처리할 수 있는 시간입니다.
setting-session-ttl-hours = 로그인 유지 시간 (시간)
setting-session-ttl-hours-about = 대시보드 로그인이 유지되는 시간입니다.
setting-selection-strategy = 계정 선택 방식
setting-selection-strategy-about = 처리할 수 있는 계정 중에서 고르는 방식입니다. least_loaded(가장 여유 있는 계정), round_robin(차례대로), fill_first(첫 계정이 찰 때까지).
setting-affinity-ttl-seconds = 대화의 세션 고정 시간(초)
setting-affinity-ttl-seconds-about = 공급자의 캐시를 활용하도록 대화가 직전에 쓰던 계정을 우선하는 시간입니다. 0이면 사용하지 않습니다.
setting-retry-upstream-5xx = 서버 오류 후 다른 계정으로 이동
setting-retry-upstream-5xx-about = 500, 502, 504, 520, 524, 527 응답 뒤에도 다른 계정으로 다시 보냅니다. 이미 처리되었다면 요금이 두 번 청구될 수 있습니다.
setting-breaker-failure-threshold = 엔드포인트 차단까지의 연속 실패 횟수
setting-breaker-failure-threshold-about = 이 횟수만큼 연달아 실패한 엔드포인트에는 1분 동안 요청을 보내지 않으며, 그 뒤 요청 하나로 시험합니다.
setting-accepts-words = 다음 중 하나: { $words }
setting-takes-words = 허용되지 않는 값입니다. { $words } 중 하나만 쓸 수 있습니다.

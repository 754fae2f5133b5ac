nav-concurrency = 동시성
conc-filters = { $count ->
    [0] 필터: 없음
   *[other] 필터: { $count }개 적용
}
conc-filter = 보기 좁히기
conc-apply = 적용
conc-clear = 필터 해제
conc-any-key = 모든 키
conc-any-account = 모든 계정
conc-any-stage = 모든 단계
conc-gone = 제거된 항목
conc-pool = 풀
conc-of-capacity = / { $capacity } 진행 중
conc-of-unlimited = 진행 중, 한도 없음
conc-waiting = { $count }건 대기 중, 최장 { $wait }
conc-nobody-waits = 대기 중인 요청이 없습니다.
conc-gate-closed = 혼잡: 키마다 배분 몫까지만 허용
conc-gate-open = 혼잡하지 않음 ({ $from }부터 혼잡)
conc-gate-off = 공정 배분 꺼짐
conc-gate-nothing = 지금 요청을 처리할 수 있는 계정이 없음
conc-gate-unlimited = 배분 몫 없음: 무제한 계정이 있음
conc-congested-from = { $from }부터 혼잡
conc-reserve = 예비 슬롯 { $count }개
conc-others = 그 밖의 키
conc-all-keys = 모든 키 표시
conc-accounts = 계정
conc-idle = 유휴 { $count }개
conc-no-account = { $count ->
    [0] 아직 계정이 없습니다.
   *[other] 모든 계정이 요청을 받고 있으며 유휴 상태입니다.
}
conc-slots = 스트림 { $streams }개, 시작 중 { $creates }건, 작업 { $jobs }개
conc-accounts-help = 한 칸이 슬롯 하나이며, 끝의 빗금 칸은 재연결용 예비 슬롯입니다. 막대 아래 가는 선은 시작 중인 요청과 작업입니다.
conc-keys = 점유하거나 대기 중인 키
conc-drawn = 막대
conc-share = 배분 몫
conc-weight = 가중치
conc-oldest = 최장 대기
conc-refused = 최근 1분 거부
conc-over = 몫 초과
conc-share-help = 막대의 표시는 키의 배분 몫으로, 풀이 혼잡할 때 점유할 수 있는 한도입니다.
conc-waits = 대기 이유
conc-why = 대기 이유
conc-frees = 해소 조건
conc-soonest = (가장 빠르면 { $in })
conc-live = 진행 중인 요청
conc-live-all = 전체 { $count }건
conc-live-none = 진행 중인 요청이 없습니다.
conc-live-none-match = 조건에 맞는 진행 중인 요청이 없습니다.
conc-request = 요청
conc-stage = 단계
conc-in-stage = 단계 경과
conc-age = 전체 경과
conc-release = 해제
conc-more = 50개 더 보기
conc-more-left = { $count }개가 더 있습니다.
conc-reset = 슬롯 다시 세기
conc-reset-ask = 모든 슬롯을 다시 셀까요?
conc-reset-leases = { $count ->
    [0] 점유 중인 슬롯이 없습니다.
   *[other] 현재 슬롯 점유 { $count }건을 기준으로 사용량을 다시 셉니다.
}
conc-reset-waiters = { $count ->
    [0] 대기 중인 요청이 없습니다.
   *[other] 대기 요청 { $count }건을 다시 검토합니다.
}
conc-reset-keeps = 진행 중인 요청은 끊기지 않으며 쿨다운도 끝나지 않습니다. 집계가 맞으면 아무것도 바뀌지 않습니다.
conc-done-reset = 다시 세었습니다. 잘못 집계된 슬롯 { $slots }개, 통과한 요청 { $granted }건.
conc-done-released = 해당 슬롯 점유를 해제했습니다.
conc-release-title = 슬롯 해제
conc-release-ask = { $lease } 슬롯 점유를 해제할까요?
conc-release-frees = { $accounts } 계정에서 반환: 스트림 { $streams }개, 시작 { $creates }건, 작업 { $jobs }개.
conc-release-held = 점유 시간 { $age }, 점유자: { $name }
conc-release-runs = 요청 자체는 계속 진행됩니다. 끝날 때까지 공급자에게는 한도보다 하나 더 많은 요청이 보이며, 거부될 수 있습니다.
conc-release-waiters = { $count ->
    [0] 지금 대기 중인 요청은 없습니다.
   *[other] 요청 { $count }건이 대기 중이며, 다음 차례의 요청이 진행될 수 있습니다.
}
waits-stream = 빈 스트림 슬롯 없음
waits-create = 빈 시작 슬롯 없음
waits-job = 빈 작업 슬롯 없음
waits-credential = 모든 자격 증명이 자체 한도에 도달
waits-owner = 상태를 아는 유일한 계정이 가득 참
waits-cooling = 모든 계정이 쿨다운 중
waits-share = 키가 배분 몫을 모두 점유
waits-other = 지금 처리할 계정이 없음
frees-stream = 스트림 종료
frees-create = 업스트림 응답 시작
frees-job = 작업 종료
frees-slot = 해당 슬롯 반환
frees-cooldown = 쿨다운 종료
frees-share = 이 키의 스트림 종료 또는 혼잡 완화
frees-pool = 풀 변경
stage-received = 수신됨
stage-authenticated = 인증됨
stage-parsed = 분석됨
stage-selected = 계정 선택 중
stage-parked = 슬롯 대기 중
stage-admitted = 허용됨
stage-dispatched = 업스트림 전송됨
stage-upstream-headers = 업스트림 응답 시작
stage-first-byte = 스트리밍 중
stage-finished = 완료됨

# 모든 페이지에 쓰이는 말.
skip-to-content = 본문으로 건너뛰기
navigation = 탐색
menu = 메뉴
nav-overview = 개요
nav-settings = 설정
log-out = 로그아웃
language = 언어
theme = 테마
theme-system = 시스템 설정
theme-light = 밝게
theme-dark = 어둡게
live = 실시간
live-stale = 갱신 멈춤, 다시 시도 중. 마지막 갱신
live-signed-out = 로그아웃됨
as-of = 기준 시각
refresh = 새로 고침
copy = 복사
copied = 복사됨
as-table = 표로 보기
number = { $value }
of-capacity = / { $capacity }
of-unlimited = / 무제한
form-faults = 아직 저장할 수 없습니다.
inherit-value = 상속: { $value } ({ $source ->
    [override] 설정값
    [environment] 환경 변수
   *[default] 기본값
})
own-value = 재정의:

date = { $year }년 { $month }월 { $day }일
date-time = { $date } { $time }
span-milliseconds = { $count }ms
span-seconds = { $count }초
span-minutes = { $count }분
span-hours = { $count }시간
span-days = { $count }일

error-not-found = 페이지를 찾을 수 없습니다
error-not-found-help = 주소를 잘못 입력했거나 해당 항목이 제거되었습니다.
error-lease-gone = 이미 해제된 슬롯입니다
error-lease-gone-help = 슬롯을 점유하던 요청이 그사이 끝났거나 이미 해제되었습니다. 더 할 일은 없습니다.
error-wrong-method = 이 주소는 그렇게 사용할 수 없습니다
error-wrong-method-help = 이전 페이지로 돌아가 버튼을 사용하십시오.
error-cross-site = 요청이 거부되었습니다
error-cross-site-help = 브라우저에 따르면 다른 사이트의 페이지가 보낸 요청입니다. 이 주소를 직접 열고 다시 시도하십시오.
error-form = 양식을 읽을 수 없습니다
error-form-help = 페이지를 새로 고친 뒤 다시 보내십시오.
error-store = 지금은 데이터베이스를 사용할 수 없습니다
error-store-help = 요청은 계속 처리됩니다. 디스크를 확인한 뒤 다시 시도하십시오.
error-internal = fairlane 내부에서 문제가 발생했습니다
error-internal-help = 자세한 내용은 로그에 있습니다.
error-back = 개요로 이동
error-back-concurrency = 동시성 페이지로 이동

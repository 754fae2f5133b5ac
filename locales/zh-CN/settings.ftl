# 设置页面。
settings-title = 设置
settings-lead = 此处的设置优先于环境变量，环境变量优先于默认值。更改保存后立即生效。
settings-saved = 已保存并生效。
settings-cleared = 已清除，继承值现已生效。
settings-nothing = 没有更改，因此未保存任何内容。
settings-capacity = 容量
settings-routing = 路由
settings-timeouts = 超时
settings-clients = 客户端
settings-operation = 运行
settings-review = 检查更改：{ $group }
settings-refused = 已存储但未生效
settings-refused-lead = 这些记录在数据库中，但当前版本不接受，因此生效的是继承值。清除后记录会被删除。
setting-unknown = 当前版本没有这个名称的设置。
setting-takes-number = 值无效：应为 { $min } 到 { $max } 之间的整数。
setting-takes-switch = 值无效：应为 true 或 false。
setting-takes-origins = 值无效：应为 *，或以逗号分隔的来源，例如 https://chat.example.com。
setting-refused-changed = 其他人在此期间更改了这条记录，因此未清除。现在显示的是当前存储的内容。
review-title = 检查更改
review-lead = 尚未保存。保存后立即生效。
review-from = { $value }（{ $source ->
    [override] 来自此页面或 API
    [environment] 来自环境变量
   *[default] 默认值
}）
review-to = { $value }
review-edit = 继续修改
review-save = 保存 { $count } 项更改
setting-on = 开启
setting-off = 关闭
setting-nothing = 无
setting-in-effect = 当前生效：{ $value }（{ $source ->
    [override] 来自此页面或 API
    [environment] 来自环境变量
   *[default] 默认值
}）
setting-if-cleared = 清除后：{ $value }（{ $source ->
    [environment] 来自环境变量
   *[default] 默认值
}）
setting-clear = 清除：{ $name }
setting-locked = 已由环境变量 { $env } 指定，无法在此设置。请修改该环境变量后重启。
setting-accepts-number = 请输入 { $min } 到 { $max } 之间的整数，不带分隔符。未保存任何内容。
setting-accepts-switch = 只能选择开启或关闭。未保存任何内容。
setting-accepts-origins = 请输入 *，或以逗号分隔的来源，例如 https://chat.example.com。未保存任何内容。
setting-conflict = 其他人在此期间更改了这一项。请选择要使用的值；尚未保存任何内容。
setting-mine = 本次填写的值：{ $value }
setting-theirs = 对方的值（当前生效）：{ $value }
setting-not-cleared = 未清除。对方的值（当前生效）：{ $value }。如需去除，请再次清除；否则保持不变即可。

setting-account-stream-limit = 每个账号的流数
setting-account-stream-limit-about = 一个账号可以同时承载的流数；0 表示不限。
setting-account-create-limit = 每个账号正在发起的请求数
setting-account-create-limit-about = 一个账号可以同时发起的请求数；0 表示不限。
setting-account-job-limit = 每个账号的任务数
setting-account-job-limit-about = 一个账号可以同时承担的任务数；0 表示不限。
setting-account-stream-reserve = 每个账号的预留流数
setting-account-stream-reserve-about = 每个账号为重新连接到进行中响应的客户端预留的流槽位数。
setting-capacity-wait-seconds = 等待容量的时间（秒）
setting-capacity-wait-seconds-about = 请求等待空闲槽位的最长时间；0 表示立即拒绝。
setting-waiters-per-key = 每个密钥的排队请求数
setting-waiters-per-key-about = 一个客户端密钥最多可以同时排队的请求数。
setting-park-commit-seconds = 排队流开始响应的时间（秒）
setting-park-commit-seconds-about = 流式请求排队达到此时间后先开始响应，并保持连接直到轮到它；仅在等待容量的时间更长时有用。
setting-fair-share-congestion-threshold-pct = 公平分配的拥塞阈值（%）
setting-fair-share-congestion-threshold-pct-about = 资源池容量的使用比例达到此值后，按需要容量的客户端密钥的权重分配；0 表示从不分配。
setting-max-attempts = 每个请求的尝试次数
setting-max-attempts-about = 一个请求最多可以尝试的账号数。
setting-connect-timeout-seconds = 连接超时（秒）
setting-connect-timeout-seconds-about = 连接上游的时限，包括 TLS 握手。
setting-header-timeout-seconds = 响应头超时（秒）
setting-header-timeout-seconds-about = 等待上游响应头到达的时限。
setting-idle-timeout-seconds = 最长静默时间（秒）
setting-idle-timeout-seconds-about = 响应过程中允许的最长静默时间；响应的总时长不受限制。
setting-request-body-limit-mb = 请求体上限（MiB）
setting-request-body-limit-mb-about = 请求体超过此大小的请求会被拒绝。
setting-require-client-key = 要求客户端密钥
setting-require-client-key-about = 是否拒绝没有客户端密钥的请求；关闭后，任何能访问此地址的人都可以发送请求。
setting-cors-allowed-origins = 允许的浏览器来源
setting-cors-allowed-origins-about = 允许从浏览器发送请求的来源：* 表示全部，或填写以逗号分隔的列表。
setting-request-log-retention-days = 请求日志保留时间（天）
setting-request-log-retention-days-about = 请求日志的保留时间；0 表示不保留。
setting-stage-trace = 记录每个阶段
setting-stage-trace-about = 是否将每个请求的每个阶段写入日志。
setting-shutdown-grace-seconds = 停止宽限时间（秒）
setting-shutdown-grace-seconds-about = 收到停止指令后，进行中的请求可以继续的时间。
setting-session-ttl-hours = 登录有效期（小时）
setting-session-ttl-hours-about = 登录仪表盘后保持有效的时间。
setting-selection-strategy = 账号选择方式
setting-selection-strategy-about = 在可处理请求的账号中如何选择：least_loaded（占用最少）、round_robin（轮流）或 fill_first（先用满第一个）。
setting-affinity-ttl-seconds = 会话保持时间（秒）
setting-affinity-ttl-seconds-about = 会话优先使用上次所用账号的时长，以便利用提供商的缓存。0 表示不保持。
setting-retry-upstream-5xx = 服务器错误后换账号重试
setting-retry-upstream-5xx-about = 收到 500、502、504、520、524 或 527 后也换一个账号重试。上游可能已完成处理，因此可能重复计费。
setting-breaker-failure-threshold = 端点熔断前的连续失败次数
setting-breaker-failure-threshold-about = 端点连续失败达到此次数后，一分钟内不再接收请求，之后用一个请求试探。
setting-accepts-words = 可选值：{ $words }
setting-takes-words = 值无效：应为 { $words } 之一。

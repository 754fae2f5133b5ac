nav-concurrency = 并发
conc-filters = { $count ->
    [0] 筛选：无
   *[other] 筛选：已启用 { $count } 项
}
conc-filter = 筛选视图
conc-apply = 应用
conc-clear = 清除筛选
conc-any-key = 所有密钥
conc-any-account = 所有账号
conc-any-stage = 所有阶段
conc-gone = 已移除的项
conc-pool = 资源池
conc-of-capacity = / { $capacity } 进行中
conc-of-unlimited = 进行中，无上限
conc-waiting = { $count } 个排队中，最久 { $wait }
conc-nobody-waits = 没有排队的请求。
conc-gate-closed = 拥塞：各密钥以其公平份额为限
conc-gate-open = 未拥塞（达到 { $from } 时拥塞）
conc-gate-off = 公平分配已关闭
conc-gate-nothing = 当前没有可用账号
conc-gate-unlimited = 无公平份额：有账号不限并发
conc-congested-from = 达到 { $from } 时拥塞
conc-reserve = 预留槽位 { $count } 个
conc-others = 其他密钥
conc-all-keys = 显示所有密钥
conc-accounts = 账号
conc-idle = 空闲 { $count } 个
conc-no-account = { $count ->
    [0] 还没有账号。
   *[other] 所有账号都可接收请求，且处于空闲状态。
}
conc-slots = { $streams } 个流，{ $creates } 个发起中，{ $jobs } 个任务
conc-accounts-help = 每格为一个槽位，末尾的斜纹格是供客户端重连的预留槽位。条形下方的细线表示正在发起的请求和任务。
conc-keys = 占用或排队的密钥
conc-drawn = 图示
conc-share = 公平份额
conc-weight = 权重
conc-oldest = 最长等待
conc-refused = 近 1 分钟拒绝
conc-over = 超出份额
conc-share-help = 条形中的标记是该密钥的公平份额，即资源池拥塞时可占用的上限。
conc-waits = 排队原因
conc-why = 排队原因
conc-frees = 放行条件
conc-soonest = （最早还需 { $in }）
conc-live = 进行中的请求
conc-live-all = 共 { $count } 个
conc-live-none = 没有进行中的请求。
conc-live-none-match = 没有符合条件的进行中请求。
conc-request = 请求
conc-stage = 阶段
conc-in-stage = 本阶段已过
conc-age = 总时长
conc-release = 释放
conc-more = 再显示 50 条
conc-more-left = 另有 { $count } 条未显示。
conc-reset = 重新清点槽位
conc-reset-ask = 重新清点所有槽位？
conc-reset-leases = { $count ->
    [0] 没有占用中的槽位。
   *[other] 将根据现有的 { $count } 个占用重新清点槽位。
}
conc-reset-waiters = { $count ->
    [0] 没有排队的请求。
   *[other] 将重新检查 { $count } 个排队请求。
}
conc-reset-keeps = 进行中的请求不会被中断，冷却也不会结束。若计数无误，则不会有任何变化。
conc-done-reset = 已重新清点。计数有误的槽位：{ $slots } 个；放行的请求：{ $granted } 个。
conc-done-released = 已释放该占用的槽位。
conc-release-title = 释放槽位
conc-release-ask = 释放 { $lease } 占用的槽位？
conc-release-frees = 在 { $accounts } 上归还：流 { $streams } 个，发起 { $creates } 个，任务 { $jobs } 个。
conc-release-held = 已占用 { $age }，占用者：{ $name }
conc-release-runs = 该请求会继续运行。在其结束前，提供商看到的请求会比上限多一个，可能因此拒绝。
conc-release-waiters = { $count ->
    [0] 目前没有排队的请求。
   *[other] 有 { $count } 个请求排队中，轮到的请求即可放行。
}
waits-stream = 没有空闲的流槽位
waits-create = 没有空闲的发起槽位
waits-job = 没有空闲的任务槽位
waits-credential = 所有凭证都已达到自身上限
waits-owner = 唯一拥有其状态的账号已满
waits-cooling = 所有账号都在冷却
waits-share = 该密钥已用满公平份额
waits-other = 目前没有账号可处理
frees-stream = 有流结束
frees-create = 上游开始响应
frees-job = 有任务结束
frees-slot = 相应槽位空出
frees-cooldown = 冷却结束
frees-share = 该密钥的流结束，或拥塞缓解
frees-pool = 资源池变化
stage-received = 已接收
stage-authenticated = 已认证
stage-parsed = 已解析
stage-selected = 正在选择账号
stage-parked = 等待槽位
stage-admitted = 已放行
stage-dispatched = 已发往上游
stage-upstream-headers = 上游已响应
stage-first-byte = 正在传输
stage-finished = 已完成

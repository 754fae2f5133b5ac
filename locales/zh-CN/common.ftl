# 所有页面共用的文字。
skip-to-content = 跳到正文
navigation = 导航
menu = 菜单
nav-overview = 概览
nav-settings = 设置
log-out = 退出登录
language = 语言
theme = 主题
theme-system = 跟随系统
theme-light = 浅色
theme-dark = 深色
live = 实时
live-stale = 数据未更新，正在重试；上次更新
live-signed-out = 已退出登录
as-of = 截至
refresh = 刷新
copy = 复制
copied = 已复制
as-table = 以表格查看
number = { $value }
of-capacity = / { $capacity }
of-unlimited = / 不限
form-faults = 暂时无法保存。
inherit-value = 继承值：{ $value }（{ $source ->
    [override] 来自设置
    [environment] 来自环境变量
   *[default] 默认值
}）
own-value = 覆盖：

date = { $year } 年 { $month } 月 { $day } 日
date-time = { $date } { $time }
span-milliseconds = { $count } 毫秒
span-seconds = { $count } 秒
span-minutes = { $count } 分钟
span-hours = { $count } 小时
span-days = { $count } 天

error-not-found = 找不到此页面
error-not-found-help = 地址可能输入有误，或者对应的内容已被移除。
error-lease-gone = 这些槽位已经释放
error-lease-gone-help = 占用槽位的请求已经结束，或者槽位已被释放，无需再做任何操作。
error-wrong-method = 不能以这种方式使用此地址
error-wrong-method-help = 请返回页面并使用其中的按钮。
error-cross-site = 请求被拒绝
error-cross-site-help = 浏览器表明该请求来自其他网站的页面。请自行打开此地址后重试。
error-form = 无法读取表单
error-form-help = 请重新加载页面后再次提交。
error-store = 数据库当前不可用
error-store-help = 请求仍在处理。请检查磁盘后重试。
error-internal = fairlane 内部出错
error-internal-help = 详情请查看日志。
error-back = 返回概览
error-back-concurrency = 返回并发页面

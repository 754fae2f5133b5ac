# Words of every page.
skip-to-content = Skip to content
navigation = Navigation
menu = Menu
nav-overview = Overview
nav-settings = Settings
log-out = Log out
language = Language
theme = Theme
theme-system = As the system
theme-light = Light
theme-dark = Dark
live = Live
live-stale = Stale, trying again; last seen
live-signed-out = Signed out
as-of = As of
refresh = Refresh
copy = Copy
copied = Copied
as-table = As a table
number = { $value }
of-capacity = of { $capacity }
of-unlimited = of unlimited
form-faults = This cannot be taken yet.
inherit-value = Inherit: { $value }, from { $source ->
    [override] the setting
    [environment] the environment
   *[default] the default
}
own-value = Override:

date = { $day } { $month ->
    [1] Jan
    [2] Feb
    [3] Mar
    [4] Apr
    [5] May
    [6] Jun
    [7] Jul
    [8] Aug
    [9] Sep
    [10] Oct
    [11] Nov
   *[12] Dec
} { $year }
date-time = { $date }, { $time }
span-milliseconds = { $count } ms
span-seconds = { $count } s
span-minutes = { $count } min
span-hours = { $count } h
span-days = { $count } d

error-not-found = There is no such page
error-not-found-help = The address may have been mistyped, or what it showed was removed.
error-lease-gone = These slots are free already
error-lease-gone-help = The request that held them has ended meanwhile, or they were released. There is nothing left to do.
error-wrong-method = This address cannot be used that way
error-wrong-method-help = Go back and use the button of the page.
error-cross-site = This was refused
error-cross-site-help = The browser says that a page of another site sent it. Open this address yourself and try again.
error-form = The form could not be read
error-form-help = Load the page again and send it once more.
error-store = The database cannot be used right now
error-store-help = Requests are still served. Check the disk, then try again.
error-internal = Something went wrong inside fairlane
error-internal-help = Its log says what.
error-back = To the overview
error-back-concurrency = To the concurrency page

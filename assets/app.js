// What a browser with script gets on top: live parts, copying, the viewer's time zone.
// Everything works without this file.
"use strict";

(() => {
  const HIDDEN_PAUSE_MS = 500;
  const LONGEST_MS = 30000;
  const STALE_AFTER = 3;

  // The zone in which the server writes times.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !document.cookie.includes("fairlane_zone=" + zone)) {
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = "fairlane_zone=" + zone + "; SameSite=Lax; Path=/; Max-Age=31536000" + secure;
  }

  // On wide screens the menu is always open; on narrow ones it is a menu.
  const wide = matchMedia("(min-width: 1024px)");
  const unfold = () => {
    for (const menu of document.querySelectorAll("[data-wide-open]")) menu.open = wide.matches;
  };
  wide.addEventListener("change", unfold);
  unfold();

  // One menu at a time, closed by Escape and by a click elsewhere.
  const menus = () => document.querySelectorAll("details.menu[open]");
  document.addEventListener("click", (event) => {
    for (const menu of menus()) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of menus()) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });

  // Copying.
  const showCopyButtons = (root) => {
    if (!navigator.clipboard) return;
    for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const text = document.getElementById(button.dataset.copy).textContent;
    const word = button.querySelector("span");
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      return;
    }
    const before = word.textContent;
    word.textContent = button.dataset.copied;
    setTimeout(() => { word.textContent = before; }, 2000);
  });
  showCopyButtons(document);

  // Live parts: one request per tick, none while hidden, later and later while they fail.
  let misses = 0;
  let version = "";
  const mark = document.getElementById("live-mark");
  const say = (word) => {
    if (mark) mark.querySelector(".live-word").textContent = word;
  };
  const part = () => document.querySelector("[data-tick]");
  const next = () => {
    const live = part();
    if (!live) return;
    const every = Number(live.dataset.tick);
    setTimeout(tick, document.hidden ? HIDDEN_PAUSE_MS : Math.min(every * 2 ** misses, LONGEST_MS));
  };
  const tick = () => {
    const live = part();
    if (!live) return;
    if (document.hidden) return next();
    htmx.trigger(live, "tick");
  };
  const failed = () => {
    misses += 1;
    if (mark && misses >= STALE_AFTER) {
      say(mark.dataset.stale);
      mark.classList.add("is-stale");
      part()?.classList.add("is-stale");
    }
    next();
  };
  // After a swap the event comes from what took the part's place.
  const isLive = (event) => (event.detail.requestConfig?.elt ?? event.detail.elt)?.matches?.("[data-tick]");
  document.addEventListener("htmx:configRequest", (event) => {
    if (isLive(event)) event.detail.headers["X-Shown-Version"] = version;
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (!isLive(event)) return;
    const xhr = event.detail.xhr;
    if (!xhr || xhr.status < 200 || xhr.status >= 300) return failed();
    if (xhr.getResponseHeader("HX-Redirect")) {
      if (mark) say(mark.dataset.out);
      return;
    }
    version = xhr.getResponseHeader("X-Version") || version;
    misses = 0;
    if (mark) {
      const now = new Date();
      const time = mark.querySelector("time");
      say(mark.dataset.live);
      mark.classList.remove("is-stale");
      time.dateTime = now.toISOString();
      time.textContent = now.toTimeString().slice(0, 8);
    }
    next();
  });
  // A live part that failed must not be replaced by the error's text; what was unfolded stays so.
  let unfolded = [];
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!isLive(event)) return;
    if (event.detail.xhr.status >= 400) event.detail.shouldSwap = false;
    unfolded = Array.from(document.querySelectorAll("[data-tick] details[open][id]"), (d) => d.id);
  });
  document.addEventListener("htmx:afterSettle", () => {
    for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  });
  document.addEventListener("htmx:afterSwap", (event) => showCopyButtons(event.target));
  if (mark) {
    mark.querySelector(".live-refresh").hidden = true;
    mark.querySelector(".zone").hidden = true;
  }
  next();
})();

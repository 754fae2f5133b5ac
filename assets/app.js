// What a browser with script gets on top: live parts, copying, the viewer's time zone.
// Everything works without this file.
"use strict";

(() => {
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
    for (const menu of document.querySelectorAll("[data-wide-open]")) {
      menu.open = wide.matches;
      menu.classList.add("is-settled");
    }
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

  // Live parts: one request per tick, none while hidden or paused, later and later while they fail,
  // none any more once the person is signed out.
  let misses = 0;
  let version = "";
  let timer = 0;
  let isAsking = false;
  let isPaused = false;
  let isOut = false;
  const mark = document.getElementById("live-mark");
  const say = (word) => {
    if (mark) mark.querySelector(".live-word").textContent = word;
  };
  const part = () => document.querySelector("[data-tick]");
  const isQuiet = () => isPaused || isOut || document.hidden;
  const next = () => {
    clearTimeout(timer);
    const live = part();
    if (!live || isQuiet()) return;
    timer = setTimeout(tick, Math.min(Number(live.dataset.tick) * 2 ** misses, LONGEST_MS));
  };
  const tick = () => {
    const live = part();
    if (!live || isQuiet() || isAsking) return;
    isAsking = true;
    htmx.trigger(live, "tick");
  };
  const showStale = (isStale) => {
    mark?.classList.toggle("is-stale", isStale);
    part()?.classList.toggle("is-stale", isStale);
  };
  const failed = () => {
    misses += 1;
    if (mark && misses >= STALE_AFTER && !isPaused) {
      say(mark.dataset.stale);
      showStale(true);
    }
    next();
  };
  const signedOut = () => {
    isOut = true;
    showStale(true);
    if (!mark) return;
    mark.classList.add("is-out");
    pause.hidden = true;
    say(mark.dataset.out);
  };
  const seen = () => {
    misses = 0;
    showStale(isPaused);
    if (mark) {
      const now = new Date();
      const time = mark.querySelector("time");
      say(isPaused ? mark.dataset.paused : mark.dataset.live);
      time.dateTime = now.toISOString();
      time.textContent = now.toTimeString().slice(0, 8);
    }
    next();
  };
  // A page that is looked at again is brought up to date at once.
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    tick();
  });
  const pause = document.getElementById("live-pause");
  pause?.addEventListener("click", () => {
    isPaused = !isPaused;
    pause.textContent = isPaused ? pause.dataset.resume : pause.dataset.pause;
    if (isPaused) {
      clearTimeout(timer);
      say(mark.dataset.paused);
      showStale(true);
    } else {
      misses = 0;
      tick();
    }
  });
  // After a swap the event comes from what took the part's place.
  const isLive = (event) => (event.detail.requestConfig?.elt ?? event.detail.elt)?.matches?.("[data-tick]");
  document.addEventListener("htmx:configRequest", (event) => {
    if (!isLive(event)) return;
    event.detail.headers["X-Shown-Version"] = version;
    event.detail.timeout = LONGEST_MS;
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (!isLive(event)) return;
    isAsking = false;
    const status = event.detail.xhr?.status ?? 0;
    if (status === 401) return signedOut();
    if (status < 200 || status >= 300) return failed();
    version = event.detail.xhr.getResponseHeader("X-Version") || version;
    seen();
  });
  // A live part that failed must not be replaced by the error's text; what was unfolded stays so.
  // Rows keep their place while somebody points at one of them or has the focus in one: what is new
  // comes at the end, and the order of the server with the next part after that.
  const keepPlaces = (html) => {
    const held = Array.from(document.querySelectorAll("[data-keeps-place]")).filter((list) => list.matches(":hover, :focus-within"));
    if (held.length === 0) return html;
    const draft = document.createElement("template");
    draft.innerHTML = html;
    for (const list of held) {
      const fresh = draft.content.getElementById(list.id);
      if (!fresh) continue;
      const name = (row) => row.querySelector("[id]")?.id;
      const places = new Map(Array.from(list.children, (row, place) => [name(row), place]));
      const place = (row) => places.get(name(row)) ?? places.size;
      fresh.append(...Array.from(fresh.children).sort((a, b) => place(a) - place(b)));
    }
    return draft.innerHTML;
  };
  let unfolded = [];
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!isLive(event)) return;
    // The words on being signed out go elsewhere, to the top of the page.
    const status = event.detail.xhr.status;
    if (status >= 400 && status !== 401) event.detail.shouldSwap = false;
    if (status === 200) event.detail.serverResponse = keepPlaces(event.detail.serverResponse);
    unfolded = Array.from(document.querySelectorAll("[data-tick] details[open][id]"), (d) => d.id);
  });
  // What needs attention is read out when its words change, and only then.
  const words = () => document.querySelector("[data-announce]")?.textContent.replace(/\s+/g, " ").trim();
  let told = words();
  document.addEventListener("htmx:afterSettle", () => {
    for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
    const now = words();
    if (now === told) return;
    told = now;
    const aloud = document.getElementById("live-words");
    if (aloud) aloud.textContent = now;
  });
  document.addEventListener("htmx:afterSwap", (event) => showCopyButtons(event.target));
  if (mark) {
    mark.querySelector(".live-refresh").hidden = true;
    mark.querySelector(".zone").hidden = true;
    pause.hidden = false;
  }
  next();
})();

// Scripts of the studio's pages. A handler gets the event, and `emit` to send values to the studio.
const studio = {
  // The heading of the step gets the focus once it is drawn, so that a screen reader continues from there. If
  // the step is drawn again before the user does anything, the new heading gets it. It does not get the focus
  // if the user has moved it meanwhile: anywhere in the step, or away from what was pressed in the header.
  focusStep() {
    studio.focusing?.abort();
    const {signal} = studio.focusing = new AbortController();
    const isFree = (active) => active === document.body
      || (active === studio.pressed && !active.closest(".main"));
    const focus = () => {
      const heading = document.querySelector(".main h2");
      if (!heading || signal.aborted || !isFree(document.activeElement)) return;
      heading.tabIndex = -1;
      heading.focus({preventScroll: true});
    };
    const again = new MutationObserver(() => { if (document.activeElement === document.body) focus(); });
    signal.addEventListener("abort", () => again.disconnect());
    for (const action of ["pointerdown", "keydown"])
      addEventListener(action, () => studio.focusing.abort(), {signal, capture: true});
    requestAnimationFrame(() => setTimeout(() => {
      focus();
      again.observe(document.body, {childList: true, subtree: true});
    }));
  },

  // An element that can be scrolled can have the focus. It is named after the heading of its card.
  nameScrolled() {
    const name = () => {
      for (const box of document.querySelectorAll(".scroll, .choices")) {
        const scrolls = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
        if (!scrolls) { box.removeAttribute("tabindex"); continue; }
        box.tabIndex = 0;
        if (box.getAttribute("aria-label")) continue;
        const heading = box.closest(".card")?.querySelector("h2, h3, summary");
        box.setAttribute("role", "region");
        box.setAttribute("aria-label", heading?.textContent || "Table");
      }
    };
    let waiting = false;
    const soon = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; name(); });
    };
    new MutationObserver(soon).observe(document.body, {childList: true, subtree: true});
    addEventListener("resize", soon);
    document.addEventListener("toggle", soon, true);
    soon();
  },

  // The framework has its own window.onbeforeunload, with which it recognizes a reloaded tab.
  followAddress() {
    const press = () => { studio.pressed = document.activeElement; };
    addEventListener("click", press, true);
    addEventListener("popstate", () => { press(); emitEvent("shoal-address", location.pathname); });
    addEventListener("beforeunload", (event) => { if (studio.unsaved) event.preventDefault(); });
  },

  // After the end of a session, the WebSocket is rejected; the page then reloads and shows the sign-in form.
  reloadAfterSession() {
    window.socket.on("connect_error", async () => {
      const answer = await fetch("/api/session").catch(() => null);  // null: the studio cannot be reached
      if (answer?.status === 401) location.reload();
    });
  },

  isDark() {
    const stored = localStorage.getItem("shoal-dark");
    return stored === null ? matchMedia("(prefers-color-scheme: dark)").matches : stored === "true";
  },

  showAddress(path, title, push) {
    if (location.pathname !== path) history[push ? "pushState" : "replaceState"](null, "", path);
    document.title = title;
  },

  // If the editor is below the columns, it is scrolled into view; it gets the focus in any case.
  showEditor(id) {
    setTimeout(() => {
      const side = getHtmlElement(id), top = side.getBoundingClientRect().top;
      if (top < 0 || top > innerHeight / 2) side.scrollIntoView();
      side.querySelector("h2").focus({preventScroll: true});
    });
  },

  showRow(id) {
    const row = getHtmlElement(id);
    row.scrollIntoView({block: "center"});
    row.querySelector("button").focus({preventScroll: true});
  },

  // The rows of the columns: one element each, whose cells are HTML.
  chooseInRow(event, emit) {
    const row = event.target.closest("tr");
    row.choices = (row.choices ?? 0) + 1;
    emit([row.dataset.column, event.target.value, row.choices]);
  },

  pressInRow(event, emit) {
    if (event.target.closest("button")) emit([event.target.closest("tr").dataset.column, "", 0]);
  },

  // A role that is older than the last choice in the row is not shown: the studio has yet to hear of that choice.
  showRole(id, role, choices) {
    const row = getHtmlElement(id);
    const input = row?.querySelector(`[value="${role}"]`);
    if (input && choices >= (row.choices ?? 0)) input.checked = true;
  },

  setCells(selector, cells) {
    for (const [id, content] of cells) {
      const cell = getHtmlElement(id)?.querySelector(selector);
      if (cell) cell.innerHTML = content;
    }
  },

  focusIn(id, selector) {
    setTimeout(() => getHtmlElement(id)?.querySelector(selector)?.focus());
  },

  // Files that are dropped on an element are uploaded.
  dragOver(event) {
    event.preventDefault();
    event.currentTarget.classList.add("over");
  },

  dragLeave(event) {
    event.currentTarget.classList.remove("over");
  },

  dropFile(event, upload) {
    event.preventDefault();
    studio.dragLeave(event);
    const files = event.dataTransfer.files;
    if (files.length) getElement(upload).$refs.qRef.addFiles([files[0]]);
  },

  // The buttons of an answer: the number of the offer, and whether it is pinned.
  pressOffer(event, emit) {
    const button = event.target.closest("[data-take], [data-pin]");
    if (!button || button.disabled) return;
    emit([Number(button.dataset.take || button.dataset.pin), "pin" in button.dataset]);
  },

  // Groups of values: items are dragged together if they are selected together.
  dragItems(event) {
    const box = event.target.closest("[data-item]").querySelector("input");
    const chosen = [...event.currentTarget.querySelectorAll("[data-item] input:checked")];
    const items = box.checked ? chosen.map((other) => other.value) : [box.value];
    event.dataTransfer.setData("text/plain", items.join(","));
  },

  overGroup(event) {
    if (event.target.closest("[data-group]")) event.preventDefault();
  },

  dropItems(event, emit) {
    const group = event.target.closest("[data-group]");
    if (!group) return;
    event.preventDefault();
    emit([event.dataTransfer.getData("text/plain"), group.dataset.group]);
  },

  changeGroups(event, emit) {
    const name = event.target.closest("[data-name]");
    if (name) { emit(["name", name.dataset.name, event.target.value]); return; }
    const boxes = event.currentTarget.querySelectorAll("[data-item] input:checked");
    emit(["select", [...boxes].map((box) => box.value).join(","), ""]);
  },

  // The limit of a band follows the pointer; the studio gets the position where it was released.
  pullLimit(event, emit) {
    const limit = event.target.closest("[role=slider]");
    if (!limit) return;
    event.preventDefault();
    limit.focus();
    const track = limit.parentElement.getBoundingClientRect();
    const share = (e) => Math.min(1, Math.max(0, (e.clientX - track.left) / track.width));
    const start = share(event);
    const move = (e) => { limit.style.left = `${100 * share(e)}%`; };
    const end = (e) => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
      if (Math.abs(share(e) - start) > 0.002) emit(["to", limit.dataset.limit, share(e)]);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
  },

  moveLimit(event, emit) {
    const limit = event.target.closest("[role=slider]");
    if (!limit) return;
    const steps = {ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -5, PageUp: 5};
    const remove = event.key === "Delete" || event.key === "Backspace", step = steps[event.key];
    if (step || remove) event.preventDefault();
    if (step) emit(["step", limit.dataset.limit, step]);
    if (remove) emit(["remove", limit.dataset.limit, 0]);
  },

  // The source of a grid: rows are requested as they become visible.
  rows(url, names, table, below) {
    const name = (id) => names[Number(id.slice(1))];
    return {getRows: async (asked) => {
      const body = {of: table, below, start: asked.startRow, count: asked.endRow - asked.startRow,
        sort: asked.sortModel.map((key) => [name(key.colId), key.sort === "desc"]),
        contains: Object.fromEntries(Object.entries(asked.filterModel)
          .map(([id, filter]) => [name(id), String(filter.filter ?? "").slice(0, 1000)]))};
      const headers = {"content-type": "application/json"};
      const answer = await fetch(url, {method: "POST", headers, body: JSON.stringify(body)}).catch(() => null);
      if (!answer?.ok) { asked.failCallback(); return; }
      const page = await answer.json();
      const rows = page.rows.map((row) => ({number: row.number, alike: row.alike,
        ...Object.fromEntries(row.values.map((value, i) => ["c" + i, value]))}));
      asked.successCallback(rows, page.total);
    }};
  },
};

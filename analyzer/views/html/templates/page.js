"use strict";
// Lights up paths, searches, and tells details. Text reaches the page through textContent only.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (tag, text, className) => {
    const element = document.createElement(tag);
    if (text) element.textContent = text;
    if (className) element.className = className;
    return element;
  };

  // ---------------------------------------------------------------------------------------------------------- theme
  const root = document.documentElement;
  const themes = ["auto", "light", "dark"];
  const button = document.getElementById("theme");
  const setTheme = (theme) => {
    root.dataset.theme = theme;
    button.lastElementChild.textContent = theme;
    try { localStorage.setItem("inductor-audit-theme", theme); } catch { /* a file page may have no storage */ }
  };
  let stored = null;
  try { stored = localStorage.getItem("inductor-audit-theme"); } catch { /* as above */ }
  setTheme(themes.includes(stored) ? stored : "auto");
  button.hidden = false;
  button.addEventListener("click", () => setTheme(themes[(themes.indexOf(root.dataset.theme) + 1) % themes.length]));

  // ---------------------------------------------------------------------------------------------------------- graphs
  class GraphPage {
    constructor(section) {
      this.section = section;
      this.g = section.dataset.g;
      this.lit = new Set();
      this.marked = [];
      this.picked = null;
      this.details = section.querySelector(".details");
      this.clearButton = section.querySelector(".clear");
      this.lists = all(".columns ul", section);
      this.listen();
    }

    // What is needed only once somebody looks at this graph.
    get data() {
      if (!this.parsed) {
        this.parsed = JSON.parse(this.section.querySelector(".data").textContent);
        this.parsed.above = this.parsed.below.map(() => []);
        this.parsed.below.forEach((heads, tail) => heads.forEach((head) => this.parsed.above[head].push(tail)));
      }
      return this.parsed;
    }

    row(number) { return document.getElementById(`${this.g}-${number}`); }

    path(number) {
      const found = new Set([number]);
      for (const next of [this.data.below, this.data.above]) {
        const waiting = [number];
        while (waiting.length) {
          for (const other of next[waiting.pop()]) {
            if (!found.has(other)) { found.add(other); waiting.push(other); }
          }
        }
      }
      return found;
    }

    light(number) {
      for (const element of this.marked) element.classList.remove("lit", "picked");
      this.lit = number === null ? new Set() : this.path(number);
      this.marked = [...this.lit].map((other) => this.row(other));
      if (number !== null) this.row(number).classList.add("picked");
      for (const picture of all(".canvas", this.section)) this.lightPicture(picture, number);
      for (const element of this.marked) element.classList.add("lit");
    }

    lightPicture(picture, number) {
      const boxes = all(".box", picture).filter((box) => this.lit.has(Number(box.dataset.n)));
      const edges = all(".edge", picture).filter((edge) => [edge.dataset.a, edge.dataset.b].includes(String(number)));
      this.marked.push(...boxes, ...edges);
      const here = picture.parentElement.querySelector(".here");
      if (here) here.textContent = boxes.length ? `● ${boxes.length} on the path` : "";
    }

    pin(number) {
      this.light(number);
      if (this.picked !== null) this.row(this.picked).setAttribute("aria-selected", "false");
      this.picked = number;
      this.section.classList.toggle("pinned", number !== null);
      this.clearButton.hidden = number === null;
      this.tell(number);
      if (number === null) return;
      this.row(number).setAttribute("aria-selected", "true");
      for (const list of this.lists) this.bringIntoView(list, number);
    }

    // Scrolls the columns, never the page.
    bringIntoView(list, number) {
      const own = this.row(number);
      const target = own.parentElement === list ? own : list.querySelector("li.lit");
      if (!target || list.scrollHeight <= list.clientHeight) return;
      const at = target.getBoundingClientRect(), frame = list.getBoundingClientRect();
      if (at.top < frame.top || at.bottom > frame.bottom) list.scrollTop += at.top - frame.top - frame.height / 3;
    }

    // -------------------------------------------------------------------------------------------------------- details
    tell(number) {
      this.details.replaceChildren();
      if (number === null) { this.details.append(make("p", "Nothing chosen yet.", "hint")); return; }
      const [name, text, why, evidence, at] = this.data.told[number];
      const title = make("h4");
      title.append(make("small", `${this.kind(number)} `), make("code", name || this.name(number)));
      this.details.append(title);
      if (text) this.details.append(make("p", text));
      if (why) this.details.append(make("p", why));
      const facts = [evidence && `known by ${evidence}`, at].filter(Boolean).join(" · ");
      if (facts) this.details.append(make("p", facts, "facts"));
      this.links("Comes from", this.data.above[number]);
      this.links("Leads to", this.data.below[number]);
      const code = this.data.code[number];
      if (code) this.details.append(this.codeBlock(code));
      this.details.scrollTop = 0;
    }

    codeBlock(code) {
      const block = make("pre", code);
      block.tabIndex = 0;
      block.setAttribute("role", "region");
      block.setAttribute("aria-label", "Generated code");
      return block;
    }

    kind(number) { return this.row(number).closest(".column").dataset.kind; }
    name(number) { return this.row(number).firstElementChild.textContent; }

    links(head, numbers) {
      if (!numbers.length) return;
      const line = make("p", "", "links");
      line.append(make("span", head));
      for (const number of numbers.slice(0, 40)) {
        const link = make("button", this.name(number));
        link.type = "button";
        link.addEventListener("click", () => { this.pin(number); this.focus(number); });
        line.append(link);
      }
      if (numbers.length > 40) line.append(make("em", `and ${numbers.length - 40} more, lit above`));
      this.details.append(line);
    }

    // ---------------------------------------------------------------------------------------------------- moving about
    focus(number) {
      const row = this.row(number);
      this.enter(row);
      row.focus({ preventScroll: true });
      row.scrollIntoView({ block: "nearest" });
    }

    // One row per column can be reached with Tab: the last that had the focus.
    enter(row) {
      const list = row.parentElement;
      if (list.entry) list.entry.tabIndex = -1;
      list.entry = row;
      row.tabIndex = 0;
    }

    shown(list) { return all("li", list).filter((row) => row.checkVisibility()); }

    sideways(row, step) {
      const from = this.lists.indexOf(row.parentElement);
      for (let at = from + step; at >= 0 && at < this.lists.length; at += step) {
        const lit = this.lists[at].querySelector("li.lit");
        if (lit || this.picked === null) return lit || this.lists[at].entry;
      }
      return null;
    }

    target(row, key) {
      const rows = this.shown(row.parentElement), at = rows.indexOf(row);
      switch (key) {
        case "ArrowDown": return rows[at + 1];
        case "ArrowUp": return rows[at - 1];
        case "PageDown": return rows[Math.min(at + 10, rows.length - 1)];
        case "PageUp": return rows[Math.max(at - 10, 0)];
        case "Home": return rows[0];
        case "End": return rows[rows.length - 1];
        case "ArrowRight": return this.sideways(row, 1);
        case "ArrowLeft": return this.sideways(row, -1);
        default: return undefined;
      }
    }

    key(event) {
      const row = event.target.closest("li");
      if (!row) return;
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); this.pin(this.number(row)); return; }
      const to = this.target(row, event.key);
      if (to === undefined && !event.key.startsWith("Arrow")) return;
      event.preventDefault();
      if (to) this.focus(this.number(to));
    }

    number(row) { return Number(row.id.split("-")[1]); }

    // ---------------------------------------------------------------------------------------------------------- search
    search(text) {
      const wanted = text.trim().toLowerCase();
      let hits = 0;
      for (const row of all(".columns li", this.section)) {
        const told = wanted && this.data.told[this.number(row)];
        const miss = Boolean(wanted) && !`${row.textContent} ${told[0] || ""} ${told[1] || ""}`.toLowerCase().includes(wanted);
        row.classList.toggle("miss", miss);
        if (!miss) hits += 1;
      }
      this.section.querySelector(".found").textContent = wanted ? `${hits.toLocaleString("en")} found` : "";
    }

    firstHit() {
      const hit = this.lists.flatMap((list) => this.shown(list)).find((row) => !row.classList.contains("miss"));
      if (hit) { this.pin(this.number(hit)); this.focus(this.number(hit)); }
    }

    // ---------------------------------------------------------------------------------------------------------- events
    listen() {
      const columns = this.section.querySelector(".columns");
      columns.addEventListener("click", (event) => this.withRow(event, (number) => { this.pin(number); this.focus(number); }));
      columns.addEventListener("pointerover", (event) => {
        if (event.pointerType !== "touch" && this.picked === null) this.withRow(event, (number) => this.light(number));
      });
      columns.addEventListener("pointerleave", () => { if (this.picked === null) this.light(null); });
      columns.addEventListener("focusin", (event) => this.withRow(event, (number, row) => {
        this.enter(row);
        if (this.picked === null) this.light(number);
      }));
      columns.addEventListener("keydown", (event) => this.key(event));
      for (const list of this.lists) this.enter(list.querySelector("li:not(.quiet)") || list.firstElementChild);
      for (const picture of all(".canvas", this.section)) {
        picture.addEventListener("click", (event) => {
          const box = event.target.closest(".box");
          if (box) this.pin(Number(box.dataset.n));
        });
      }
      for (const ledger of all(".ledger", this.section)) {
        ledger.addEventListener("click", (event) => {
          const name = event.target.closest(".go");
          if (name) { this.pin(Number(name.dataset.n)); this.focus(Number(name.dataset.n)); }
        });
      }
      this.clearButton.addEventListener("click", () => this.pin(null));
      const field = this.section.querySelector(".find");
      field.addEventListener("input", () => this.search(field.value));
      field.addEventListener("keydown", (event) => { if (event.key === "Enter") this.firstHit(); });
      const toggle = (box, name) => {
        const input = this.section.querySelector(box);
        if (input) input.addEventListener("change", () => this.section.classList.toggle(name, input.checked));
      };
      toggle(".only", "path-only");
      toggle(".inputs", "with-inputs");
    }

    withRow(event, act) {
      const row = event.target.closest("li");
      if (row) act(this.number(row), row);
    }
  }

  const pages = all(".graph").map((section) => new GraphPage(section));
  const current = () => pages.find((page) => !page.section.hidden);
  const choose = document.getElementById("graph");
  if (choose) choose.addEventListener("change", () => {
    for (const page of pages) page.section.hidden = page.g !== choose.value;
  });
  document.addEventListener("keydown", (event) => {
    const page = current();
    if (!page) return;
    if (event.key === "Escape") { page.pin(null); return; }
    if (event.key === "/" && !event.target.closest("input, select")) {
      event.preventDefault();
      page.section.querySelector(".find").focus();
    }
  });
})();

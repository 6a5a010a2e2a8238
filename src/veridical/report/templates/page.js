"use strict";
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const byId = (id) => document.getElementById(id);

  // Theme: the system's preference until the button is used.
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const showTheme = () => byId("theme").setAttribute("aria-pressed", String(isDark()));
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    showTheme();
  });
  system.addEventListener("change", showTheme);
  showTheme();

  // The numbers as a file.
  byId("download").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([byId("numbers").textContent], { type: "application/json" }));
    link.download = "veridical-report.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });

  // Reliability diagrams: which method is compared with the mean, and in which bins.
  const chosen = (name, otherwise) => {
    const input = document.querySelector(`input[name="${name}"]:checked`);
    return input ? input.value : otherwise;
  };
  const showPanels = () => {
    const method = chosen("after", "");
    const binning = chosen("binning", "mass");
    for (const panel of all(".panel")) {
      const wanted = panel.dataset.side === "before" || panel.dataset.method === method;
      panel.hidden = !(wanted && panel.dataset.binning === binning);
    }
    for (const legend of all("[data-legend]")) legend.hidden = legend.dataset.legend !== binning;
    const input = document.querySelector('input[name="after"]:checked');
    if (input) byId("after-title").textContent = input.parentElement.textContent.trim();
  };
  for (const input of all('input[name="after"], input[name="binning"]')) input.addEventListener("change", showPanels);
  if (document.querySelector(".panel")) showPanels(); // a browser may restore choices on reload

  // Lines that can be hidden.
  for (const group of all("[data-toggles]")) {
    const show = () => {
      const section = byId(group.dataset.toggles);
      for (const box of all("input", group)) {
        for (const line of all("[data-series]", section)) {
          if (line.dataset.series === box.value) line.classList.toggle("off", !box.checked);
        }
      }
    };
    group.addEventListener("change", show);
    show();
  }

  // Sorting: numbers by size, text by the alphabet, what is missing last.
  const compare = (a, b, sign) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const [x, y] = [Number(a), Number(b)];
    const numeric = !Number.isNaN(x) && !Number.isNaN(y);
    return sign * (numeric ? x - y : a.localeCompare(b, undefined, { numeric: true }));
  };
  for (const table of all("table.sortable")) {
    const headings = all("thead th", table);
    headings.forEach((heading, column) => {
      heading.querySelector("button").addEventListener("click", () => {
        const descending = heading.getAttribute("aria-sort") === "ascending";
        for (const other of headings) other.setAttribute("aria-sort", "none");
        heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = Array.from(body.rows);
        const key = (row) => row.cells[column].dataset.value;
        rows.sort((a, b) => compare(key(a), key(b), descending ? -1 : 1));
        body.append(...rows);
      });
    });
  }

  // Disputed samples of one class, or with one outcome.
  const classFilter = byId("class-filter");
  const outcomeFilter = byId("outcome-filter");
  const filter = () => {
    const outcome = outcomeFilter ? outcomeFilter.value : "";
    let count = 0;
    for (const row of byId("disputed-table").tBodies[0].rows) {
      const ofClass = !classFilter.value || row.dataset.classes.split(" ").includes(classFilter.value);
      row.hidden = !(ofClass && (!outcome || row.dataset.outcome === outcome));
      count += !row.hidden;
    }
    byId("filter-count").textContent = `${count} sample${count === 1 ? "" : "s"}`;
  };
  if (classFilter) {
    classFilter.addEventListener("change", filter);
    if (outcomeFilter) outcomeFilter.addEventListener("change", filter);
    filter();
  }

  // Hovering: a text per element, or what lies at the pointer's position.
  const tip = byId("tip");
  const showTip = (text, event) => {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const right = event.clientX + 14 + box.width > innerWidth;
    const below = event.clientY + 16 + box.height > innerHeight;
    tip.style.left = `${Math.max(4, right ? event.clientX - box.width - 12 : event.clientX + 14)}px`;
    tip.style.top = `${Math.max(4, below ? event.clientY - box.height - 12 : event.clientY + 16)}px`;
  };
  const mark = (svg, name, attributes) => {
    let shape = svg.querySelector(`.${name}`);
    if (!shape) {
      shape = document.createElementNS("http://www.w3.org/2000/svg", name === "cursor" ? "line" : "rect");
      shape.classList.add(name);
      svg.append(shape);
    }
    for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
  };
  const clear = () => {
    tip.hidden = true;
    for (const shape of all("svg .cursor, svg .cell")) shape.remove();
  };
  const cellAt = (where, columns, rows) => {
    const [column, row] = [Math.floor(where.x * columns), Math.floor(where.y * rows)];
    return column >= 0 && column < columns && row >= 0 && row < rows ? [column, row] : null;
  };
  const readers = {
    lines(hover, where, svg, box) {
      const value = hover.range[0] + where.x * (hover.range[1] - hover.range[0]);
      const nearest = hover.x.reduce((best, x, k) => (Math.abs(x - value) < Math.abs(hover.x[best] - value) ? k : best), 0);
      const x = box.x + (box.width * (hover.x[nearest] - hover.range[0])) / (hover.range[1] - hover.range[0]);
      mark(svg, "cursor", { x1: x, x2: x, y1: box.y, y2: box.y + box.height });
      const hidden = new Set(all(".off[data-series]", svg).map((line) => line.dataset.series));
      const shown = hover.series.filter((series) => !hidden.has(series.id));
      return [hover.heading.replace("{x}", hover.x[nearest]), ...shown.map((s) => `${s.title}: ${s.values[nearest]}`)].join("\n");
    },
    agreement(hover, where, svg, box) {
      const size = hover.names.length;
      const cell = cellAt(where, size, size);
      if (!cell) return "";
      const [column, row] = cell;
      const [width, height] = [box.width / size, box.height / size];
      mark(svg, "cell", { x: box.x + column * width, y: box.y + row * height, width, height });
      if (row === column) return hover.names[row];
      return `${hover.names[row]}\n${hover.names[column]}\nsame label: ${hover.values[row][column]}`;
    },
    density(hover, where) {
      const cell = cellAt({ x: where.x, y: 1 - where.y }, hover.x.length - 1, hover.y.length - 1);
      if (!cell) return "";
      const [c, r] = cell;
      const [right, wrong] = [hover.right[r][c], hover.wrong[r][c]];
      const top = r === hover.y.length - 2 ? " or more" : ` to ${hover.y[r + 1].toFixed(3)}`;
      const place = `Confidence ${hover.x[c].toFixed(3)} to ${hover.x[c + 1].toFixed(3)}\nHV ${hover.y[r].toFixed(3)}${top}`;
      return `${place}\n${hover.labelled ? `${right} right, ${wrong} wrong` : `${right} samples`}`;
    },
  };
  const read = (event) => {
    const element = event.target.closest ? event.target.closest("[data-tip]") : null;
    if (element) return showTip(element.dataset.tip, event);
    const svg = event.target.closest ? event.target.closest("svg[data-hover]") : null;
    clear();
    if (!svg) return undefined;
    const hover = svg.hover || (svg.hover = JSON.parse(svg.dataset.hover));
    const frame = svg.querySelector("[id$='-frame']");
    const screen = frame.getBoundingClientRect();
    const where = { x: (event.clientX - screen.left) / screen.width, y: (event.clientY - screen.top) / screen.height };
    if (where.x < -0.02 || where.x > 1.02 || where.y < 0 || where.y > 1) return undefined;
    const text = readers[hover.kind](hover, where, svg, frame.getBBox());
    return text ? showTip(text, event) : undefined;
  };
  document.addEventListener("pointermove", read);
  document.addEventListener("pointerdown", read);
  document.addEventListener("scroll", clear, { passive: true });

  // Which section the navigation stands on.
  const links = all("nav a");
  const watch = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        for (const link of links) {
          if (link.hash === `#${entry.target.id}`) link.setAttribute("aria-current", "true");
          else link.removeAttribute("aria-current");
        }
      }
    },
    { rootMargin: "-20% 0px -70% 0px" },
  );
  for (const section of all("main > section")) watch.observe(section);
})();

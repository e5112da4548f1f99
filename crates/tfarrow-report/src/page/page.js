"use strict";
// Draws the charts with Observable Plot, and searches, sorts and filters the cards of features. Without it, the page shows all
// figures as tables. Only numbers and the names in attributes of the page reach the charts, and those as text.
(() => {
  const $ = (id) => document.getElementById(id);
  const element = (name, properties, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };
  const read = (figure, key) => (figure.dataset[key] === undefined ? null : JSON.parse(figure.dataset[key]));
  const narrow = () => matchMedia("(max-width: 30rem)").matches;

  // Numbers as in the tables: integers in full, others in four digits.
  const text = (number) => {
    if (Number.isInteger(number) && Math.abs(number) < 1e15) return number.toLocaleString("en");
    const size = Math.abs(number);
    return size >= 1e-3 && size < 1e6 ? String(Number(number.toPrecision(4))) : number.toExponential(2);
  };
  const tick = (number) => {
    const size = Math.abs(number);
    if (size >= 1e15 || (size > 0 && size < 1e-4)) return number.toExponential(0);
    if (size >= 1e4) return new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(number);
    return String(Number(number.toPrecision(6)));
  };
  const percent = (share) => `${text(Number((100 * share).toPrecision(3)))} %`;
  // The share of a chart's own data that a logarithmic scale can show: zeros have no bar there.
  const positive = (values) => values.filter((value) => value > 0);

  const axes = (options) => ({ className: "drawing", grid: false, marginTop: 30, marginRight: 14, marginBottom: 32, marginLeft: 46, ...options });

  const kinds = {
    // Bars of this data set, and the outline of the baseline. With a baseline, both are shares of their data sets.
    histogram(figure, size) {
      const [low, high] = read(figure, "x");
      const whole = figure.dataset.whole !== undefined;
      const sides = { now: read(figure, "now"), before: read(figure, "before") };
      const buckets = (sides.now ?? sides.before).length;
      const width = high / buckets - low / buckets;
      const sum = (counts) => counts.reduce((all, count) => all + count, 0) || 1;
      const both = sides.before !== null;
      const rows = (counts) => counts.map((count, index) => ({
        x1: low + width * index, x2: low + width * (index + 1), count, share: count / sum(counts), y: both ? count / sum(counts) : count,
      }));
      const [now, before] = [sides.now && rows(sides.now), sides.before && rows(sides.before)];
      const values = ({ x1, x2 }) => {
        const [first, last] = whole ? [Math.ceil(x1), Math.floor(x2)] : [x1, x2];
        return first === last ? text(first) : `${text(first)} to ${text(last)}`;
      };
      const title = (row, index) => {
        const line = (name, side) => (side ? `\n${name}${text(Math.round(side[index].count))} (${percent(side[index].share)})` : "");
        return values(row) + (both ? line("now ", now) + line("before ", before) : line("", now));
      };
      const all = positive([...(now ?? []), ...(before ?? [])].map((row) => row.y));
      const floor = size.log ? Math.min(...all) / 2 : 0;
      const shown = (list) => list.filter((row) => row.y > floor);
      const outline = (list) => list.flatMap((row) => [[row.x1, Math.max(row.y, floor)], [row.x2, Math.max(row.y, floor)]]);
      const marks = [Plot.gridY({ stroke: "var(--faint)", strokeOpacity: 1 })];
      if (now) marks.push(Plot.rectY(shown(now), { x1: "x1", x2: "x2", y1: floor, y2: "y", fill: "var(--now)", fillOpacity: both ? 0.7 : 0.95, insetLeft: 0.5, insetRight: 0.5 }));
      if (before) marks.push(Plot.lineY(outline(before), { x: "0", y: "1", stroke: "var(--before)", strokeWidth: 2 }));
      const base = now ?? before;
      const highest = Math.max(...all);
      marks.push(
        Plot.ruleY([floor], { stroke: "var(--dim)" }),
        Plot.rectY(base, Plot.pointerX({ x1: "x1", x2: "x2", y1: floor, y2: () => highest, fill: "var(--ink)", fillOpacity: 0.08 })),
        Plot.tip(base, Plot.pointerX({ x: (row) => row.x1 / 2 + row.x2 / 2, y: (row) => Math.max(row.y, floor), title: (row) => title(row, base.indexOf(row)) })),
      );
      // Few integers have a tick each.
      const integers = whole && high - low <= size.width / 30 ? Array.from({ length: high - low }, (_, index) => Math.ceil(low) + index) : null;
      return Plot.plot(axes({
        ...size, marginLeft: both ? 52 : 46, x: { label: null, tickFormat: tick, ticks: integers ?? Math.max(2, Math.floor(size.width / 90)) },
        y: { label: both ? "share" : "count", type: size.log ? "log" : "linear", ticks: both ? 4 : Math.min(4, Math.ceil(highest)), tickFormat: both ? percent : tick }, marks,
      }));
    },

    // The value below which a share of the values lies.
    quantiles(figure, size) {
      const shares = read(figure, "x");
      const rows = (values) => (values ?? []).map((y, index) => ({ x: shares[index], y })).filter((row) => row.y !== null);
      const [now, before] = [rows(read(figure, "now")), rows(read(figure, "before"))];
      const title = (row) => `${row.x === 0 ? "minimum" : row.x === 100 ? "maximum" : `${row.x} % of values are at most`} ${text(row.y)}`;
      const marks = [Plot.gridY({ stroke: "var(--faint)", strokeOpacity: 1 })];
      if (before.length) marks.push(Plot.lineY(before, { x: "x", y: "y", stroke: "var(--before)", strokeWidth: 2, strokeDasharray: "5 3" }));
      if (now.length) marks.push(Plot.lineY(now, { x: "x", y: "y", stroke: "var(--now)", strokeWidth: 2, marker: "circle" }));
      const all = [...now, ...before];
      marks.push(Plot.tip(all, Plot.pointer({ x: "x", y: "y", title })));
      return Plot.plot(axes({
        ...size, marginLeft: 56, x: { label: "% of values", ticks: 5, labelAnchor: "center" },
        y: { label: "value", nice: true, type: size.log ? "symlog" : "linear", constant: scaleOf(all.map((row) => Math.abs(row.y))), ticks: 5, tickFormat: tick }, marks,
      }));
    },

    // Coefficients as colours: one for each sign, as strong as the coefficient.
    matrix(figure, size) {
      const names = read(figure, "x");
      const pairs = read(figure, "now").flatMap(([a, b, r]) => [{ x: names[a], y: names[b], r }, { x: names[b], y: names[a], r }]);
      const long = Math.min(130, 12 + 6.5 * Math.max(...names.map((name) => name.length)));
      const side = narrow() ? 70 : long;
      const cell = { x: "x", y: "y", inset: 0.5, rx: 2 };
      const short = (name) => (name.length * 6.5 + 12 > side ? `${name.slice(0, Math.max(3, Math.floor(side / 6.5) - 3))}…` : name);
      const marks = [
        Plot.cell(names, { x: (name) => name, y: (name) => name, fill: "var(--faint)", inset: 0.5, rx: 2 }),
        Plot.cell(pairs, { ...cell, fill: "var(--soft)" }),
        Plot.cell(pairs.filter((pair) => pair.r > 0), { ...cell, fill: "var(--now)", fillOpacity: (pair) => pair.r }),
        Plot.cell(pairs.filter((pair) => pair.r < 0), { ...cell, fill: "var(--before)", fillOpacity: (pair) => -pair.r }),
        Plot.tip(pairs, Plot.pointer({ x: "x", y: "y", title: (pair) => `${pair.x}\n${pair.y}\n${pair.r.toFixed(3)}` })),
      ];
      if (size.width / names.length > 48) {
        marks.splice(4, 0, Plot.text(pairs, { x: "x", y: "y", text: (pair) => pair.r.toFixed(2), fill: "var(--ink)", stroke: "var(--card)", strokeWidth: 3 }));
      }
      return Plot.plot({
        className: "drawing", width: size.width, height: Math.min(size.width, 110 + 40 * names.length), marginLeft: side, marginBottom: side, marginTop: 32, marginRight: 6,
        x: { label: null, domain: names, tickRotate: -90, tickFormat: short, tickSize: 0 }, y: { label: null, domain: names, tickFormat: short, tickSize: 0 },
        opacity: { type: "identity" }, marks,
      });
    },

    // The values of a tag, a line for each run.
    curves(figure, size) {
      const runs = read(figure, "x");
      const rows = read(figure, "now").flatMap(([steps, values], run) => values.map((y, index) => ({ x: steps[index], y, run })).filter((row) => row.y !== null));
      const marker = rows.length < 60 ? "circle" : undefined;
      // Equal values are a line in the middle.
      const [low, high] = [Math.min(...rows.map((row) => row.y)), Math.max(...rows.map((row) => row.y))];
      const domain = low === high ? { domain: [low - 1, high + 1] } : {};
      const marks = [
        Plot.gridY({ stroke: "var(--faint)", strokeOpacity: 1 }),
        Plot.lineY(rows, { x: "x", y: "y", z: "run", stroke: (row) => `var(--run${row.run})`, strokeWidth: 1.6, marker }),
        Plot.tip(rows, Plot.pointer({ x: "x", y: "y", title: (row) => `${runs[row.run]}\nstep ${text(row.x)}\n${text(row.y)}` })),
      ];
      return Plot.plot(axes({
        ...size, marginLeft: 56, x: { label: "step", ticks: 5, tickFormat: tick, labelAnchor: "center" }, color: { type: "identity" },
        y: { label: null, nice: true, ticks: 4, tickFormat: tick, type: size.log ? "symlog" : "linear", constant: scaleOf(rows.map((row) => Math.abs(row.y))), ...domain }, marks,
      }));
    },

    // One line for each dimension.
    steps(figure, size) {
      const stride = read(figure, "x");
      const lines = read(figure, "now");
      const rows = lines.flatMap((line, z) => line.map((y, index) => ({ x: index * stride, y, z })).filter((row) => row.y !== null));
      const marks = [
        Plot.ruleY([0], { stroke: "var(--faint)" }),
        Plot.lineY(rows, { x: "x", y: "y", z: "z", stroke: "var(--now)", strokeOpacity: (row) => 1 - (0.75 * row.z) / lines.length, strokeWidth: 1.4 }),
        Plot.tip(rows, Plot.pointer({ x: "x", y: "y", title: (row) => `step ${row.x}${lines.length > 1 ? `, dimension ${row.z}` : ""}\n${text(row.y)}` })),
      ];
      return Plot.plot(axes({
        ...size, marginTop: 6, x: { label: null, ticks: 4 }, opacity: { type: "identity" },
        y: { label: null, ticks: 3, tickFormat: tick, type: size.log ? "symlog" : "linear" }, marks,
      }));
    },
  };

  // The magnitude around which a symmetric logarithm becomes linear: that of the small values.
  const scaleOf = (sizes) => {
    const sorted = positive(sizes).sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 10)] || 1;
  };

  const heights = { histogram: 178, quantiles: 220, steps: 90, curves: 200 };
  // The curves have a scale of their own: a data set of TensorBoard's events has no cards.
  const logBox = (figure) => $(figure.dataset.chart === "curves" ? "curves-log" : "log");
  const isLog = (figure) => logBox(figure)?.checked ?? false;
  const drawing = (figure, size) => {
    const drawn = kinds[figure.dataset.chart](figure, size);
    // The page's style sheet has these rules; its policy allows no others.
    drawn.querySelector("style")?.remove();
    // Readers of screens find the title here, and the numbers in the tables.
    drawn.setAttribute("aria-hidden", "true");
    const image = element("div", { className: "image" }, drawn);
    image.setAttribute("role", "img");
    image.setAttribute("aria-label", figure.dataset.title);
    return image;
  };
  const draw = (figure, width = figure.clientWidth) => {
    if (width < 40) return;
    figure.querySelector(".image")?.remove();
    figure.prepend(drawing(figure, { width, height: heights[figure.dataset.chart], log: isLog(figure) && figure.dataset.chart !== "steps" }));
    figure.dataset.width = width;
  };

  const dialog = element("dialog", {});
  document.body.append(dialog);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  const enlarge = (figure) => {
    const large = element("div", { className: "chart" });
    const log = element("input", { type: "checkbox", checked: isLog(figure) });
    const close = element("button", { type: "button", textContent: "Close" });
    const title = element("h2", { textContent: figure.dataset.title, id: "enlarged" });
    dialog.setAttribute("aria-labelledby", "enlarged");
    const scale = figure.dataset.chart === "matrix" ? [] : [element("label", { className: "check" }, log, "Log scale")];
    dialog.replaceChildren(element("div", { className: "bar" }, title, ...scale, close), large);
    const redraw = () => large.replaceChildren(
      drawing(figure, { width: large.clientWidth, height: Math.max(240, Math.min(460, innerHeight - 200)), log: log.checked }));
    log.addEventListener("change", redraw);
    close.addEventListener("click", () => dialog.close());
    dialog.showModal();
    redraw();
  };

  const charts = [...document.querySelectorAll(".chart")];
  for (const figure of charts) {
    const button = element("button", { type: "button", className: "enlarge", textContent: "Enlarge" });
    button.setAttribute("aria-label", `Enlarge: ${figure.dataset.title}`);
    button.addEventListener("click", () => enlarge(figure));
    figure.append(button);
  }
  // A chart is drawn when it comes near the window, and again when its width changes.
  const near = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) if (isIntersecting && Number(target.dataset.width) !== target.clientWidth) draw(target);
  }, { rootMargin: "600px" });
  const resized = new ResizeObserver((entries) => {
    for (const { target } of entries) if (target.dataset.width !== undefined && Number(target.dataset.width) !== target.clientWidth) draw(target);
  });
  for (const figure of charts) {
    near.observe(figure);
    resized.observe(figure);
  }
  addEventListener("beforeprint", () => {
    for (const figure of charts) if (figure.dataset.width === undefined && figure.offsetParent !== null) draw(figure);
  });

  // Search, order and filters of the cards.
  const groups = [...document.querySelectorAll(".cards")].map((section) => ({ section, cards: [...section.querySelectorAll(".card")] }));
  const name = (card) => card.querySelector("h4").textContent;
  const index = element("ul", { className: "index" });
  index.setAttribute("aria-label", "Features");
  const cards = groups.flatMap((group) => group.cards);
  const links = new Map(cards.map((card) => {
    const link = element("li", {}, element("a", { href: `#${card.id}`, textContent: name(card) }));
    return [card, link];
  }));
  index.append(...links.values());
  document.querySelector(".contents").append(index);

  const arrange = () => {
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const number = (key) => (a, b) => Number(b.dataset[key] ?? -1) - Number(a.dataset[key] ?? -1);
    const byName = (a, b) => name(a).localeCompare(name(b), "en", { numeric: true });
    const order = { name: byName, alerts: number("alerts"), missing: number("missing"), drift: number("drift") }[$("sort").value];
    let shown = 0;
    for (const { section, cards } of groups) {
      cards.sort((a, b) => order(a, b) || byName(a, b));
      for (const card of cards) {
        const text = `${name(card)} ${card.querySelector(".type").textContent} ${card.querySelector(".badges")?.textContent ?? ""}`.toLowerCase();
        card.hidden = !words.every((word) => text.includes(word)) || ($("flagged").checked && card.dataset.alerts === "0");
        links.get(card).hidden = card.hidden;
        shown += !card.hidden;
      }
      section.append(...cards);
      section.hidden = cards.every((card) => card.hidden);
    }
    index.append(...groups.flatMap((group) => group.cards).map((card) => links.get(card)));
    $("shown").textContent = shown < cards.length ? `${shown} of ${cards.length} features` : "";
  };
  if ($("search")) {
    for (const id of ["search", "sort", "flagged"]) $(id).addEventListener("input", arrange);
  }
  for (const box of [$("log"), $("curves-log")]) {
    const isDrawn = (figure) => logBox(figure) === box && figure.dataset.width !== undefined;
    box?.addEventListener("input", () => charts.filter(isDrawn).forEach((figure) => draw(figure)));
  }
  for (const form of document.querySelectorAll(".tools")) form.addEventListener("submit", (event) => event.preventDefault());
})();

"use strict";
// Sorts and searches the table of features. Without it, the page shows all it has.
(() => {
  const table = document.getElementById("table");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, index) => row.cells[index]?.dataset.sort ?? "";
  const sort = (index) => {
    const head = heads[index];
    const isNumber = head.classList.contains("number");
    const was = head.getAttribute("aria-sort") ?? (isNumber ? "ascending" : "descending");
    const down = was === "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const order = (a, b) => {
      const [x, y] = [key(a, index), key(b, index)];
      if (x === "" || y === "") return (x === "") - (y === "");
      const found = isNumber ? (Number(x) > Number(y)) - (Number(x) < Number(y)) : x.localeCompare(y, undefined, { numeric: true });
      return down ? -found : found;
    };
    body.append(...[...body.rows].sort(order));
  };
  heads.forEach((head, index) => head.querySelector("button").addEventListener("click", () => sort(index)));
  const search = document.getElementById("search");
  const shown = document.getElementById("shown");
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of body.rows) {
      const text = `${key(row, 0)} ${key(row, 2)}`.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      count += !row.hidden;
    }
    shown.textContent = words.length ? `${count} of ${body.rows.length} rows here` : "";
  });
})();

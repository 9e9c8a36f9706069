"use strict";
(function () {
  const form = document.querySelector("form");
  const matrix = [...document.querySelectorAll("#nodes tbody tr")];
  const findings = [...document.querySelectorAll("#findings tbody tr")];
  const shown = document.querySelector("output");
  const areas = [...document.querySelectorAll("#nodes thead th")].slice(1).map((th) => th.textContent.trim());
  const compare = new Intl.Collator(undefined, { numeric: true }).compare;
  const words = new Map(findings.map((row) => [row, row.textContent.toLowerCase()]));
  const names = new Map(findings.map((row) => [row, [...row.cells[2].querySelectorAll("[data-node]")].map((one) => one.textContent.toLowerCase())]));

  const known = new Set(matrix.map((row) => row.cells[0].textContent.trim().toLowerCase()));

  // A whole name means that node only: n1 is not n10.
  function isNode(name, wish) {
    return known.has(wish) ? name === wish : name.includes(wish);
  }

  function wanted(name) {
    return form.elements[name].value.trim().toLowerCase();
  }

  function filter() {
    const node = wanted("node"), area = wanted("area"), status = wanted("status"), text = wanted("text");
    let count = 0;
    for (const row of findings) {
      const fits = (!node || names.get(row).some((name) => isNode(name, node))) && (!area || row.dataset.area === area) &&
        (!status || row.dataset.status === status) && (!text || words.get(row).includes(text));
      row.hidden = !fits;
      count += fits;
    }
    for (const row of matrix) {
      const cells = [...row.cells].slice(1).filter((_cell, place) => !area || areas[place] === area);
      row.hidden = !(isNode(row.cells[0].textContent.trim().toLowerCase(), node) && (!status || cells.some((cell) => cell.dataset.status === status)));
    }
    shown.textContent = count + " of " + findings.length + " rows";
  }

  function sort(th) {
    const table = th.closest("table"), body = table.tBodies[0], place = th.cellIndex;
    const direction = th.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    const key = (row) => row.cells[place].dataset.key || row.cells[place].textContent.trim();
    const rows = [...body.rows].map((row) => [key(row), row]).sort((one, other) => direction * compare(one[0], other[0]));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
    body.append(...rows.map((pair) => pair[1]));
  }

  for (const th of document.querySelectorAll("thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...th.childNodes);
    button.addEventListener("click", () => sort(th));
    th.append(button);
  }
  for (const area of areas) form.elements.area.append(new Option(area, area));
  document.querySelector("#nodes tbody").addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    const cell = link.closest("td");
    form.elements.node.value = cell.parentNode.cells[0].textContent.trim();
    form.elements.area.value = areas[cell.cellIndex - 1];
    form.elements.status.value = form.elements.text.value = "";
    filter();
  });
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  form.hidden = false;
  filter();
})();

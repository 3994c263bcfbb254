"use strict";
// the rate under the pointer
for (const reader of document.querySelectorAll(".reader")) {
  const { shares, columns, top, more, power, unit } = reader.dataset;
  const bytes = Uint8Array.from(atob(shares), (letter) => letter.charCodeAt(0));
  const rows = bytes.length / columns;
  const readout = reader.closest("figure").querySelector(".readout");
  const shown = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
  const rate = (byte) => shown.format(top * ((byte - 1) / 254) ** (1 / power));
  const read = (event) => {
    const box = reader.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
    const row = Math.floor(((box.bottom - event.clientY) / box.height) * rows);
    const inside = column >= 0 && column < columns && row >= 0 && row < rows;
    const byte = inside ? bytes[row * columns + column] : 0;
    readout.textContent = byte
      ? `Under the pointer: ${byte === 255 ? more : ""}${rate(byte)} ${unit}`
      : "";
  };
  reader.addEventListener("pointermove", read);
  reader.addEventListener("pointerdown", read);
  reader.addEventListener("pointerleave", () => (readout.textContent = ""));
}
// tables that can be sorted by any column
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const value = (row, i) => row.cells[i].textContent.replace(/−/g, "-").replace(/,/g, "");
  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      const sign = down ? -1 : 1;
      const compare = (a, b) => {
        const [x, y] = [value(a, i), value(b, i)];
        const difference = parseFloat(x) - parseFloat(y);
        return sign * (Number.isNaN(difference) ? x.localeCompare(y) : difference);
      };
      body.append(...[...body.rows].sort(compare));
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  });
}

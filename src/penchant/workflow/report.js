for (const table of document.querySelectorAll("table.sortable")) {
  table.classList.add("live");
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const key = (row, k) => row.cells[k].dataset.sort ?? row.cells[k].textContent;
  heads.forEach((head, k) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.onclick = () => {
      const up = head.ariaSort ? head.ariaSort === "descending" : k < 2;
      const order = new Intl.Collator(undefined, { numeric: true });
      const compare = (a, b) => {
        const [x, y] = [key(a, k), key(b, k)], d = x - y;
        return x === "" || y === "" ? (x === "") - (y === "")
          : (Number.isNaN(d) ? order.compare(x, y) : d) * (up ? 1 : -1);
      };
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.ariaSort = up ? "ascending" : "descending";
      body.append(...[...body.rows].sort(compare));
    };
  });
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "Search";
  search.setAttribute("aria-label", "Search " + table.caption.textContent);
  search.oninput = () => {
    const words = search.value.toLocaleLowerCase();
    for (const row of body.rows)
      row.hidden = !row.cells[0].textContent.toLocaleLowerCase().includes(words);
  };
  table.parentNode.before(search);
}

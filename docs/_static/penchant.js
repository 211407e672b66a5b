// What the theme leaves without a name, or with half a list, for people who listen to pages.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("nav details > summary:not([aria-label])"))
    summary.setAttribute("aria-label", "pages below");
  for (const list of document.querySelectorAll("dt.sig > dl")) {
    list.setAttribute("role", "list");
    for (const item of list.children) item.setAttribute("role", "listitem");
  }
});

// What the theme leaves to do: captions have a level, tables fit, and keys reach what scrolls.
addEventListener("DOMContentLoaded", () => {
  for (const caption of document.querySelectorAll('.caption[role="heading"]')) {
    caption.setAttribute("aria-level", "2");
  }
  for (const box of document.querySelectorAll("article .table-wrapper")) {
    for (const step of ["small", "tight"]) {
      if (box.scrollWidth > box.clientWidth) box.classList.add(step);
    }
  }
  for (const box of document.querySelectorAll("pre, article .table-wrapper")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
});

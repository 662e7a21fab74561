// What the theme leaves to do: captions have a level, and keys reach what scrolls.
addEventListener("DOMContentLoaded", () => {
  for (const caption of document.querySelectorAll('.caption[role="heading"]')) {
    caption.setAttribute("aria-level", "2");
  }
  for (const box of document.querySelectorAll("pre, article table.docutils")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
});

// The theme's captions are headings without a level, and a wide block of code cannot be scrolled by keys.
document.addEventListener('DOMContentLoaded', () => {
  for (const caption of document.querySelectorAll('p.caption[role=heading]')) caption.setAttribute('aria-level', '2');
  for (const block of document.querySelectorAll('pre')) if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;
});

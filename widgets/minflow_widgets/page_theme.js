// What a canvas takes from the page behind it: light or dark, and when that changes. Put before the widgets that draw.
// Lines have the colors of still pictures (minflow/views/draw/theme.py), seen on both: nothing changes at the end.
const LINES = { blue: "#3f86d2", amber: "#b07c12", green: "#2f9e5b", violet: "#8f6fd6", gray: "#7d8590", red: "#dc4a3c" };
const LIGHT = { ink: "#24292f", soft: "#57606a", faint: "#d0d7de", card: "#ffffff", red: "#b42318" };
const DARK = { ink: "#e6e6e6", soft: "#b6bcc4", faint: "#4a4f57", card: "#222222", red: "#ff8f85" };

// The first ground behind it that one cannot see through decides; where there is none, its text: light on dark pages.
// So JupyterLab, Notebook, VS Code and Colab are told apart by nothing but what is seen.
function isDark(el) {
  const bright = (color) => { const [r, g, b, a = 1] = (color.match(/[\d.]+/g) || [0, 0, 0]).map(Number); return [0.3 * r + 0.59 * g + 0.11 * b, a]; };
  for (let e = el; e; e = e.parentElement || e.getRootNode().host) {
    const [light, opaque] = bright(getComputedStyle(e).backgroundColor);
    if (opaque > 0.5) return light < 128;
  }
  return bright(getComputedStyle(el).color)[0] > 128;
}

const themeOf = (el) => (isDark(el) ? DARK : LIGHT);

// Calls `changed` when the page may have another theme; returns what ends that.
function followTheme(changed) {
  const seen = new MutationObserver(() => { changed(); setTimeout(changed, 300); }); // its style sheet may come later
  for (const e of [document.documentElement, document.body])
    seen.observe(e, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class", "style", "theme", "data-theme"] });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", changed);
  return () => { seen.disconnect(); system.removeEventListener("change", changed); };
}

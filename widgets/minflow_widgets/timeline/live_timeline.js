// Shows the SVG of live_timeline.py on a canvas, so that one picture replaces another without a flash.
function render({ model, el }) {
  const canvas = document.createElement("canvas"), image = new Image();
  canvas.setAttribute("role", "img");
  canvas.style.cssText = "display:block;max-width:100%";
  el.append(canvas);
  let label = "";

  image.onload = () => {
    const { width, height } = image, ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio; canvas.height = height * ratio;
    canvas.style.width = width + "px";
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.setAttribute("aria-label", label);
  };
  const show = () => {
    const text = new TextDecoder().decode(model.get("data"));
    if (!text) return;
    const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    label = svg.getAttribute("aria-label");
    const page = getComputedStyle(el), color = (name) => page.getPropertyValue(name).trim();
    const halo = color("--jp-layout-color0") || color("--vscode-editor-background");
    if (halo) {  // an image does not know the page's theme
      for (const node of svg.querySelectorAll("[paint-order]")) node.style.cssText = `fill:${page.color};stroke:${halo}`;
      for (const note of svg.querySelectorAll("[paint-order] tspan[fill]")) note.style.cssText = "fill:inherit;fill-opacity:.75";
    }
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(new XMLSerializer().serializeToString(svg));
  };
  model.on("change:data", show);
  show();
  return () => model.off("change:data", show);
}

export default { render };

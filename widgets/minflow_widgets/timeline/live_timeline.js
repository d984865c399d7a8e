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
    const svg = new TextDecoder().decode(model.get("data"));
    if (!svg) return;
    label = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement.getAttribute("aria-label");
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
  };
  model.on("change:data", show);
  show();
  return () => model.off("change:data", show);
}

export default { render };

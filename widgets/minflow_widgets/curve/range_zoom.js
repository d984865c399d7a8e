// The part of the x axis that a curve shows: by drag, Ctrl + wheel, + and -; a double click, 0 or Escape shows all of it.
// Put between curve_panel.js and loss_curve.js, which draws what `shown` and `drag` say.
const SMALLEST = 1e-4; // of the whole axis

// plot: the plot at a place of the canvas, with its left and right edges in pixels. changed: called after each change.
function rangeZoom(canvas, plot, changed) {
  const zoom = { shown: null, drag: null, whole: [0, 1] };
  const range = () => zoom.shown ?? zoom.whole;
  const value = ({ left, right }, x) => { const [x0, x1] = range(); return x0 + ((x - left) / (right - left)) * (x1 - x0); };
  const show = (low, high) => {
    const [x0, x1] = zoom.whole, least = (x1 - x0) * SMALLEST;
    [low, high] = [Math.max(low, x0), Math.min(high, x1)];
    zoom.shown = high - low >= x1 - x0 ? null : high - low < least ? zoom.shown : [low, high];
    changed();
  };
  // times: by how much wider. at: the value that stays in its place.
  const scale = (times, at) => {
    const [x0, x1] = range(), middle = at ?? (x0 + x1) / 2;
    show(middle + (x0 - middle) * times, middle + (x1 - middle) * times);
  };
  const reset = () => { zoom.shown = zoom.drag = null; changed(); };
  let from = null;
  canvas.style.touchAction = "pan-y";
  canvas.addEventListener("pointerdown", (event) => {
    const area = plot(event.offsetX, event.offsetY);
    from = area && event.button === 0 ? { area, x: event.offsetX } : null;
    if (from) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", ({ offsetX: x }) => {
    if (!from || Math.abs(x - from.x) < 5) return;
    const ends = [from.x, Math.min(Math.max(x, from.area.left), from.area.right)].map((x) => value(from.area, x));
    zoom.drag = ends.sort((a, b) => a - b);
    changed();
  });
  canvas.addEventListener("pointerup", () => {
    const drag = zoom.drag;
    from = zoom.drag = null;
    if (drag) show(...drag);
  });
  canvas.addEventListener("pointercancel", () => { from = zoom.drag = null; changed(); });
  canvas.addEventListener("dblclick", reset);
  canvas.addEventListener("wheel", (event) => {
    const area = plot(event.offsetX, event.offsetY);
    if (!area || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    scale(Math.exp(event.deltaY / 400), value(area, event.offsetX));
  }, { passive: false });
  // True if it was a key of the zoom. at: the value that is read.
  const pressed = (key, at) => {
    if (key === "+" || key === "=") scale(0.5, at);
    else if (key === "-") scale(2, at);
    else if (key === "0" || (key === "Escape" && zoom.shown)) reset();
    else return false;
    return true;
  };
  // Moves what is shown until a value is in it.
  const follow = (at) => {
    if (!zoom.shown) return;
    const [x0, x1] = zoom.shown, by = at < x0 ? at - x0 : at > x1 ? at - x1 : 0;
    zoom.shown = [x0 + by, x1 + by];
  };
  return Object.assign(zoom, { range, value, reset, pressed, follow });
}

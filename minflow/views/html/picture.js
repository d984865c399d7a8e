// Takes over the <img> of a card: the same SVG inline, with zoom, drag, words at the pointer, and frames that fold.
// draw/drawing.py says what the data attributes of the SVG mean. Nothing is laid out again: a folded frame becomes a
// box, and the strips of the picture that are then empty are taken out, which moves boxes, frames and edges alike.
// A folded box of the picture opens by a second picture, in which all is a frame; its frames are folded as they were.

(() => {
// The map of one coordinate. folded: [low, high, size], the range of each folded frame and the size that it needs.
// kept: [low, high], ranges whose length stays.
function squeezed(folded, kept) {
  const within = (ranges, a, b) => ranges.some((r) => r[0] <= a && b <= r[1]);
  const ends = [...new Set([...folded, ...kept].flatMap((r) => r.slice(0, 2)))].sort((a, b) => a - b);
  const strips = ends.slice(1).map((b, i) => {
    const free = within(folded, ends[i], b) && !within(kept, ends[i], b), old = b - ends[i];
    return { a: ends[i], b, free, old, size: free ? 0 : old };
  });
  for (const [low, high, size] of folded) {
    const inside = strips.filter((s) => low <= s.a && s.b <= high), free = inside.filter((s) => s.free);
    const sum = (list, key) => list.reduce((total, s) => total + s[key], 0), grown = free.length ? free : inside;
    const lacking = size - sum(inside, "size"), all = sum(grown, "old");
    if (lacking > 0) for (const s of grown) s.size += (lacking * s.old) / all;
  }
  return (v) => strips.reduce((at, s) => at + (s.size - s.old) * Math.max(0, Math.min(1, (v - s.a) / s.old)), v);
}

// The part of a curve before the rectangle in which it ends. curve: Bezier points.
function clipped(curve, { left, top, right, bottom }) {
  const mix = (p, q, t) => p.map((a, i) => a + (q[i] - a) * t);
  for (let i = 0; i + 3 < curve.length; i += 3) {
    const split = (t) => {
      const [p, q, r, s] = curve.slice(i, i + 4), a = mix(p, q, t), b = mix(q, r, t), d = mix(a, b, t);
      return [a, d, mix(d, mix(b, mix(r, s, t), t), t)];
    };
    const inside = (t) => { const [x, y] = split(t)[2]; return left <= x && x <= right && top <= y && y <= bottom; };
    for (let n = 1; n <= 32; n++) {
      if (!inside(n / 32)) continue;
      let low = (n - 1) / 32, high = n / 32;
      for (let k = 0; k < 12; k++) { const t = (low + high) / 2; if (inside(t)) high = t; else low = t; }
      return [...curve.slice(0, i + 1), ...split(high)];
    }
  }
  return curve;
}

function livePicture(element, opened) {
  const image = element.querySelector("img"), bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const parsed = (text) => document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
  const svg = parsed(new TextDecoder().decode(bytes(image.src.split(",")[1])));
  const set = (e, attributes) => { for (const key in attributes) e.setAttribute(key, attributes[key]); return e; };
  const node = (name, attributes, ...inside) => { const e = set(document.createElementNS(svg.namespaceURI, name), attributes); e.append(...inside); return e; };
  const html = (name, style, more) => { const e = Object.assign(document.createElement(name), more); e.style.cssText = style; return e; };
  const numbers = (text) => (text || "").match(/-?[\d.]+/g)?.map(Number) || [], of = (e, ...names) => names.map((name) => +e.getAttribute(name));
  const points = (path) => numbers(path.getAttribute("d")).reduce((all, n, i) => (i % 2 ? all.at(-1).push(n) : all.push([n]), all), []);
  const sides = (e) => {
    const [x, y, w, h, a, b] = e.localName === "rect" ? of(e, "x", "y", "width", "height") : [0, 0, 0, 0, ...of(e, "rx", "ry")], [p, q] = of(e, "cx", "cy");
    return a ? { left: p - a, top: q - b, right: p + a, bottom: q + b } : { left: x, top: y, right: x + w, bottom: y + h };
  };
  const all = (name, read) => [...svg.querySelectorAll(`[data-${name}]`)].map((e) => ({ e, ...read(e) }));

  let left, top, width, height, size, boxes, frames, edges, labels, legend, byIndex;
  const read = () => {
    [left, top, width, height] = numbers(svg.getAttribute("viewBox"));
    size = { left, top, width, height };
    boxes = all("box", (e) => ({ path: numbers(e.dataset.in), ...sides(e.querySelector("rect, ellipse")) }));
    frames = all("frame", (e) => ({ path: numbers(e.dataset.in), ...sides(e) }));
    edges = all("ends", (e) => ({ ends: numbers(e.dataset.ends), curve: points(e.firstChild), tip: points(e.lastChild)[0] }));
    labels = all("label", (e) => { const [x, y] = of(e, "x", "y"); return { x, y, edge: edges[e.dataset.label], half: 3.5 * e.textContent.length + 6 }; });
    legend = all("legend", (e) => sides(e.firstChild));
    byIndex = Object.fromEntries(frames.map((f) => [f.path.at(-1), f]));
    const button = (e, expanded, label) => set(e, { tabindex: 0, role: "button", "aria-expanded": expanded, "aria-label": label, style: "cursor:pointer" });
    for (const { e } of all("name", () => 0)) {
      const f = byIndex[e.dataset.name], said = e.firstChild.textContent.split("\n"), text = e.lastChild;
      Object.assign(f, { name: e, full: said[0], text, lines: [`▸ ${text.textContent}`, ...said.slice(1)] });
      text.prepend("▾ ");
      button(e, true, said.join(", "));
    }
    for (const { e } of opened ? all("inside", () => 0) : []) {
      e.querySelector("text").prepend("▸ ");
      button(e, false, e.firstChild.textContent.split("\n").slice(0, 2).join(", "));
    }
    // Words outside of boxes have the colors of the page.
    for (const e of svg.querySelectorAll("[paint-order]")) e.style.cssText = "fill:currentColor;stroke:var(--minflow-page)";
    for (const e of svg.querySelectorAll("[paint-order] tspan[fill]")) e.style.cssText = "fill:inherit;fill-opacity:.75";
  };
  const pen = document.createElement("canvas").getContext("2d");
  const wide = (words, font) => { pen.font = `${font} 12px Helvetica, Arial, sans-serif`; return pen.measureText(words).width; };

  const redraw = () => {
    const outer = (path) => path.map((i) => byIndex[i]).find((f) => f.folded), show = (e, shown) => { e.style.display = shown ? "" : "none"; };
    const seen = frames.filter((f) => !outer(f.path.slice(0, -1))), folded = seen.filter((f) => f.folded), open = seen.filter((f) => !f.folded);
    const covered = (x, y) => folded.some((f) => f.left <= x && x <= f.right && f.top <= y && y <= f.bottom);
    const shown = boxes.filter((b) => !outer(b.path)), drawn = [];
    for (const l of edges) {
      [l.from, l.to] = l.ends.map((i) => outer(boxes[i].path));
      if (!l.from || l.from !== l.to) drawn.push(l);
    }
    const marks = labels.filter((l) => drawn.includes(l.edge) && !covered(l.x, l.y));
    const X = squeezed(folded.map((f) => [f.left, f.right, 26 + Math.max(...f.lines.map((words, i) => wide(words, i ? "" : "bold")))]), [
      ...shown.map((b) => [b.left - 10, b.right + 10]), ...marks.map((l) => [l.x - l.half, l.x + l.half]),
      ...open.flatMap((f) => [[f.left, f.left + 20 + wide(f.text.textContent, "")], [f.right - 8, f.right]]),
      ...drawn.flatMap((l) => l.curve.filter((p) => !covered(...p)).map(([x]) => [x - 4, x + 4])),
    ]);
    const Y = squeezed(folded.map((f) => [f.top, f.bottom, 20 + 16 * f.lines.length]), [
      ...shown.map((b) => [b.top - 14, b.bottom + 14]), ...marks.map((l) => [l.y - 16, l.y + 10]),
      ...open.flatMap((f) => [[f.top, f.top + 24], [f.bottom - 8, f.bottom]]),
    ]);
    const move = (e, x, y) => set(e, { transform: `translate(${X(x) - x} ${Y(y) - y})` });
    for (const b of boxes) { show(b.e, shown.includes(b)); move(b.e, (b.left + b.right) / 2, (b.top + b.bottom) / 2); }
    for (const l of labels) { show(l.e, marks.includes(l)); move(l.e, l.x, l.y); }
    for (const l of legend) move(l.e, l.left, l.top);
    for (const f of frames) {
      const x = X(f.left), y = Y(f.top), width = X(f.right) - x, height = Y(f.bottom) - y, look = { fill: "#f3f5f8", stroke: "#7d8590" };
      show(set(f.e, { x, y, width, height }), open.includes(f));
      show(set(f.name, { "aria-expanded": !f.folded }), seen.includes(f));
      show(move(f.text, f.left, f.top), !f.folded);
      f.box?.remove();
      if (!f.folded) continue;
      f.box = node("g", { stroke: "none" }, node("rect", { x, y, width, height, rx: 5, ...look }), node("rect", { x: x + 3, y: y + 3, width: width - 6, height: height - 6, rx: 3.5, ...look }),
        ...f.lines.map((words, i) => node("text", { x: x + width / 2, y: y + height / 2 + 12.3 + 16 * (i - f.lines.length / 2), "font-size": 12, "text-anchor": "middle", fill: i ? "#57606a" : "#24292f", "font-weight": i ? "" : "bold" }, words)));
      f.name.append(f.box);
    }
    for (const l of edges) {
      show(l.e, drawn.includes(l));
      let { curve, tip } = l;
      if (l.from) curve = clipped([...curve].reverse(), l.from).reverse();
      if (l.to) tip = (curve = clipped(curve, l.to)).at(-1);
      const way = curve.map(([x, y]) => [X(x), Y(y)]), [x, y] = [X(tip[0]), Y(tip[1])];
      const [a, b] = way.findLast((p) => Math.hypot(x - p[0], y - p[1]) > 2) || [x, y - 9], far = Math.hypot(x - a, y - b) / 6, p = (x - a) / far, q = (y - b) / far;
      set(l.e.firstChild, { d: `M${way[0].join(" ")}C${way.slice(1).join(" ")}` });
      set(l.e.lastChild, { d: `M${x} ${y}L${x - p - q / 2} ${y - q + p / 2}L${x - p + q / 2} ${y - q - p / 2}Z` });
    }
    Object.assign(size, { left: X(left), top: Y(top), width: X(left + width) - X(left), height: Y(top + height) - Y(top) });
  };

  // The view: pixels a unit (0: as `usual`), and the point in the upper left corner.
  let scale = 0, x = -1e9, y = -1e9;
  const page = html("div", "position:relative"), bar = html("div", "display:flex;gap:2px;justify-content:flex-end;margin-bottom:4px;opacity:.75");
  const view = html("div", "overflow:hidden;max-width:100%;touch-action:pan-y;user-select:none", { tabIndex: 0, role: "group", ariaLabel: image.alt });
  page.dataset.lmSuppressShortcuts = "true";
  const clamp = (v, a, b) => Math.max(a, Math.min(v, b)), full = () => document.fullscreenElement === page;
  // Width of the output, and of all around the picture in it. Nothing is measured: a page may have hundreds of pictures.
  let space = 0, around = 0;
  const room = () => (full() ? innerWidth : space - around);
  // At first all of the width, as long as letters of 12 units have 6 pixels; a wider picture is as wide as the <img> was.
  const usual = () => {
    const fitted = Math.min(1, room() / width), least = fitted < 0.5 ? (parseFloat(image.style.minWidth) || 0) / width : 0;
    return Math.min(Math.max(fitted, least), parseFloat(image.style.maxHeight) / height || 9);
  };
  const lay = () => {
    const first = usual(), k = scale || first, limit = full() ? innerHeight - 30 : Math.max(height * first, 0.8 * innerHeight);
    if (room() <= 0) return;
    const w = full() ? innerWidth : Math.min(Math.ceil(size.width * k), room()), h = full() ? limit : Math.min(size.height * k, limit), over = [size.width - w / k, size.height - h / k];
    x = clamp(x, size.left + Math.min(0, over[0]), size.left + Math.max(0, over[0]));
    y = clamp(y, size.top + Math.min(0, over[1]), size.top + Math.max(0, over[1]));
    Object.assign(view.style, { width: `${w}px`, height: `${h}px` });
    set(svg, { width: w, height: h, viewBox: `${x} ${y} ${w / k} ${h / k}` });
    view.style.cursor = Math.max(...over) > 1 ? "grab" : "";
  };
  const zoom = (factor, px = view.clientWidth / 2, py = view.clientHeight / 2) => {
    const old = scale || usual();
    scale = clamp(old * factor, 0.05, 8);
    x += px / old - px / scale;
    y += py / old - py / scale;
    lay();
  };
  const pan = (dx, dy) => { const k = scale || usual(), before = x + y; x += dx / k; y += dy / k; lay(); return before !== x + y; };
  const exact = () => { scale = 1; lay(); }, larger = () => zoom(1.25), smaller = () => zoom(0.8);
  const fit = () => { scale = Math.min(2, room() / size.width, (innerHeight - 60) / size.height); lay(); };
  const fold = (list, folded) => { for (const f of list) f.folded = folded; redraw(); lay(); };
  const open = async (inside) => {
    const shown = new Set(frames.filter((f) => !f.folded).map((f) => f.full)), packed = new Blob([bytes(opened)]);
    opened = null;
    const more = parsed(await new Response(packed.stream().pipeThrough(new DecompressionStream("deflate"))).text());
    svg.replaceChildren(...more.childNodes);
    set(svg, { viewBox: more.getAttribute("viewBox") });
    read();
    for (const f of frames) f.folded = !shown.has(f.full) && !`${inside}.`.startsWith(`${f.full}.`);
    fold([], true);
    frames.find((f) => f.full === inside)?.name.focus();
  };
  const toggle = (target) => {
    const f = frames.find((f) => f.name === target.closest("[data-name]")), inside = target.closest("[data-inside]")?.dataset.inside;
    if (f) fold([f], !f.folded);
    else if (inside && opened) open(inside);
    else return false;
  };

  const button = (sign, title, act) => bar.append(html("button", "font:12px/18px system-ui,sans-serif;min-width:24px;padding:0 5px;border:1px solid #7d8590;border-radius:4px;background:none;color:inherit;cursor:pointer",
    { type: "button", textContent: sign, title, ariaLabel: title, onclick: act }));
  read();
  if (frames.length) button("▸ all", "fold all modules, or open them", () => fold(frames, !frames.some((f) => f.folded)));
  button("−", "smaller (key -)", smaller);
  button("+", "larger (key +, or Ctrl and the wheel)", larger);
  button("fit", "fit all of it (key 0)", fit);
  button("1:1", "1:1, full size (key 1)", exact);
  if (document.fullscreenEnabled) button("full screen", "full screen", () => (full() ? document.exitFullscreen() : page.requestFullscreen()));

  let behind = element;
  while (behind.parentElement && /, 0\)|transparent/.test(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
  page.style.setProperty("--minflow-page", `var(--jp-layout-color0, var(--vscode-editor-background, ${getComputedStyle(behind).backgroundColor}))`);
  page.style.background = "var(--minflow-page)";

  // The wheel alone scrolls the page.
  view.addEventListener("wheel", (e) => {
    const { left: px, top: py } = view.getBoundingClientRect(), across = e.shiftKey ? e.deltaX || e.deltaY : Math.abs(e.deltaX) > Math.abs(e.deltaY) && e.deltaX;
    if (e.ctrlKey || e.metaKey) zoom(Math.exp(-clamp(e.deltaY, -60, 60) / 150), e.clientX - px, e.clientY - py);
    else if (!across || !pan(across, 0)) return;
    e.preventDefault();
  }, { passive: false });
  const fingers = new Map();
  let moved = 0;
  view.onpointerdown = (e) => { moved = 0; if (!e.button) fingers.set(e.pointerId, e); };
  view.onpointermove = (e) => {
    const before = fingers.get(e.pointerId), other = [...fingers.values()].find((f) => f.pointerId !== e.pointerId);
    if (!before || (moved = Math.max(moved, Math.hypot(e.clientX - before.clientX, e.clientY - before.clientY))) < 4) return;
    const { left: px, top: py } = view.getBoundingClientRect(), apart = (f) => Math.hypot(f.clientX - other.clientX, f.clientY - other.clientY) || 1;
    fingers.set(e.pointerId, e);
    view.setPointerCapture(e.pointerId);
    if (other) zoom(apart(e) / apart(before), other.clientX - px, other.clientY - py);
    else pan(before.clientX - e.clientX, before.clientY - e.clientY);
  };
  view.onpointerup = view.onpointercancel = (e) => fingers.delete(e.pointerId);
  view.onclick = (e) => moved < 4 && toggle(e.target);
  view.onkeydown = (e) => {
    const act = { "+": larger, "=": larger, "-": smaller, 0: fit, 1: exact, Enter: () => toggle(e.target), " ": () => toggle(e.target),
      ArrowLeft: () => pan(-60, 0), ArrowRight: () => pan(60, 0), ArrowUp: () => pan(0, -60), ArrowDown: () => pan(0, 60) }[e.key];
    if (act && !e.ctrlKey && !e.metaKey && !e.altKey && act() !== false) e.preventDefault();
  };
  // The edges of the box at the pointer are thick.
  view.onpointerover = (e) => {
    const box = e.target.closest("[data-box]");
    for (const l of edges) l.e.style.strokeWidth = box && l.ends.includes(+box.dataset.box) ? "2.6px" : "";
  };
  page.onpointerenter = page.onfocusin = () => { bar.style.opacity = 1; };
  page.onpointerleave = () => { bar.style.opacity = 0.75; };
  page.onfullscreenchange = lay;
  svg.removeAttribute("role");
  svg.style.display = "block";
  view.append(svg);
  page.append(bar, view);
  image.replaceWith(page);
  new ResizeObserver(([{ contentRect }]) => {
    space = contentRect.width;
    around = 0;
    for (let e = page.parentElement; e !== element; e = e.parentElement) {
      const look = getComputedStyle(e);
      for (const side of ["Left", "Right"]) around += [`padding${side}`, `margin${side}`, `border${side}Width`].reduce((sum, key) => sum + (parseFloat(look[key]) || 0), 0);
    }
    lay();
  }).observe(element);
}

return livePicture;
})()

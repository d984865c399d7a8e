// Draws what live_timeline.py encodes: lanes of bars, the last steps of a job. One trait holds all of it.
// Put behind page_theme.js.
const LEFT = 104, RIGHT = 22, LANE = 25, TALL = 18, TOP = 4;
const BARS = [["#e2efff", LINES.blue], ["#f3f5f8", LINES.gray], ["#fff8e5", LINES.amber], ["#e6f5ea", LINES.green]]; // fill, rim
const FAILED = ["#fff0ee", LINES.red], WAITS = ["#f3f5f8", LINES.gray];
const WHO = ["your loop", "step waits", "the worker", "the worker"];

function decode(view) {
  if (!view || view.byteLength < 4) return null;
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength).slice();
  const size = new DataView(bytes.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  const n = new Float32Array(bytes.buffer, 4 + size);
  head.bars = [];
  for (let i = 0; i + 6 < n.length; i += 7) {
    head.bars.push({ lane: n[i], row: n[i + 1], rows: n[i + 2], start: n[i + 3], stop: n[i + 4], number: n[i + 5], kind: n[i + 6] });
  }
  head.bars.sort((a, b) => (b.kind === 1) - (a.kind === 1));    // what is busy is drawn over what waits
  return head;
}

function draw(c, head, width, seconds, theme) {
  const plot = width - LEFT - RIGHT, across = (t) => LEFT + (t / seconds) * plot;
  const text = (s, x, y, color, align, font) => {
    c.fillStyle = color; c.textAlign = align || "left"; c.font = (font || "11px") + " Helvetica, Arial, sans-serif"; c.fillText(s, x, y);
  };
  head.lanes.forEach((name, i) => {
    const y = TOP + i * LANE;
    c.fillStyle = theme.faint; c.fillRect(LEFT, y + LANE - 1, plot, 1);
    c.fillStyle = BARS[i][1]; c.fillRect(4, y + 2, 3, LANE - 4);
    text(name, 12, y + 11, theme.ink, "left", "bold 12px"); text(WHO[i], 12, y + 22, theme.soft);
  });
  c.font = "11px Helvetica, Arial, sans-serif";
  for (const b of head.bars) {
    const x = across(b.start), wide = Math.max(across(b.stop) - x, 1);
    const tall = TALL / b.rows, y = TOP + b.lane * LANE + (LANE - TALL) / 2 + b.row * tall;
    if (b.kind === 1) {
      if (wide < 2.5) continue;
      if (wide > 48) { c.fillStyle = WAITS[0]; c.fillRect(x, y + 1, wide, TALL - 2); }
      c.strokeStyle = WAITS[1]; c.lineWidth = 1; c.setLineDash([2, 2]); c.strokeRect(x, y + 1, wide, TALL - 2); c.setLineDash([]);
      if (wide > 48) text("waits", x + wide / 2, y + 13, LIGHT.soft, "center");
      continue;
    }
    const [fill, rim] = b.kind === 2 ? FAILED : BARS[b.lane], high = tall - (b.rows > 1 ? 1 : 0), label = String(b.number);
    c.fillStyle = wide > 8 ? fill : rim; c.fillRect(x, y, wide, high);
    if (wide > 8) { c.strokeStyle = rim; c.lineWidth = 1.6; c.strokeRect(x + 0.8, y + 0.8, wide - 1.6, high - 1.6); }
    if (wide > c.measureText(label).width + 4 && tall > 11) text(label, x + wide / 2, y + tall / 2 + 4, LIGHT.ink, "center");
  }
  const rough = seconds / 6, scale = 10 ** Math.floor(Math.log10(rough));
  const step = scale * [1, 2, 5, 10].find((m) => scale * m >= rough * 0.999);
  const bottom = TOP + head.lanes.length * LANE, unit = seconds < 10 ? 1e-3 : 1;
  for (let k = 0; k * step <= seconds * (1 + 1e-9); k++) {
    const x = across(k * step);
    c.fillStyle = theme.soft; c.fillRect(x, bottom + 1, 1, 4);
    text(String(Number(((k * step) / unit).toPrecision(3))) + (k ? "" : unit < 1 ? " ms" : " s"), x, bottom + 16, theme.soft, "center");
  }
}

function render({ model, el }) {
  const box = document.createElement("div"), top = document.createElement("div"), foot = document.createElement("div");
  const name = document.createElement("b"), status = document.createElement("span"), canvas = document.createElement("canvas");
  canvas.setAttribute("role", "img");
  canvas.style.display = "block";
  box.style.maxWidth = "960px";
  for (const line of [top, foot]) line.style.cssText = "font:12px Helvetica,Arial,sans-serif;padding:2px 12px;min-height:16px";
  top.append(name, status);
  box.append(top, canvas, foot);
  el.append(box);
  let waiting = false, seconds = 0;

  const show = () => {
    waiting = false;
    const head = decode(model.get("data"));
    if (!head) return;
    const width = Math.max(box.clientWidth || 760, 320), ratio = window.devicePixelRatio || 1, height = TOP + 4 * LANE + 22;
    canvas.width = width * ratio; canvas.height = height * ratio;
    canvas.style.width = width + "px"; canvas.style.height = height + "px";
    const c = canvas.getContext("2d"), theme = themeOf(el);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    seconds = Math.max(head.seconds, seconds < 2 * head.seconds ? seconds * 0.97 : 0);  // a calm scale
    box.style.color = theme.ink;
    name.textContent = head.title;
    status.textContent = head.status + (head.bars.some((b) => b.kind === 1) ? " · dashed: the loop waits" : "");
    foot.textContent = head.formula;
    draw(c, head, width, seconds || 1, theme);
    canvas.setAttribute("aria-label", `Timeline of ${head.title}${head.status}; ${head.formula}`);
  };
  const soon = () => { if (!waiting) { waiting = true; requestAnimationFrame(show); } };
  model.on("change:data", soon);
  const size = new ResizeObserver(soon), unfollow = followTheme(soon);
  size.observe(box);
  soon();
  return () => { model.off("change:data", soon); size.disconnect(); unfollow(); };
}

export default { render };

// Draws what series.py encodes: one trait holds all of it, so a page that is loaded again shows the whole curve.
const HEIGHT = 230, LEFT = 52, RIGHT = 14, BOTTOM = 39, LINE = 15;
const DASHES = [[], [7, 3], [2, 3], [8, 3, 2, 3]];
const LIGHT = { lines: ["#1f5fa8", "#b5470b", "#1d7a46", "#7b3fa0"], ink: "#24292f", faint: "#d0d7de", red: "#b42318" };
const DARK = { lines: ["#7db7ff", "#ffa36b", "#6fd39a", "#c9a0ff"], ink: "#e6e6e6", faint: "#4a4f57", red: "#ff8f85" };

function decode(view) {
  if (!view || view.byteLength < 4) return null;
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength).slice();
  const size = new DataView(bytes.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  const numbers = new Float32Array(bytes.buffer, 4 + size);
  let at = 0;
  const take = (n) => numbers.subarray(at, (at += n));
  for (const s of head.series) Object.assign(s, { x: take(s.n), y: take(s.n), mx: take(s.m), my: take(s.m) });
  return head;
}

function number(v) {
  if (v !== 0 && (Math.abs(v) < 1e-4 || Math.abs(v) >= 1e9)) return v.toExponential(1);
  return Number.isInteger(v) && Math.abs(v) >= 1e4 ? v.toLocaleString("en") : String(Number(v.toPrecision(4)));
}

function ticks(low, high, count) {
  if (!(high > low)) return [low];
  const rough = (high - low) / count, scale = 10 ** Math.floor(Math.log10(rough));
  const step = scale * [1, 2, 5, 10].find((m) => scale * m >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(k * step);
  return found;
}

function limits(arrays, log) {
  let low = Infinity, high = -Infinity;
  for (const a of arrays) for (const v of a) {
    if (!Number.isFinite(v) || (log && v <= 0)) continue;
    if (v < low) low = v;
    if (v > high) high = v;
  }
  if (low > high) return [0, 1];
  if (low < high) return [low, high];
  const room = Math.abs(low) * 0.1 || 1;
  return log ? [low / 2, high * 2] : [low - room, high + room];
}

function panel(c, theme, title, members, width, log) {
  const positive = members.some((s) => s.y.some((v) => v > 0));
  log = log && positive;
  const f = log ? Math.log10 : (v) => v;
  const [x0, x1] = limits(members.map((s) => s.x));
  const [low, high] = limits(members.map((s) => s.y), log);
  const y0 = f(low), y1 = f(high);
  const rows = members.reduce((n, s) => n + 1 + (s.warning ? 1 : 0), 0);
  const top = 10 + LINE * Math.max(rows, 1), right = width - RIGHT, bottom = HEIGHT - BOTTOM;
  const across = (x) => LEFT + ((x - x0) / (x1 - x0)) * (right - LEFT);
  const up = (y) => bottom - ((f(y) - y0) / (y1 - y0)) * (bottom - top - 6);
  const text = (x, y, s, align, color) => {
    c.fillStyle = color || theme.ink; c.textAlign = align || "left"; c.fillText(s, x, y, width - x);
  };
  const stroke = (xs, ys, color, w, alpha, dash) => {
    c.strokeStyle = color; c.lineWidth = w; c.globalAlpha = alpha; c.setLineDash(dash); c.beginPath();
    let pen = false;
    for (let i = 0; i < xs.length; i++) {
      if (!Number.isFinite(ys[i]) || (log && ys[i] <= 0)) { pen = false; continue; }
      if (pen) c.lineTo(across(xs[i]), up(ys[i])); else c.moveTo(across(xs[i]), up(ys[i]));
      pen = true;
    }
    c.stroke(); c.globalAlpha = 1; c.setLineDash([]);
  };
  const rule = (points, color, dash) => {
    c.strokeStyle = color; c.lineWidth = 1; c.setLineDash(dash || []); c.beginPath();
    points.forEach((p, i) => (i ? c.lineTo(...p) : c.moveTo(...p))); c.stroke(); c.setLineDash([]);
  };
  let marks = ticks(y0, y1, 4);
  if (log) {
    marks = ticks(y0, y1, 4).filter((v) => Number.isInteger(v)).map((v) => 10 ** v);
    if (marks.length < 2) marks = ticks(low, high, 4);
  }
  for (const v of marks.filter((v) => !log || v > 0)) {
    rule([[LEFT, up(v)], [right, up(v)]], theme.faint); text(LEFT - 6, up(v) + 4, number(v), "right");
  }
  for (const v of ticks(x0, x1, Math.max(2, Math.floor(width / 110)))) text(across(v), bottom + 16, number(v), "center");
  rule([[LEFT, top], [LEFT, bottom], [right, bottom]], theme.ink);
  const mean = Math.max(0, ...members.map((s) => s.window));
  text((LEFT + right) / 2, bottom + 31, mean ? `step; thick line: mean of ${mean}` : "step", "center");
  if (!members.length) text(LEFT, 18, `no ${title} yet`);
  let row = 0;
  members.forEach((s, k) => {
    const color = theme.lines[k % 4], dash = DASHES[k % 4];
    stroke(s.x, s.y, color, s.m ? 1 : 1.6, s.m ? 0.4 : 1, s.m ? [] : dash);
    if (s.m) stroke(s.mx, s.my, color, 2, 1, dash);
    if (s.n === 1) { c.fillStyle = color; c.beginPath(); c.arc(across(s.x[0]), up(s.y[0]), 2.5, 0, 7); c.fill(); }
    c.lineWidth = 2; c.strokeStyle = color; c.setLineDash(dash); c.beginPath();
    c.moveTo(LEFT, 12 + row * LINE); c.lineTo(LEFT + 20, 12 + row * LINE); c.stroke(); c.setLineDash([]);
    text(LEFT + 26, 16 + row++ * LINE, s.label);
    if (s.warning) {
      const at = Math.min(Math.max(across(s.bad), LEFT), right);
      rule([[at, top], [at, bottom]], theme.red, [4, 3]);
      text(LEFT + 26, 16 + row++ * LINE, s.warning, "left", theme.red);
    }
  });
}

function isDark(el) {
  const flag = document.body.dataset.jpThemeLight;
  if (flag) return flag === "false";
  const [r, g, b] = (getComputedStyle(el).color.match(/[\d.]+/g) || [0, 0, 0]).map(Number);
  return r + g + b > 384; // light text: the page is dark
}

function render({ model, el }) {
  const box = document.createElement("div"), bar = document.createElement("div");
  const canvas = document.createElement("canvas"), status = document.createElement("span");
  const button = document.createElement("button");
  canvas.setAttribute("role", "img");
  canvas.style.display = "block";
  box.style.maxWidth = "960px";
  bar.style.cssText = "display:flex;justify-content:space-between;align-items:center;font:11.5px Helvetica,Arial,sans-serif;padding:2px 14px 2px 10px";
  button.type = "button";
  button.textContent = "log y";
  button.setAttribute("aria-pressed", "false");
  button.style.cssText = "font:inherit;color:inherit;background:transparent;border:1px solid;border-radius:3px;padding:1px 8px;cursor:pointer";
  bar.append(status, button);
  box.append(bar, canvas);
  el.append(box);
  let log = false, waiting = false;

  const draw = () => {
    waiting = false;
    const head = decode(model.get("data"));
    const titles = head && head.panels.length ? head.panels : ["loss"];
    const width = Math.max(box.clientWidth || 720, 240);
    const columns = Math.min(titles.length, Math.max(1, Math.floor(width / 240)), 3);
    const height = Math.ceil(titles.length / columns) * HEIGHT, ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio; canvas.height = height * ratio;
    canvas.style.width = width + "px"; canvas.style.height = height + "px";
    const c = canvas.getContext("2d"), theme = isDark(el) ? DARK : LIGHT;
    c.font = "11.5px Helvetica, Arial, sans-serif";
    bar.style.color = theme.ink;
    titles.forEach((title, i) => {
      c.setTransform(ratio, 0, 0, ratio, (i % columns) * (width / columns) * ratio, Math.floor(i / columns) * HEIGHT * ratio);
      panel(c, theme, title, head ? head.series.filter((s) => s.panel === i) : [], width / columns, log);
    });
    status.textContent = head ? head.status : "waiting for the first value";
    canvas.setAttribute("aria-label", [status.textContent, ...(head ? head.series.map((s) => s.label + (s.warning ? ", " + s.warning : "")) : [])].join("; "));
  };
  const soon = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
  button.onclick = () => { log = !log; button.setAttribute("aria-pressed", String(log)); button.style.background = log ? "rgba(128,128,128,.35)" : "transparent"; soon(); };
  model.on("change:data", soon);
  const size = new ResizeObserver(soon), look = new MutationObserver(soon);
  size.observe(box);
  look.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class", "data-theme"] });
  soon();
  return () => { model.off("change:data", soon); size.disconnect(); look.disconnect(); };
}

export default { render };

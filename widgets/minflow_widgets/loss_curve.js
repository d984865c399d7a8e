// Draws what series.py encodes: one trait holds all of it, so a page that is loaded again shows the whole curve.
// Traits: data, before (the previous run), look (what the reader chose), wish (the button that was pressed last).
const HEIGHT = 230, STRIP = 130, LEFT = 52, RIGHT = 14, BOTTOM = 39, LINE = 15, DOTS = 24;
const DASHES = [[], [7, 3], [2, 3], [8, 3, 2, 3]];
const LIGHT = { lines: ["#1f5fa8", "#b5470b", "#1d7a46", "#7b3fa0"], ink: "#24292f", faint: "#d0d7de", red: "#b42318", old: "#a3abb3", mark: "#57606a", card: "#fff" };
const DARK = { lines: ["#7db7ff", "#ffa36b", "#6fd39a", "#c9a0ff"], ink: "#e6e6e6", faint: "#4a4f57", red: "#ff8f85", old: "#868e96", mark: "#b0b7bf", card: "#222" };

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

// Seconds of a step: straight lines between the few (step, seconds) that were sent.
function timed(clock, x) {
  let low = 0, high = clock.length - 1;
  if (high < 1) return clock[0][1];
  while (high - low > 1) { const middle = (low + high) >> 1; if (clock[middle][0] <= x) low = middle; else high = middle; }
  const [a, s] = clock[low], [b, t] = clock[high];
  return s + ((x - a) / (b - a)) * (t - s);
}

function onTime(head) {
  for (const s of head.series) {
    if (!s.clock) continue;
    s.x = s.x.map((x) => timed(s.clock, x)); s.mx = s.mx.map((x) => timed(s.clock, x));
    if (s.warning) s.bad = timed(s.clock, s.bad);
  }
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

// The point nearest to x.
function nearest(xs, x) {
  let low = 0, high = xs.length - 1;
  while (high - low > 1) { const middle = (low + high) >> 1; if (xs[middle] <= x) low = middle; else high = middle; }
  return Math.abs(xs[high] - x) < Math.abs(xs[low] - x) ? high : low;
}

function panel(c, theme, title, members, width, tall, scene) {
  const old = members.map((s) => scene.before.get(s.name)).filter(Boolean);
  const log = scene.log && [...members, ...old].some((s) => s.y.some((v) => v > 0));
  const f = log ? Math.log10 : (v) => v, [x0, x1] = scene.limits;
  const [low, high] = limits([...members, ...old].map((s) => s.y), log);
  const y0 = f(low), y1 = f(high);
  const rows = members.reduce((n, s) => n + 1 + (s.warning ? 1 : 0), 0);
  const top = 10 + LINE * Math.max(rows, 1), right = width - RIGHT, bottom = tall - BOTTOM;
  const across = (x) => LEFT + ((x - x0) / (x1 - x0)) * (right - LEFT);
  const up = (y) => bottom - ((f(y) - y0) / (y1 - y0)) * (bottom - top - 6);
  const text = (x, y, s, align, color) => {
    c.fillStyle = color || theme.ink; c.textAlign = align || "left"; c.fillText(s, x, y, align ? width : width - x);
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
  const dot = (x, y, color, r) => { c.fillStyle = color; c.beginPath(); c.arc(across(x), up(y), r, 0, 7); c.fill(); };
  const count = Math.max(2, Math.floor((bottom - top) / 30));
  let marks = ticks(y0, y1, count);
  if (log) {
    marks = marks.filter((v) => Number.isInteger(v)).map((v) => 10 ** v);
    if (marks.length < 2) marks = ticks(low, high, count);
  }
  for (const v of marks.filter((v) => !log || v > 0)) {
    rule([[LEFT, up(v)], [right, up(v)]], theme.faint); text(LEFT - 6, up(v) + 4, number(v), "right");
  }
  for (const v of ticks(x0, x1, Math.max(2, Math.floor(width / 110)))) text(across(v), bottom + 16, number(v), "center");
  rule([[LEFT, top], [LEFT, bottom], [right, bottom]], theme.ink);
  let free = 0;
  for (const [step, seconds, label] of scene.marks) {
    const at = across(scene.x === "time" ? seconds : step), short = label.length > 12 ? label.slice(0, 11) + "\u2026" : label;
    rule([[at, top], [at, bottom]], theme.mark, [1, 3]);
    if (tall > STRIP && at - 6.5 * short.length > free) { text(at - 3, top + 10, short, "right", theme.mark); free = at; }
  }
  const mean = Math.max(0, ...members.map((s) => s.window));
  const under = [scene.x === "time" ? "seconds since its start" : "step"];
  if (mean) under.push(`thick line: mean of ${mean}`);
  if (old.length) under.push("grey: previous run");
  if (scene.marks.length && tall > STRIP && 6 * (under.join("; ").length + 18) < right - LEFT) under.push("numbered: epochs");
  text((LEFT + right) / 2, bottom + 31, under.join("; "), "center");
  if (!members.length) text(LEFT, 18, `no ${title} yet`);
  for (const s of old) stroke(s.x, s.y, theme.old, 1, 1, []);
  let row = 0;
  members.forEach((s, k) => {
    const color = theme.lines[k % 4], dash = DASHES[k % 4];
    stroke(s.x, s.y, color, s.m ? 1 : 1.6, s.m ? 0.4 : 1, s.m ? [] : dash);
    if (s.m) stroke(s.mx, s.my, color, 2, 1, dash);
    else if (s.n <= DOTS) s.x.forEach((x, i) => { if (Number.isFinite(s.y[i]) && !(log && s.y[i] <= 0)) dot(x, s.y[i], color, 2.5); });
    c.lineWidth = 2; c.strokeStyle = color; c.setLineDash(dash); c.beginPath();
    c.moveTo(LEFT, 12 + row * LINE); c.lineTo(LEFT + 20, 12 + row * LINE); c.stroke(); c.setLineDash([]);
    text(LEFT + 26, 16 + row++ * LINE, s.label);
    if (s.warning) {
      const at = Math.min(Math.max(across(s.bad), LEFT), right);
      rule([[at, top], [at, bottom]], theme.red, [4, 3]);
      text(LEFT + 26, 16 + row++ * LINE, s.warning, "left", theme.red);
    }
  });
  if (scene.at === null) return;
  rule([[across(scene.at), top], [across(scene.at), bottom]], theme.ink);
  const said = members.filter((s) => s.n).map((s) => {
    const i = nearest(s.x, scene.at);
    if (Number.isFinite(s.y[i]) && !(log && s.y[i] <= 0)) dot(s.x[i], s.y[i], theme.lines[members.indexOf(s) % 4], 3.5);
    return `${s.name} ${Number.isFinite(s.y[i]) ? number(s.y[i]) : "not finite"}${s.x[i] === scene.at ? "" : ` at ${number(s.x[i])}`}`;
  });
  if (!said.length) return;
  const w = Math.max(...said.map((s) => c.measureText(s).width)) + 12, h = said.length * LINE + 6;
  const x = across(scene.at) + 8 + w > right ? across(scene.at) - 8 - w : across(scene.at) + 8;
  c.fillStyle = theme.card; c.fillRect(x, top + 4, w, h); c.strokeStyle = theme.ink; c.strokeRect(x, top + 4, w, h);
  said.forEach((s, i) => text(x + 6, top + 18 + i * LINE, s));
  scene.said.push(...said);
}

function isDark(el) {
  const flag = document.body.dataset.jpThemeLight;
  if (flag) return flag === "false";
  const [r, g, b] = (getComputedStyle(el).color.match(/[\d.]+/g) || [0, 0, 0]).map(Number);
  return r + g + b > 384; // light text: a dark page
}

function render({ model, el }) {
  const make = (kind, style) => Object.assign(document.createElement(kind), { style });
  const box = make("div", "max-width:720px;font:11.5px Helvetica,Arial,sans-serif"), canvas = make("canvas", "display:block");
  const bar = make("div", "display:flex;gap:6px;align-items:center;height:22px;padding:0 14px 0 10px;white-space:nowrap");
  const status = make("span", "flex:1;overflow:hidden;text-overflow:ellipsis"), note = make("span", "");
  const values = make("div", "height:16px;padding-left:10px;overflow:hidden;white-space:nowrap;text-overflow:ellipsis");
  const button = (name) => {
    const made = make("button", "font:inherit;color:inherit;background:transparent;border:1px solid;border-radius:3px;padding:1px 8px;cursor:pointer");
    made.type = "button"; made.textContent = name;
    return made;
  };
  const logs = button("log y"), times = button("time x"), pause = button("pause"), stop = button("stop");
  canvas.dataset.lmSuppressShortcuts = "true"; // Notebook 7 takes arrows
  canvas.setAttribute("role", "img"); canvas.tabIndex = 0; values.setAttribute("aria-live", "polite");
  bar.append(status, note, pause, stop, logs, times);
  box.append(bar, canvas, values);
  el.append(box);
  let waiting = false, at = null, areas = [], scene = null, head = null;

  const look = () => { try { return JSON.parse(model.get("look")); } catch { return {}; } };
  const set = (trait, value) => { model.set(trait, value); model.save_changes(); };
  const choose = (change) => { at = null; set("look", JSON.stringify({ ...look(), ...change })); soon(); };
  const wish = (what) => set("wish", `${what} ${1 + (Number(model.get("wish").split(" ")[1]) || 0)}`);
  const shown = (b, on) => { b.setAttribute("aria-pressed", String(on)); b.style.background = on ? "rgba(128,128,128,.35)" : "transparent"; };

  const draw = () => {
    waiting = false;
    const { log, x } = look(), time = x === "time";
    head = decode(model.get("data"));
    let before = decode(model.get("before"));
    if (time) { head = head && onTime(head); before = before && onTime(before); }
    const titles = head && head.panels.length ? head.panels : ["loss"], lines = head ? head.series : [];
    const known = new Map(before ? before.series.map((s) => [s.name, s]) : []);  // not {}: names
    const width = Math.max(box.clientWidth || 720, 240), ratio = window.devicePixelRatio || 1;
    const narrow = (row) => width / row.length < 230;
    const rows = (head && head.rows.length ? head.rows : [[0]]).flatMap((row) => (narrow(row) ? row.map((i) => [i]) : [row]));
    const tall = (row) => (head && head.small.includes(row[0]) && head.small.length < titles.length ? STRIP : HEIGHT);
    const height = rows.reduce((sum, row) => sum + tall(row), 0);
    canvas.width = width * ratio; canvas.height = height * ratio;
    canvas.style.width = width + "px"; canvas.style.height = height + "px";
    const c = canvas.getContext("2d"), theme = isDark(el) ? DARK : LIGHT;
    c.font = "11.5px Helvetica, Arial, sans-serif";
    box.style.color = theme.ink;
    scene = { log, x, at, before: known, marks: head ? head.marks || [] : [], said: [], limits: limits([...lines, ...known.values()].map((s) => s.x)) };
    areas = [];
    let y = 0;
    for (const row of rows) {
      row.forEach((i, k) => {
        const w = width / row.length;
        c.setTransform(ratio, 0, 0, ratio, k * w * ratio, y * ratio);
        areas.push({ left: k * w + LEFT, right: (k + 1) * w - RIGHT, top: y, bottom: y + tall(row) });
        panel(c, theme, titles[i], lines.filter((s) => s.panel === i), w, tall(row), scene);
      });
      y += tall(row);
    }
    const controls = !!(head && head.controls), state = head ? head.state : "running";
    pause.disabled = stop.disabled = !controls || !["running", "paused"].includes(state);
    pause.textContent = state === "paused" ? "resume" : "pause";
    for (const b of [pause, stop]) { b.style.opacity = b.disabled ? 0.6 : 1; b.style.cursor = b.disabled ? "not-allowed" : "pointer"; b.title = b.disabled && head ? head.note || state : ""; }
    pause.hidden = stop.hidden = state === "ended";
    note.textContent = controls || state === "ended" || !head ? "" : head.note || "";
    shown(logs, !!log); shown(times, time);
    times.disabled = lines.some((s) => s.n && !s.clock);
    status.textContent = (head && head.status) || "waiting for the first value";
    values.textContent = at === null ? "" : `${time ? "at" : "step"} ${number(at)}${time ? " s" : ""}: ${scene.said.join(", ")}`;
    canvas.setAttribute("aria-label", [status.textContent, ...lines.map((s) => s.label + (s.warning ? ", " + s.warning : ""))].join("; ") + "; arrow keys read values");
  };
  const soon = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
  const longest = () => head && head.series.reduce((a, s) => (!a || s.n > a.n ? s : a), null);
  canvas.onpointermove = ({ offsetX: x, offsetY: y }) => {
    const area = areas.find((a) => x >= a.left && x <= a.right && y >= a.top && y < a.bottom), line = longest();
    at = null;
    if (area && line && line.n) {
      const [x0, x1] = scene.limits, wanted = x0 + ((x - area.left) / (area.right - area.left)) * (x1 - x0);
      at = line.x[nearest(line.x, wanted)];
    }
    soon();
  };
  canvas.onpointerleave = canvas.onblur = () => { at = null; soon(); };
  canvas.onkeydown = (event) => {
    const line = longest(), move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape") at = null;
    else if (!move || !line || !line.n) return;
    else at = line.x[Math.min(Math.max((at === null ? (move < 0 ? line.n : -1) : nearest(line.x, at)) + move, 0), line.n - 1)];
    event.preventDefault(); event.stopPropagation(); soon();
  };
  logs.onclick = () => choose({ log: !look().log });
  times.onclick = () => choose({ x: look().x === "time" ? "step" : "time" });
  pause.onclick = () => wish(pause.textContent);
  stop.onclick = () => wish("stop");
  const traits = ["change:data", "change:before", "change:look"];
  for (const name of traits) model.on(name, soon);
  const size = new ResizeObserver(soon), theme = new MutationObserver(soon);
  size.observe(box);
  theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class", "data-theme"] });
  soon();
  return () => { for (const name of traits) model.off(name, soon); size.disconnect(); theme.disconnect(); };
}

export default { render };

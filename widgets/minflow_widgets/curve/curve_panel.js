// One panel of a curve on a canvas: what panels.py encodes, scales, lines, legend and the values under the pointer.
// Put behind page_theme.js, and before loss_curve.js, the widget that asks for it.
const HEIGHT = 230, STRIP = 130, LEFT = 52, RIGHT = 14, BOTTOM = 39, LINE = 15, DOTS = 24, WORDS = 38; // of a legend: where its words begin
const DASHES = [[], [7, 3], [2, 3], [8, 3, 2, 3]];
const COLORS = [LINES.blue, LINES.amber, LINES.green, LINES.violet];

function decode(view) {
  if (!view || view.byteLength < 4) return null;
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength).slice();
  const size = new DataView(bytes.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  const numbers = new Float32Array(bytes.buffer, 4 + size);
  let at = 0;
  const take = (n) => numbers.subarray(at, (at += n));
  for (const s of head.series) {
    const from = (n) => Float64Array.from(take(n), (step) => step + (s.zero || 0));
    Object.assign(s, { clock: s.clock || head.clock, x: from(s.n), y: take(s.n), mx: from(s.m), my: take(s.m) });
    if (s.timed) Object.assign(s, { t: take(s.n), mt: take(s.m) });
  }
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
    if (s.timed) [s.x, s.mx] = [s.t, s.mt];
    else if (s.clock.length) [s.x, s.mx] = [s.x, s.mx].map((steps) => steps.map((x) => timed(s.clock, x)));
    s.bad = s.late;
  }
  return head;
}

function number(v) {
  const size = Math.abs(v);
  if (size >= 9999.5 && size < 1e9) return v.toLocaleString("en", { maximumFractionDigits: 0, roundingMode: "halfEven" });
  if (/\.\d\d[02468]50*e/.test(v.toExponential(40))) v *= 1 - 1e-12; // in the middle: to the even one, as Python does
  const [digits, power] = v.toExponential(3).split("e");
  if (v === 0 || (power >= -4 && power < 4)) return String(Number(v.toPrecision(4)));
  return `${Number(digits)}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

function ticks(low, high, count) {
  if (!(high > low)) return [low];
  const rough = (high - low) / count, scale = 10 ** Math.floor(Math.log10(rough));
  const step = scale * [1, 2, 5, 10].find((m) => scale * m >= rough * 0.999);
  const found = [];
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  for (let i = 0; i <= Math.min(last - first, 99); i++) found.push((first + i) * step); // first + 1 may be first, in a float
  return found.length < 2 && count < 32 ? ticks(low, high, 2 * count) : found; // a single one does not tell a scale
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

// The point nearest to x: each is looked at, since steps may start again.
const nearest = (xs, x) => xs.reduce((best, v, i) => (Math.abs(v - x) < Math.abs(xs[best] - x) ? i : best), 0);

// What is said of a line, in rows no wider than `room`, and whether they are of what went wrong; a row of one word may be wider.
function legendOf(c, s, room) {
  const said = [[s.label, false], ...(s.means ? [[s.means, false]] : []), ...(s.warnings || []).map((words) => [words, true])];
  return said.flatMap(([words, bad]) => words.split(" ").reduce((rows, word) => {
    const last = rows.length ? `${rows[rows.length - 1][0]} ${word}` : "";
    if (last && c.measureText(last).width <= room) rows[rows.length - 1][0] = last;
    else rows.push([word, bad]);
    return rows;
  }, []));
}

const rowsOf = (members) => Math.max(members.reduce((n, s) => n + s.rows.length, 0), 1);
const tallOf = (strip, members) => strip ? STRIP + LINE * Math.max(rowsOf(members) - 1, 0) : HEIGHT + LINE * Math.max(rowsOf(members) - 4, 0);
const lookOf = (s, k) => { const at = s.style ?? k; return [COLORS[at % 4], DASHES[(at + (at >> 2)) % 4]]; };

// Draws it; gives where its plot begins, behind the widest of its numbers. members: with the `rows` of their legends.
// far: its values are far apart, which needs a log scale where nobody has chosen one.
function panel(c, theme, title, members, width, tall, scene, far, strip) {
  const old = members.map((s) => scene.before.get(s.name)).filter(Boolean);
  far = far && scene.log === null;
  const log = (far || scene.log) && [...members, ...old].some((s) => s.y.some((v) => v > 0));
  const f = log ? Math.log10 : (v) => v, [x0, x1] = scene.limits;
  const calm = members.filter((s) => s.style === undefined || !s.warnings); // of several runs those that have not diverged
  const [low, high] = limits([...(calm.length ? calm : members), ...old].map((s) => s.y), log);
  const y0 = f(low), y1 = f(high);
  const top = 10 + LINE * rowsOf(members), right = width - RIGHT, bottom = tall - BOTTOM;
  const numbered = scene.marks.length > 0 && !strip, above = numbered ? 18 : 6; // room for numbers of epochs: no line goes through them
  const count = Math.max(2, Math.floor((bottom - top) / 30));
  let marks = ticks(low, high, count);
  if (log) {
    const first = Math.ceil(y0 - 1e-9), last = Math.floor(y1 + 1e-9), by = Math.ceil((last - first) / count);
    marks = marks.filter((v) => v > 0);
    if (last > first) { marks = []; for (let k = first; k <= last; k += by) marks.push(10 ** k); }
  }
  const left = Math.max(LEFT, 12 + Math.ceil(Math.max(0, ...marks.map((v) => c.measureText(number(v)).width))));
  const across = (x) => left + ((x - x0) / (x1 - x0)) * (right - left);
  const up = (y) => bottom - ((Math.min(Math.max(f(y), y0), y1) - y0) / (y1 - y0)) * (bottom - top - above);
  const text = (x, y, s, align, color) => {
    c.fillStyle = color || theme.ink; c.textAlign = align || "left"; c.fillText(s, x, y, align ? width : width - x);
  };
  // A line; a point between two gaps is a dot.
  const stroke = (xs, ys, color, w, alpha, dash, gaps = []) => {
    c.strokeStyle = color; c.lineWidth = w; c.globalAlpha = alpha; c.setLineDash(dash); c.beginPath();
    const there = (i) => Number.isFinite(ys[i]) && !(log && ys[i] <= 0) && !gaps.some(([a, b]) => xs[i] > a && xs[i] < b);
    const led = (i) => there(i) && there(i - 1) && !gaps.some(([a, b]) => xs[i - 1] <= a && xs[i] >= b);
    const single = [];
    for (let i = 0; i < xs.length; i++) {
      if (led(i)) c.lineTo(across(xs[i]), up(ys[i]));
      else if (there(i)) { c.moveTo(across(xs[i]), up(ys[i])); if (!led(i + 1)) single.push(i); }
    }
    c.stroke(); c.globalAlpha = 1; c.setLineDash([]);
    for (const i of single) dot(xs[i], ys[i], color, 2);
  };
  const rule = (points, color, dash) => {
    c.strokeStyle = color; c.lineWidth = 1; c.setLineDash(dash || []); c.beginPath();
    points.forEach((p, i) => (i ? c.lineTo(...p) : c.moveTo(...p))); c.stroke(); c.setLineDash([]);
  };
  const dot = (x, y, color, r) => { c.fillStyle = color; c.beginPath(); c.arc(across(x), up(y), r, 0, 7); c.fill(); };
  for (const v of marks) { rule([[left, up(v)], [right, up(v)]], theme.faint); text(left - 6, up(v) + 4, number(v), "right"); }
  for (const v of ticks(x0, x1, Math.max(2, Math.floor(width / 110)))) text(across(v), bottom + 16, number(v), "center");
  rule([[left, top], [left, bottom], [right, bottom]], theme.ink);
  let free = left;
  for (const [step, seconds, label] of scene.marks) {
    const at = across(scene.x === "time" ? seconds : step), short = label.length > 12 ? label.slice(0, 11) + "\u2026" : label;
    rule([[at, top], [at, bottom]], theme.soft, [1, 3]);
    if (numbered && at - 4 - c.measureText(short).width > free) { text(at - 3, top + 10, short, "right", theme.soft); free = at + 3; }
  }
  const mean = Math.max(0, ...members.map((s) => s.window));
  const under = [scene.x === "time" ? "seconds since its start" : "step"];
  if (members.some((s) => s.shown)) under[0] = `${title} by ${under[0]}`;
  under.push(...members.map((s) => s.every).filter(Boolean).slice(0, 1));
  if (far) under.push("log scale: over 4 decades");
  if (mean) under.push(`thick line: mean of ${mean}`);
  if (old.length) under.push("gray: previous run");
  if (calm.length && calm.length < members.length) under.push("diverged runs leave the scale");
  if (members.some((s) => s.means)) under.push("steps: epoch means");
  if (numbered && 6 * (under.join("; ").length + 18) < right - left) under.push("numbered: epochs");
  text((left + right) / 2, bottom + 31, under.join("; "), "center");
  if (!members.length) text(10, 18, `no ${title} yet`);
  for (const s of old) stroke(s.x, s.y, LINES.gray, 1, 1, []);
  let row = 0;
  members.forEach((s, k) => {
    const [color, dash] = lookOf(s, k);
    stroke(s.x, s.y, color, s.m ? 1 : 1.6, s.m ? 0.4 : 1, s.m ? [] : dash, scene.gaps);
    if (s.m) stroke(s.mx, s.my, color, 2, 1, dash, scene.gaps);
    else if (s.n <= DOTS) s.x.forEach((x, i) => { if (Number.isFinite(s.y[i]) && !(log && s.y[i] <= 0)) dot(x, s.y[i], color, 2.5); });
    const each = (s.epochs || []).map(([a, b, mean, since, until]) => [...(scene.x === "time" ? [since, until] : [a, b]), mean ?? NaN]);
    stroke(each.flatMap(([a, b]) => [a, b]), each.flatMap(([, , mean]) => [mean, mean]), color, 1.2, 1, []);
    for (const [, b, mean] of each) if (Number.isFinite(mean) && !(log && mean <= 0)) dot(b, mean, color, 2.5);
    c.lineWidth = 2; c.strokeStyle = color; c.setLineDash(dash); c.beginPath();
    c.moveTo(10, 12 + row * LINE); c.lineTo(32, 12 + row * LINE); c.stroke(); c.setLineDash([]);
    for (const [words, bad] of s.rows) text(WORDS, 16 + row++ * LINE, words, "", bad ? theme.red : theme.ink);
    if (s.warnings) {
      const at = Math.min(Math.max(across(s.bad), left), right);
      rule([[at, top], [at, bottom]], theme.red, [4, 3]);
    }
  });
  if (scene.at === null) return left;
  rule([[across(scene.at), top], [across(scene.at), bottom]], theme.ink);
  const said = members.filter((s) => s.n).map((s) => {
    const i = nearest(s.x, scene.at);
    if (Number.isFinite(s.y[i]) && !(log && s.y[i] <= 0)) dot(s.x[i], s.y[i], lookOf(s, members.indexOf(s))[0], 3.5);
    return `${s.name} ${Number.isFinite(s.y[i]) ? number(s.y[i]) : "not finite"}${s.x[i] === scene.at ? "" : ` at ${number(s.x[i])}`}`;
  });
  if (!said.length) return left;
  const w = Math.max(...said.map((s) => c.measureText(s).width)) + 12, h = said.length * LINE + 6;
  const x = across(scene.at) + 8 + w > right ? across(scene.at) - 8 - w : across(scene.at) + 8;
  c.fillStyle = theme.card; c.fillRect(x, top + 4, w, h); c.strokeStyle = theme.ink; c.strokeRect(x, top + 4, w, h);
  said.forEach((s, i) => text(x + 6, top + 18 + i * LINE, s));
  scene.said.push(...said);
  return left;
}

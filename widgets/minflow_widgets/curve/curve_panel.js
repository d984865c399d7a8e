// One panel of a curve on a canvas: scales, lines, legend and the values under the pointer.
// Put behind curve_data.js and legend.js, and before loss_curve.js, the widget that asks for it.
const HEIGHT = 230, STRIP = 130, LEFT = 52, RIGHT = 14, BOTTOM = 39, LINE = 15, WORDS = 38; // of a legend: where its words begin
const APART = 10, MANY_EPOCHS = 30; // from this distance between points, each has a dot; means of more epochs are a line
const SMOOTHINGS = [0, 1, 3, 9, 27]; // windows of means that a smoothed value covers, by the reader's choice
const DASHES = [[], [7, 3], [2, 3], [8, 3, 2, 3]];
const COLORS = [LINES.blue, LINES.amber, LINES.green, LINES.violet];

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

// Powers of ten; if they are too few, also 2 and 5 times those, else round numbers.
function logTicks(low, high, count) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9), by = Math.ceil((last - first) / count);
  const powers = [];
  for (let k = first - 1; k <= last; k++) powers.push(10 ** k);
  const near = last - first < 2 ? powers.flatMap((v) => [v, 2 * v, 5 * v]).filter((v) => v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9)) : [];
  if (near.length > 1) return near;
  return last > first ? powers.slice(1).filter((_, k) => k % by === 0) : ticks(low, high, count).filter((v) => v > 0);
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

// A scale of positive values that nearly reaches 0 begins there.
const fromZero = ([low, high], keep) => [!keep && low > 0 && low < 0.2 * high ? 0 : low, high];

// The point nearest to x: each is looked at, since steps may start again.
const nearest = (xs, x) => xs.reduce((best, v, i) => (Math.abs(v - x) < Math.abs(xs[best] - x) ? i : best), 0);

// Means of k neighbors, fewer at the ends; not of points that are not finite.
function runningMean(xs, ys, k) {
  const half = k >> 1, x = [], y = [];
  for (let i = 0; i < xs.length; i++) {
    let [count, sumX, sumY] = [0, 0, 0];
    for (let j = Math.max(0, i - half); j <= Math.min(xs.length - 1, i + half); j++)
      if (Number.isFinite(ys[j])) { count += 1; sumX += xs[j]; sumY += ys[j]; }
    x.push(count ? sumX / count : xs[i]); y.push(count ? sumY / count : NaN);
  }
  return [x, y];
}

// x and y of the thick line, and in words what it is; null without one. k: of SMOOTHINGS.
function smoothed(s, title, k, time, ends) {
  if (k === 1 && ends.length > MANY_EPOCHS) return { x: ends.map(([step, , seconds]) => (time ? seconds : step)), y: ends.map(([, mean]) => mean ?? NaN), words: "thick line: epoch means" };
  const few = !s.m;
  if (!k || (few && k < 2) || title === "lr" || s.n < 3) return null;
  const [x, y] = k > 1 ? runningMean(few ? s.x : s.mx, few ? s.y : s.my, k) : [s.mx, s.my], wider = k > 1 && !few;
  const over = few ? k : s.window + (k - 1) * s.window / 5, steps = s.every && !few;
  return { x, y, words: `thick line: ${wider ? "smoothed over" : steps ? "mean over" : "mean of"} ${number(over)} ${steps ? "steps" : "values"}` };
}

const ringed = (s) => s.epochs && s.epochs.length <= MANY_EPOCHS;
const tallOf = (strip, rows) => strip ? STRIP + LINE * Math.max(rows - 1, 0) : HEIGHT + LINE * Math.max(rows - 4, 0);
const lookOf = ({ look: [color, dash] }) => [COLORS[color], DASHES[dash]];

// Draws it; gives where its plot begins, behind the widest of its numbers. rows: of its legend, from legendOf.
// far: its values are far apart, which needs a log scale where nobody has chosen one.
function panel(c, theme, title, members, rows, width, tall, scene, far, strip) {
  const old = members.map((s) => scene.before.get(s.name)).filter(Boolean);
  far = far && scene.log === null;
  const log = (far || scene.log) && [...members, ...old].some((s) => s.y.some((v) => v > 0));
  const f = log ? Math.log10 : (v) => v, [x0, x1] = scene.limits;
  const visible = members.filter((s) => !scene.hidden(s));
  const calm = visible.filter((s) => !s.wild); // of several runs those that have not diverged
  const seen = (s) => (scene.zoomed ? s.y.filter((_, i) => s.x[i] >= x0 && s.x[i] <= x1) : s.y);
  const scaled = [...(calm.length ? calm : visible), ...old];
  const [low, high] = fromZero(limits(scaled.some((s) => seen(s).some(Number.isFinite)) ? scaled.map(seen) : scaled.map((s) => s.y), log), log || scene.zoomed);
  const y0 = f(low), y1 = f(high);
  const top = 10 + LINE * Math.max(rows.length, 1), right = width - RIGHT, bottom = tall - BOTTOM;
  const numbered = scene.marks.length > 0 && !strip, above = numbered ? 18 : 6; // room for numbers of epochs: no line goes through them
  const count = Math.max(2, Math.floor((bottom - top) / 30));
  let marks = log ? logTicks(low, high, count) : ticks(low, high, count);
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
  // Dots at points that are far enough from their neighbors to tell them apart.
  const dots = (xs, ys, color, r) => {
    const apart = (i, j) => j < 0 || j >= xs.length || Math.abs(across(xs[i]) - across(xs[j])) >= APART;
    for (let i = 0; i < xs.length; i++)
      if (Number.isFinite(ys[i]) && !(log && ys[i] <= 0) && apart(i, i - 1) && apart(i, i + 1)) dot(xs[i], ys[i], color, r);
  };
  const rule = (points, color, dash) => {
    c.strokeStyle = color; c.lineWidth = 1; c.setLineDash(dash || []); c.beginPath();
    points.forEach((p, i) => (i ? c.lineTo(...p) : c.moveTo(...p))); c.stroke(); c.setLineDash([]);
  };
  const dot = (x, y, color, r) => { c.fillStyle = color; c.beginPath(); c.arc(across(x), up(y), r, 0, 7); c.fill(); };
  const ring = (x, y, color, r) => { c.strokeStyle = color; c.lineWidth = 1.5; c.beginPath(); c.arc(across(x), up(y), r, 0, 7); c.stroke(); };
  const broken = (x, y, along) => { // two strokes across an axis that does not start at 0
    for (const d of [0, 4]) rule(along ? [[x + d - 2, y + 4], [x + d + 2, y - 4]] : [[x - 4, y - d + 2], [x + 4, y - d - 2]], theme.ink);
  };
  marks = marks.filter((v, i) => !i || up(marks[i - 1]) - up(v) >= 12); // on a log scale, some are too close
  for (const v of marks) { rule([[left, up(v)], [right, up(v)]], theme.faint); text(left - 6, up(v) + 4, number(v), "right"); }
  for (const v of ticks(x0, x1, Math.max(2, Math.floor(width / 110)))) text(across(v), bottom + 16, number(v), "center");
  rule([[left, top], [left, bottom], [right, bottom]], theme.ink);
  const cut = !log && (low > 0 || high < 0), late = x0 > Math.max(1, 0.05 * (x1 - x0));
  if (cut) broken(left, bottom - 5, false);
  if (late) broken(left + 9, bottom, true);
  let free = left;
  for (const [step, seconds, label] of scene.marks) {
    const at = across(scene.x === "time" ? seconds : step), short = label.length > 12 ? label.slice(0, 11) + "\u2026" : label;
    if (at < left || at > right + 1) continue;
    rule([[at, top], [at, bottom]], theme.soft, [1, 3]);
    if (numbered && at - 4 - c.measureText(short).width > free) { text(at - 3, top + 10, short, "right", theme.soft); free = at + 3; }
  }
  const lines = members.map((s) => smoothed(s, title, scene.smooth, scene.x === "time", s.epochs || []));
  const under = [scene.x === "time" ? "seconds since its start" : "step"];
  if (members.some((s) => s.shown)) under[0] = `${title} by ${under[0]}`;
  if (late) under[0] += `, from ${number(scene.x === "time" || x1 - x0 < 10 ? x0 : Math.ceil(x0))}`;
  under.push(...members.map((s) => s.every).filter(Boolean).slice(0, 1));
  const notes = [cut && `values from ${number(low)}`, far && "log scale: over 4 decades", ...lines.map((line) => line && line.words).filter((words, i, all) => all.indexOf(words) === i).slice(0, 1),
    members.some((s) => ringed(s)) && "rings: epoch means", old.length && "gray: previous run",
    calm.length && calm.length < visible.length && "diverged runs leave the scale", numbered && "numbered: epochs"];
  for (const note of notes.filter(Boolean)) if (c.measureText([...under, note].join("; ")).width < width - 16) under.push(note);
  const caption = under.join("; "), half = c.measureText(caption).width / 2 + 8;
  text(Math.min((left + right) / 2, width - half), bottom + 31, caption, "center");
  if (!members.length) text(10, 18, `no ${title} yet`);
  c.save(); c.beginPath(); c.rect(left - 4, top, right - left + 8, bottom - top + 4); c.clip();
  for (const s of old) stroke(s.x, s.y, LINES.gray, 1, 1, []);
  members.forEach((s, k) => {
    if (scene.hidden(s)) return;
    const [color, dash] = lookOf(s), mean = lines[k];
    stroke(s.x, s.y, color, mean ? 1 : 1.6, mean ? 0.4 : 1, mean ? [] : dash, scene.gaps);
    if (mean) stroke(mean.x, mean.y, color, 2, 1, dash, scene.gaps);
    if (!mean || s.every || scene.zoomed) dots(s.x, s.y, color, mean ? 2 : 2.5);
    for (const [step, value, seconds] of ringed(s) ? s.epochs : [])
      if (value !== null && !(log && value <= 0)) ring(scene.x === "time" ? seconds : step, value, color, 3.5);
    if (s.bad !== undefined) rule([[across(s.bad), top], [across(s.bad), bottom]], theme.red, [4, 3]);
  });
  if (scene.drag) {
    const [a, b] = scene.drag.map(across);
    c.globalAlpha = 0.2; c.fillStyle = theme.soft; c.fillRect(a, top, b - a, bottom - top); c.globalAlpha = 1;
  }
  c.restore();
  rows.forEach(([words, line, kind], row) => {
    c.globalAlpha = line !== null && scene.hidden(members[line]) ? 0.4 : 1;
    if (line !== null) {
      const [color, dash] = lookOf(members[line]), y = 12 + row * LINE;
      c.lineWidth = 2; c.strokeStyle = color; c.setLineDash(dash); c.beginPath(); c.moveTo(10, y); c.lineTo(32, y); c.stroke(); c.setLineDash([]);
    }
    for (const [x, said, align] of words) text(WORDS + x, 16 + row * LINE, said, align, { bad: theme.red, head: theme.soft }[kind]);
  });
  c.globalAlpha = 1;
  if (scene.at === null || scene.at < x0 || scene.at > x1) return left;
  rule([[across(scene.at), top], [across(scene.at), bottom]], theme.ink);
  const said = visible.filter((s) => s.n).map((s) => {
    const mean = lines[members.indexOf(s)], smooth = mean ? mean.y[nearest(mean.x, scene.at)] : NaN;
    const i = nearest(s.x, scene.at), color = lookOf(s)[0], there = Number.isFinite(s.y[i]);
    if (there && !(log && s.y[i] <= 0)) dot(s.x[i], s.y[i], color, 3.5);
    return [there ? s.y[i] : -Infinity, `${s.name} ${there ? number(s.y[i]) : "not finite"}${s.x[i] === scene.at ? "" : ` at ${number(s.x[i])}`}${Number.isFinite(smooth) ? ` · mean ${number(smooth)}` : ""}`, color];
  }).sort(([a], [b]) => b - a); // as the lines are, from top to bottom
  if (!said.length) return left;
  const w = Math.max(...said.map(([, words]) => c.measureText(words).width)) + 26, h = said.length * LINE + 6;
  const x = across(scene.at) + 8 + w > right ? across(scene.at) - 8 - w : across(scene.at) + 8;
  c.fillStyle = theme.card; c.fillRect(x, top + 4, w, h); c.strokeStyle = theme.ink; c.strokeRect(x, top + 4, w, h);
  said.forEach(([, words, color], i) => {
    c.fillStyle = color; c.fillRect(x + 6, top + 10 + i * LINE, 8, 8);
    text(x + 20, top + 18 + i * LINE, words);
  });
  scene.said.push(...said.map(([, words]) => words));
  return left;
}

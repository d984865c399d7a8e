// The curve as panels.py encodes it, and its points over time. Put before curve_panel.js, which draws it.
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

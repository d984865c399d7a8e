// One array of the details: a card with its statistics and its histogram, and a table of its first values.
// Put after nodes.js. Read next: maps.js, the maps of an array.
const CARD = { width: 186, height: 48 };   // pixels of a histogram: four of them fit side by side into a usual cell
const CHARACTER = 6.3;                     // pixels of a digit in a table

function drawHistogram({ label, text, low, high, counts }) {
  const { width, height } = CARD;
  const most = Math.max(...counts);
  const named = { role: 'img', 'aria-label': `histogram of ${label}: ${text}` };
  const svg = svgNode('svg', { width, height: height + 14, ...named });
  counts.forEach((n, i) => {
    const tall = n ? Math.max(1, (height * n) / most) : 0;
    const x = (i * width) / counts.length;
    const bar = { x, y: height - tall, width: width / counts.length - 1, height: tall };
    svg.append(svgNode('rect', { ...bar, fill: 'var(--fs)' }));
  });
  svg.append(svgNode('path', { d: `M0 ${height}H${width}`, stroke: 'var(--faint)' }));
  const [from, to] = [Number(low), Number(high)];
  if (from < 0 && to > 0) {                // where zero is
    const zero = (width * -from) / (to - from);
    svg.append(svgNode('path', { d: `M${zero} 0V${height + 3}`, stroke: 'var(--ink)', 'stroke-dasharray': '2 2' }));
    const room = (end) => 10 + CHARACTER * end.length;
    if (zero > room(low) && zero < width - room(high)) {
      svg.append(svgNode('text', { x: zero, y: height + 12, 'text-anchor': 'middle', fill: 'var(--faint)' }, '0'));
    }
  }
  svg.append(svgNode('text', { x: 0, y: height + 12, fill: 'var(--ink)' }, low));
  svg.append(svgNode('text', { x: width, y: height + 12, 'text-anchor': 'end', fill: 'var(--ink)' }, high));
  return svg;
}

function drawCard(array) {
  const card = html('div', { class: 'card' });
  card.append(html('b', {}, array.label), worded(html('div', { class: 'faint' }), array.text));
  if (array.counts.length > 1) card.append(drawHistogram(array));
  return card;
}

// How many columns of the table fit into the width.
function columnsThatFit(corner, width) {
  let room = width;
  for (let column = 0; column < corner[0].length; column += 1) {
    room -= 9 + CHARACTER * Math.max(...corner.map((values) => values[column].length));
    if (room < 0 && column) return column;
  }
  return corner[0].length;
}

// The first rows and columns, tinted by their size and sign; null if there is only one element.
function drawTable({ label, corner, power, shape }, width) {
  if (corner.length * (corner[0] ?? []).length < 2) return null;
  const fit = columnsThatFit(corner, width);
  const sizes = corner.flat().map((value) => Math.abs(Number(value))).filter(Number.isFinite);
  const most = Math.max(...sizes, 1e-300);
  const table = html('table', { 'aria-label': `first values of ${label}` });
  for (const values of corner) {
    const line = html('tr');
    for (const value of values.slice(0, fit)) {
      const cell = html('td', {}, value);
      const share = Number(value) / most;
      if (Number.isFinite(share)) {
        const [red, green, blue] = share < 0 ? [31, 95, 168] : [181, 71, 11];
        cell.style.background = `rgba(${red},${green},${blue},${(0.3 * Math.abs(share)).toFixed(2)})`;
      }
      line.append(cell);
    }
    table.append(line);
  }
  const seen = shape.length < 2 ? [fit] : [corner.length, fit];
  const all = seen.join() === shape.join();
  const words = all ? `all ${seen.join(' × ')}` : `first ${seen.join(' × ')} of ${shape.join(' × ')}`;
  const part = html('div', { class: 'first' });
  part.append(worded(html('div', { class: 'faint' }), words + (power ? `, in units of 1e${power}` : '')), table);
  return part;
}

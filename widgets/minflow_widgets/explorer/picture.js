// The explorer's picture: boxes, lines and the names of the columns, as Python has laid them out.
// Put after nodes.js. Read next: zoom.js.
// Colors are variables of explorer.css, which has them for light and dark pages.
const FILL = ['var(--f)', 'var(--b)', 'var(--u)'], STROKE = ['var(--fs)', 'var(--bs)', 'var(--us)'], INK = 'var(--ink)';
const LINE = {             // kind of a line -> its color and dashes
  f: ['var(--fs)', ''], b: ['var(--bs)', '6 3'], u: ['var(--us)', ''], k: ['var(--ks)', '2 3'],
  bh: ['var(--bs)', ''], kh: ['var(--ks)', ''],
};
const SIGNS = { '▸': 'M0 -8l7 4l-7 4z', '▾': 'M-1 -7h9l-4.5 7z' };   // shapes: some fonts have no such signs
const SIGN_ROOM = 12;      // pixels before the name

function drawBox(group, kind, y, h, [column, x, w, bold, faint, second, mark, third]) {
  const box = svgNode('g', { 'data-column': column });
  if (kind !== 'open') {
    const end = kind === 'input' || kind === 'output', pill = (end || kind === 'state') && h < 30;
    const fill = end ? 'var(--soft)' : kind === 'state' ? FILL[2] : FILL[column];
    const stroke = end ? 'var(--faint)' : kind === 'state' ? STROKE[2] : STROKE[column];
    const rect = svgNode('rect', { x, y, width: w, height: h, rx: pill ? h / 2 : 4, fill, stroke });
    if (column === 1 || mark === 'gone') rect.setAttribute('stroke-dasharray', '6 3');
    box.append(rect);
  } else box.append(svgNode('rect', { x, y, width: w, height: h, fill: 'transparent' }));
  const line = y + (h > 30 ? 15 : h / 2 + 4);
  const sign = SIGNS[bold[0]], name = sign ? bold.slice(2) : bold, left = x + 8 + (sign ? SIGN_ROOM : 0);
  if (sign) box.append(svgNode('path', { d: sign, transform: `translate(${x + 8} ${line})`, fill: INK }));
  const text = svgNode('text', { x: left, y: line, 'xml:space': 'preserve', fill: INK });
  text.append(svgNode('tspan', { 'font-weight': 'bold' }, name));
  if (faint) text.append(svgNode('tspan', { dx: 8, fill: 'var(--faint)' }, faint));
  box.append(text);
  if (second) box.append(svgNode('text', { x: x + 8, y: y + 29, fill: INK }, second));
  if (third) box.append(svgNode('text', { x: x + 8, y: y + 42, fill: INK }, third));
  if (mark) {
    const place = { x: x + w - 6, y: line, 'text-anchor': 'end' };
    box.append(svgNode('text', { ...place, 'font-weight': 'bold', fill: 'var(--mark)' }, mark));
  }
  group.append(box);
}

// Outline the box if it is the selected one. The head of an open module has no frame otherwise.
function markBox(box, on) {
  const rect = box.querySelector('rect');
  rect.setAttribute('stroke-width', on ? 3 : 1);
  if (rect.getAttribute('fill') === 'transparent') rect.setAttribute('stroke', on ? STROKE[0] : 'none');
}

const HEAD = 24;   // pixels at the top of a picture that are for the names of its columns

// The names of the columns, by themselves: they stay where they are while the picture below is scrolled.
function drawHeads(view) {
  const size = { width: view.w, height: HEAD, viewBox: `0 0 ${view.w} ${HEAD}` };
  const svg = svgNode('svg', { class: 'heads', ...size, 'aria-hidden': true });      // each row says them too
  for (const [x, words] of view.heads) {
    svg.append(svgNode('text', { x, y: 17, 'font-weight': 'bold', fill: INK }, words));
  }
  return svg;
}

function drawPicture(view) {
  const size = { width: view.w, height: view.h - HEAD, viewBox: `0 ${HEAD} ${view.w} ${view.h - HEAD}` };
  const svg = svgNode('svg', { ...size, role: 'tree', 'aria-label': `${view.title}, ${view.pass}` });
  for (const [x, y, width, height, level] of view.frames) {
    const fill = level % 2 ? 'var(--page)' : 'var(--soft)';
    svg.append(svgNode('rect', { x, y, width, height, rx: 6, fill, stroke: 'var(--edge)' }));
  }
  for (const [kind, d] of view.paths) {
    const path = svgNode('path', { d, fill: 'none', stroke: LINE[kind][0] });
    if (LINE[kind][1]) path.setAttribute('stroke-dasharray', LINE[kind][1]);
    svg.append(path);
  }
  for (const [id, kind, y, h, level, open, words, boxes] of view.rows) {
    const data = { 'data-id': id, 'data-open': open, 'data-level': level, 'data-lm-suppress-shortcuts': 'true' };
    const said = { role: 'treeitem', 'aria-level': level + 1, 'aria-label': words };
    const row = svgNode('g', { class: 'row', tabindex: -1, ...data, ...said });
    if (open >= 0) row.setAttribute('aria-expanded', open === 1);
    for (const box of boxes) drawBox(row, kind, y, h, box);
    const cut = boxes.some((box) => box.some((text) => String(text).includes('…')));
    if (cut) row.append(svgNode('title', {}, words));
    if (open >= 0) {
      const place = { x: boxes[0][1] - 6, y: y - 1, width: 26, height: h + 2, rx: 4 };
      row.append(svgNode('rect', { class: 'sign', ...place, fill: 'transparent' }));
      row.lastChild.append(svgNode('title', {}, open ? 'close' : 'open'));
    }
    svg.append(row);
  }
  return svg;
}

// The explorer's picture: boxes, lines and the names of the columns, as Python has laid them out.
// Put between numbers.js, of which it takes svgNode, and explorer.js, which is read next.
// Colors are variables of explorer.css, which has them for light and dark pages.
const FILL = ['var(--f)', 'var(--b)', 'var(--u)'], STROKE = ['var(--fs)', 'var(--bs)', 'var(--us)'], INK = 'var(--ink)';
const LINE = { f: ['var(--fs)', ''], b: ['var(--bs)', '6 3'], u: ['var(--us)', ''], k: ['var(--ks)', '2 3'], bh: ['var(--bs)', ''], kh: ['var(--ks)', ''] };

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
  const text = svgNode('text', { x: x + 8, y: line, 'xml:space': 'preserve', fill: INK });
  text.append(svgNode('tspan', { 'font-weight': 'bold' }, bold));
  if (faint) text.append(svgNode('tspan', { dx: 8, fill: 'var(--faint)' }, faint));
  box.append(text);
  if (second) box.append(svgNode('text', { x: x + 8, y: y + 29, fill: INK }, second));
  if (third) box.append(svgNode('text', { x: x + 8, y: y + 42, fill: INK }, third));
  if (mark) box.append(svgNode('text', { x: x + w - 6, y: line, 'text-anchor': 'end', 'font-weight': 'bold', fill: 'var(--mark)' }, mark));
  group.append(box);
}

const HEAD = 24;   // pixels at the top of a picture that are for the names of its columns

// The names of the columns, by themselves: they stay where they are while the picture below is scrolled.
function drawHeads(view) {
  const svg = svgNode('svg', { class: 'heads', width: view.w, height: HEAD, viewBox: `0 0 ${view.w} ${HEAD}`, 'aria-hidden': true });   // each row says them too
  for (const [x, words] of view.heads) svg.append(svgNode('text', { x, y: 17, 'font-weight': 'bold', fill: INK }, words));
  return svg;
}

function drawPicture(view) {
  const svg = svgNode('svg', { width: view.w, height: view.h - HEAD, viewBox: `0 ${HEAD} ${view.w} ${view.h - HEAD}`, role: 'tree',
    'aria-label': `${view.title}, ${view.pass}` });
  for (const [x, y, width, height, level] of view.frames) {
    svg.append(svgNode('rect', { x, y, width, height, rx: 6, fill: level % 2 ? 'var(--page)' : 'var(--soft)', stroke: 'var(--edge)' }));
  }
  for (const [kind, d] of view.paths) {
    const path = svgNode('path', { d, fill: 'none', stroke: LINE[kind][0] });
    if (LINE[kind][1]) path.setAttribute('stroke-dasharray', LINE[kind][1]);
    svg.append(path);
  }
  for (const [id, kind, y, h, level, open, words, boxes] of view.rows) {
    const row = svgNode('g', { class: 'row', 'data-id': id, 'data-open': open, 'data-level': level, tabindex: -1, 'data-lm-suppress-shortcuts': 'true', role: 'treeitem', 'aria-level': level + 1, 'aria-label': words });
    if (open >= 0) row.setAttribute('aria-expanded', open === 1);
    for (const box of boxes) drawBox(row, kind, y, h, box);
    if (boxes.some((box) => box.some((text) => String(text).includes('…')))) row.append(svgNode('title', {}, words));   // what was cut
    if (open >= 0) {
      row.append(svgNode('rect', { class: 'sign', x: boxes[0][1] - 6, y: y - 1, width: 30, height: h + 2, rx: 4, fill: 'transparent' }));
      row.lastChild.append(svgNode('title', {}, open ? 'close' : 'open'));
    }
    svg.append(row);
  }
  return svg;
}

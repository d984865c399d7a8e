// Every still view on plain pages, in a Chromium that sees the fonts of $FONTCONFIG_FILE alone.
// node gallery.mjs PLAYWRIGHT CHROMIUM FOLDER [SHOTS]: FOLDER/views.json is [[name, html], ...]; writes FOLDER/seen.json,
// {name: [what is wrong, ...]}, and to SHOTS a screenshot for each color of a page.
import { readFileSync, writeFileSync } from 'node:fs';

const [, , playwright, executablePath, folder, shots] = process.argv;
const { chromium } = await import(playwright);
const views = JSON.parse(readFileSync(`${folder}/views.json`, 'utf8'));
const GROUNDS = ['#ffffff', '#1e1e1e', '#111111'];
const WIDTHS = [780, 1400];  // of a cell's output: a window of 1280 x 720 with the sidebar open, one of 1920 x 1080
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
const page = await browser.newPage();

// An <img> hides its text from the page; here it stands in the page itself, at its natural size. Folds are open, and
// no script takes over.
const inlined = (html) => html.replace(/<details>/g, '<details open>').replace(/<script>.*?<\/script>/gs, '')
  .replace(/<img [^>]*?src="data:image\/svg\+xml;base64,([^"]+)"[^>]*>/g, (_, data) => Buffer.from(data, 'base64').toString('utf8'));

// What is wrong in the views. Lengths in pixels of the picture. Pictures are the same at any width of the page.
const look = ({ grounds, pictures }) => {
  const SLACK = 1.5, TEXT = 4.5, LINE = 3, PAGE = 0.6;
  const numbers = (c) => { const n = (c.match(/[\d.]+/g) ?? []).map(Number); return n.length === 3 ? [...n, 1] : n; };
  const over = (a, b) => a.slice(0, 3).map((x, i) => x * a[3] + b[i] * (1 - a[3]));
  const light = (c) => c.map((x) => x / 255).map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4))
    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const faint = (e) => (e && e.localName !== 'svg' ? Number(getComputedStyle(e).opacity) * faint(e.parentElement) : 1);
  const paint = (e, what) => {
    const style = getComputedStyle(e), color = style[what];
    if (color === 'none' || color.startsWith('url') || (what === 'stroke' && parseFloat(style.strokeWidth) === 0)) return null;
    const c = numbers(color);
    c[3] *= Number(style[`${what}Opacity`]) * faint(e);
    return c[3] > 0.02 ? c : null;
  };
  const inside = (a, b, slack) => a.left >= b.left - slack && a.right <= b.right + slack && a.top >= b.top - slack && a.bottom <= b.bottom + slack;
  const says = (e) => e.textContent.trim().slice(0, 60);
  const wrong = [];
  const back = grounds.map((g) => [1, 3, 5].map((i) => parseInt(g.slice(i, i + 2), 16)));
  for (const view of document.querySelectorAll('.view')) {
    const found = [];
    for (const svg of pictures ? view.querySelectorAll('svg') : []) {
      const frame = svg.getBoundingClientRect();
      const seen = [...svg.querySelectorAll('rect, ellipse, circle, polygon, path, line, polyline, text')]
        .filter((e) => !e.closest('defs, clipPath, marker'));
      const boxes = seen.map((e) => e.getBoundingClientRect());
      const fills = seen.map((e) => (['text', 'line'].includes(e.localName) ? null : paint(e, 'fill')));
      // A path may be many shapes far from each other: asked where it is filled.
      const covers = (i, x, y) => fills[i] && boxes[i].left <= x && x <= boxes[i].right && boxes[i].top <= y && y <= boxes[i].bottom
        && (seen[i].localName !== 'path' || seen[i].isPointInFill(new DOMPoint(x, y).matrixTransform(seen[i].getScreenCTM().inverse())));
      const share = (i) => {
        const at = [...Array(15).keys()].map((k) => (k + 0.5) / 15);
        return at.flatMap((a) => at.map((b) => covers(i, frame.left + a * frame.width, frame.top + b * frame.height))).filter(Boolean).length / 225;
      };
      seen.forEach((e, i) => {
        const box = boxes[i];
        if (fills[i] && box.width * box.height > PAGE * frame.width * frame.height && frame.width * frame.height > 20000
            && (e.localName !== 'path' || share(i) > PAGE) && !seen.some((t, j) => t.localName === 'text' && inside(boxes[j], box, 1) && box.height < 3 * boxes[j].height))
          found.push(`a filled page: ${e.localName} of ${Math.round(box.width)} x ${Math.round(box.height)}`);
        if (e.localName === 'text') {
          if (!says(e)) return;
          if (!inside(box, frame, SLACK)) found.push(`leaves the picture: ${says(e)}`);
          const halo = getComputedStyle(e).paintOrder.startsWith('stroke') && paint(e, 'stroke');
          if (halo && parseFloat(getComputedStyle(e).strokeWidth) >= 3) {  // its background goes with it
            const ratio = contrast(over(paint(e, 'fill'), halo), halo);
            if (ratio < TEXT) found.push(`contrast ${ratio.toFixed(2)} with its halo: ${says(e)}`);
            return;
          }
          const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
          const under = seen.map((_, j) => j).filter((j) => j < i && covers(j, x, y));
          const solid = under.findLast((j) => fills[j][3] > 0.5);
          if (solid === undefined) { found.push(`on no plate: ${says(e)}`); return; }
          const home = boxes[solid];
          if (!inside(box, { left: home.left, right: home.right, top: -1e9, bottom: 1e9 }, SLACK))
            found.push(`leaves its box by ${Math.max(home.left - box.left, box.right - home.right).toFixed(1)}: ${says(e)}`);
          if (seen[solid].localName === 'ellipse') {
            const reach = (box.width / home.width) ** 2 + ((2 * Math.max(Math.abs(box.top + 3 - (home.top + home.bottom) / 2), Math.abs(box.bottom - 3 - (home.top + home.bottom) / 2))) / home.height) ** 2;
            if (reach > 1.12) found.push(`leaves its oval (${reach.toFixed(2)}): ${says(e)}`);
          }
          const last = under.filter((j) => j >= solid);
          for (const part of [e, ...e.querySelectorAll('tspan')]) {
            const ink = paint(part, 'fill');
            const on = last.reduce((color, j) => over(fills[j], color), [255, 255, 255]);
            const ratio = ink ? contrast(over(ink, on), on) : 0;
            if (part.textContent.trim() && ratio < TEXT) found.push(`contrast ${ratio.toFixed(2)}: ${says(part)}`);
          }
          return;
        }
        const stroke = paint(e, 'stroke');
        if (!stroke) return;
        // A line inside a box is seen against the box; every other against the page.
        const home = seen.findIndex((_, j) => j < i && fills[j] && fills[j][3] > 0.9 && j !== i && inside(box, boxes[j], 0.5));
        const against = home >= 0 ? [fills[home].slice(0, 3)] : back;
        const worst = Math.min(...against.map((g) => contrast(over(stroke, g), g)));
        if (worst < LINE) found.push(`line of contrast ${worst.toFixed(2)}: ${e.localName} ${getComputedStyle(e).stroke}`);
      });
    }
    for (const e of view.querySelectorAll('*')) {
      if (e.closest('svg') || e.closest('.text')) continue;
      const style = getComputedStyle(e);
      if (style.overflowX === 'auto' && e.scrollWidth > e.clientWidth + SLACK && e.localName !== 'pre' && view.dataset.name.includes('/ fc1 /')
          && !e.querySelector('svg'))
        found.push(`scrolls by ${e.scrollWidth - e.clientWidth}: ${e.localName} ${says(e)}`);
      if (style.overflowX === 'visible' && e.scrollWidth > e.clientWidth + SLACK && e.clientWidth > 0 && !e.querySelector('svg')
          && !e.parentElement.closest('[style*="overflow"]') && style.display !== 'inline')
        found.push(`wider than its place by ${e.scrollWidth - e.clientWidth}: ${e.localName} ${says(e)}`);
    }
    wrong.push([view.dataset.name, [...new Set(found)]]);
  }
  return wrong;
};

const seen = {};
const put = async (ground, width, body) => {
  const ink = ground === '#ffffff' ? '#000000de' : '#ffffffde';
  await page.setViewportSize({ width: width + 16, height: 900 });
  await page.setContent(`<!doctype html><meta charset="utf-8"><style>
    body { margin: 8px; background: ${ground}; color: ${ink}; font: 13px/1.5 system-ui, "Segoe UI", Helvetica, Arial, sans-serif }
    .view { margin: 0 0 24px } h3 { font-size: 13px; margin: 0; opacity: .75 } pre { margin: 0; overflow-x: auto }</style>${body}`);
};
for (const width of WIDTHS) {
  await put(GROUNDS[0], width, views.map(([name, html]) => `<div class="view" data-name="${name}">${inlined(html)}</div>`).join('\n'));
  for (const [name, found] of await page.evaluate(look, { grounds: GROUNDS, pictures: width === WIDTHS[0] })) seen[name] = [...new Set([...(seen[name] ?? []), ...found])];
}
writeFileSync(`${folder}/seen.json`, JSON.stringify(seen));
for (const ground of shots ? GROUNDS : []) {
  await put(ground, WIDTHS[0], views.map(([name, html]) => `<h3>${name}</h3><div class="view">${html}</div>`).join('\n'));
  await page.screenshot({ path: `${shots}/${ground.slice(1)}.png`, fullPage: true, timeout: 200_000 });
}
await browser.close();

// Open a notebook in JupyterLab in a headless Chromium and do what is asked, one action after the other; report as JSON.
// node actions.mjs FILE: {"url", "place", "notebook", "folder", "browser", "playwright", "shots", "pictures", "seconds",
// "actions": [[verb, ...], ...]}; writes actions.json to the folder "shots", and pictures if "pictures" is true.
// Verbs: run (all cells, without waiting), idle, wait ms, until js, eval js (its value is reported), click css [x y], hover css
// x y, drag css dx dy (its center), double css (click), size width height (of the window), see css (scroll to it), focus css, press keys [css], shot name,
// reload, interrupt, theme name, save, restart (the kernel), hurry (ends the rests of a cell, see pages.REST),
// reopen (with another kernel), drag css x0 x1 y (of its box), cell i (run it), watch (run all cells and look for what moves), walk name,
// axe css (see axe.mjs), top css (scroll to it), box css (report where it is), record name js css (pictures of the window, until js holds; reports
// their times and the last box). "scale" is the number of pixels per CSS pixel.
// The server must run with --LabApp.expose_app_in_browser=true: cells outside the window are then counted too.
import { readFileSync, writeFileSync } from 'node:fs';
import { violations } from './axe.mjs';

const asked = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const { chromium } = await import(asked.playwright);
const report = { values: [], outside: [], console: [], errors: [], dialogs: [], questions: [] };
const browser = await chromium.connect(asked.browser);
const page = await browser.newPage({ viewport: { width: 1280, height: 1000 }, deviceScaleFactor: asked.scale ?? 1 });
page.setDefaultTimeout(60_000);
page.on('request', (request) => {
  const host = new URL(request.url()).hostname;
  if (!['127.0.0.1', 'localhost', ''].includes(host)) report.outside.push(request.url());
});
page.on('console', (message) => { if (message.type() === 'error') report.console.push(message.text()); });
page.on('dialog', (dialog) => { report.dialogs.push(dialog.message()); (dialog.type() === 'beforeunload' ? dialog.accept() : dialog.dismiss()).catch(() => {}); });
page.on('pageerror', (error) => report.console.push(String(error)));

const command = (name, args) => page.evaluate(([name, args]) => { window.jupyterapp.commands.execute(name, args); }, [name, args ?? {}]);
const shoot = (name) => page.screenshot({ path: `${asked.shots}/${name}.png` });
const celled = () => page.waitForSelector('.jp-NotebookPanel .jp-Cell');
const opened = async () => {
  await page.goto(`${asked.url}/${asked.place}/${asked.notebook}?reset`, { waitUntil: 'domcontentloaded' });
  await celled();
};
const ready = async () => {
  await page.waitForFunction(() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle',
    null, { timeout: 90_000 });
  await closeQuestions();
  report.changed ??= await page.evaluate(() => window.jupyterapp.shell.currentWidget.context.model.dirty);
};
const closeQuestions = async () => {         // Lab's offer of news; whatever else is in front of the notebook
  report.questions.push(...await page.locator('.Toastify__toast, .jp-Dialog').allTextContents());
  for (const button of await page.locator('.Toastify__toast button.jp-toast-button').all()) {
    if (/^(no|dismiss)$/i.test((await button.textContent()).trim())) await button.click().catch(() => {});
  }
};
const state = () => page.evaluate(() => {
  const panel = window.jupyterapp.shell.currentWidget;
  const cells = panel.content.widgets.filter((cell) => cell.model.type === 'code').map((cell) => {
    const outputs = cell.model.outputs.toJSON();
    const said = cell.model.executionState === 'running' || cell.promptNode?.textContent?.includes('*') || false;
    return {
      waits: cell.model.sharedModel.getSource().trim() !== '' && (cell.model.executionCount === null || said),
      kinds: outputs.map((output) => output.output_type + (output.data ? ' ' + Object.keys(output.data).join(' ') : '')),
      errors: outputs.filter((o) => o.output_type === 'error').map((o) => `${o.ename}: ${o.evalue}`),
      expected: cell.model.getMetadata('tags')?.includes('raises-exception') ?? false,   // the notebook goes on after it
    };
  });
  return { cells, busy: panel.sessionContext.session?.kernel?.status };
});
// How many live views have drawn something (canvases with a pixel that differs from their first one), and how often
// their pictures have changed. The page itself looks, ten times a second: on a busy machine a poll from here is too slow.
const lookForMoves = () => page.evaluate(() => {
  const drawn = (canvas) => {
    if (!canvas.width || !canvas.height) return false;
    const words = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    return words.some((word) => word !== words[0]);
  };
  const moves = { live: 0, frames: 0 };
  let last = '';
  window.moves = moves;
  moves.timer = setInterval(() => {
    const live = [...document.querySelectorAll('.jp-OutputArea canvas:not(.jp-RenderedHTMLCommon *)')].filter(drawn);
    if (!live.length) return;
    for (const canvas of live) canvas.scrollIntoView({ block: 'center' });
    const now = live.map((canvas) => canvas.toDataURL()).join();
    moves.live = Math.max(moves.live, live.length);
    if (now !== last) moves.frames += 1;
    last = now;
  }, 100);
});
const pictures = () => page.evaluate(() => {
  const seen = [...document.querySelectorAll('.jp-OutputArea-output img')];
  const live = [...document.querySelectorAll('.jp-OutputArea-output [role=group] > svg')];   // what was an <img>
  return {
    good: seen.filter((image) => image.complete && image.naturalWidth > 0).length + live.filter((svg) => svg.querySelector('text')).length,
    broken: seen.filter((image) => image.complete && !image.naturalWidth).map((image) => image.src.slice(0, 80)),
    unnamed: [...seen.filter((image) => !image.alt && !image.src.startsWith('data:image/png')), ...live.filter((svg) => !svg.parentElement.ariaLabel)].length,
    names: [...seen.map((image) => image.alt), ...live.map((svg) => svg.parentElement.ariaLabel)],
    explorers: [...document.querySelectorAll('.jp-OutputArea .mfx')].filter((one) => one.querySelectorAll('svg text').length > 5).length,
    canvases: document.querySelectorAll('.jp-OutputArea canvas:not(.jp-RenderedHTMLCommon *)').length,
    lost: /Error displaying widget|Loading widget/.test(document.querySelector('.jp-Notebook')?.innerText ?? ''),
  };
});
const around = (css) => page.locator(css).evaluateAll((nodes) => {         // left, top, right, bottom
  const boxes = nodes.map((node) => node.getBoundingClientRect());
  return [Math.min(...boxes.map((box) => box.left)), Math.min(...boxes.map((box) => box.top)),
    Math.max(...boxes.map((box) => box.right)), Math.max(...boxes.map((box) => box.bottom))];
});
const verbs = {
  run: () => command('notebook:run-all-cells'),
  async cell(i) {
    await page.evaluate((i) => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = i; }, i);
    await command('notebook:run-cell');
  },
  async idle() {
    await page.waitForTimeout(300);
    await page.waitForFunction(() => {
      const panel = window.jupyterapp.shell.currentWidget;
      const busy = panel.content.widgets.some((cell) => cell.model.type === 'code' && (cell.model.executionState === 'running' || cell.promptNode?.textContent?.includes('*')));
      return !busy && panel.sessionContext.session?.kernel?.status === 'idle';
    }, null, { timeout: asked.seconds * 1000 });
    await page.waitForTimeout(500);
  },
  wait: (ms) => page.waitForTimeout(ms),
  until: (js) => page.waitForFunction(js, null, { timeout: asked.seconds * 1000 }),
  async eval(js) { report.values.push(await page.evaluate(js)); },
  click: (css, x, y) => page.locator(css).first().click(x === undefined ? {} : { position: { x, y } }),
  hover: (css, x, y) => page.locator(css).first().hover({ position: { x, y } }),
  async drag(css, x0, x1, y) {
    const box = await page.locator(css).first().boundingBox();
    await page.mouse.move(box.x + x0, box.y + y);
    await page.mouse.down();
    for (const x of [(x0 + x1) / 2, x1]) await page.mouse.move(box.x + x, box.y + y);
    await page.mouse.up();
  },
  see: (css) => page.locator(css).first().evaluate((node) => node.scrollIntoView({ block: 'center' })),
  top: (css) => page.locator(css).first().evaluate((node) => node.scrollIntoView({ block: 'start' })),
  async box(css) { report.values.push(await around(css)); },
  async record(name, js, css) {
    const times = [];
    let box;
    for (;;) {
      const at = Date.now();
      await shoot(`${name}-${String(times.length).padStart(3, '0')}`);
      if (await page.evaluate(js)) break;                                  // this picture may be too late
      times.push(at);
      box = await around(css);
    }
    report.values.push({ times, box });
  },
  async drag(css, dx, dy) {
    const { x, y, width, height } = await page.locator(css).first().boundingBox();
    await page.mouse.move(x + width / 2, y + height / 2);
    await page.mouse.down();
    await page.mouse.move(x + width / 2 + dx, y + height / 2 + dy, { steps: 4 });
    await page.mouse.up();
  },
  focus: (css) => page.locator(css).first().focus(),
  press: (keys, css) => (css ? page.locator(css).first().press(keys) : page.keyboard.press(keys)),
  size: (width, height) => page.setViewportSize({ width, height }),
  double: (css) => page.locator(css).first().dblclick(),
  shot: (name) => asked.pictures && shoot(name),
  // What axe finds in the elements of this selector: [rule, impact, the first elements]
  async axe(css) { report.values.push(await violations(page, readFileSync(asked.axe, 'utf8'), css)); },
  async reload() { await page.reload({ waitUntil: 'domcontentloaded' }); await celled(); },
  interrupt: () => command('notebook:interrupt-kernel'),
  async theme(theme) {
    await command('apputils:change-theme', { theme });
    await page.waitForFunction((theme) => document.body.dataset.jpThemeName === theme, theme);
    await page.waitForTimeout(500);
  },
  async save() { await page.evaluate(() => window.jupyterapp.commands.execute('docmanager:save')); },
  restart: () => page.evaluate(() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()),
  hurry: () => writeFileSync(`${asked.folder}/hurry`, ''),
  async reopen() {
    await page.evaluate(() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown());
    await opened();
    await page.waitForTimeout(3000);
  },
  // Run all cells by the menu. Reported: the cells, how many views were live at a time, and how often one moved.
  async watch() {
    await page.locator('.lm-MenuBar-item', { hasText: /^Run$/ }).click();
    await page.locator('.lm-Menu-item', { hasText: /^Run All Cells/ }).first().click();
    const deadline = Date.now() + asked.seconds * 1000;
    await lookForMoves();
    for (let shown = false, over = false; !over;) {
      if (Date.now() > deadline) throw new Error('the notebook did not finish in time');
      const now = await state(), moves = await page.evaluate(() => window.moves);
      Object.assign(report, { cells: now.cells, live: moves.live, liveFrames: moves.frames });
      report.unexpected = now.cells.flatMap((cell) => (cell.expected ? [] : cell.errors));
      const waiting = now.cells.some((cell) => cell.waits);   // the kernel's own state says idle also while it answers a widget
      if (moves.frames >= 5 && !shown) { shown = true; verbs.hurry(); await verbs.shot('live'); }
      over = now.busy === 'idle' && (!waiting || report.unexpected.length);
      await page.waitForTimeout(150);
    }
    await page.evaluate(() => clearInterval(window.moves.timer));
    await page.waitForTimeout(1000);
    await closeQuestions();
  },
  // The whole notebook, one window after the other, so that all of it is drawn; then its pictures are reported.
  async walk(name) {
    const scroller = page.locator('.jp-WindowedPanel-outer').first();
    await scroller.evaluate((node) => { node.scrollTop = 0; });
    for (let i = 0, more = true; more && i < 40; i++) {
      await page.waitForTimeout(300);
      await verbs.shot(`${name}-${String(i).padStart(2, '0')}`);
      more = await scroller.evaluate((node) => {
        const before = node.scrollTop;
        node.scrollTop += node.clientHeight * 0.9;
        return node.scrollTop > before + 1;
      });
    }
    report[name] = await pictures();
  },
};

try {
  await opened();
  await ready();
  for (const [verb, ...args] of asked.actions) {
    report.at = [verb, ...args];
    await verbs[verb](...args);
  }
  delete report.at;
} catch (error) {
  report.failed = String(error);
  await shoot('failed').catch(() => {});
} finally {
  report.errors = (await state().catch(() => ({ cells: [] }))).cells.flatMap((cell) => cell.errors);
  await browser.close();
}
writeFileSync(`${asked.shots}/actions.json`, JSON.stringify(report, null, 1));

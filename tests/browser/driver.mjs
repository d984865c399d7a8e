// Run all cells of a notebook in JupyterLab as a user does, in a headless Chromium, and report what was seen as JSON.
// node driver.mjs '{"url", "notebook", "browser", "playwright", "shots", "seconds"}'
// The server must run with --LabApp.expose_app_in_browser=true: cells outside the window are then counted too.
import { writeFileSync } from 'node:fs';

const asked = JSON.parse(process.argv[2]);
const { chromium } = await import(asked.playwright);
const deadline = Date.now() + asked.seconds * 1000;
const report = { cells: [], errors: [], outside: [], console: [], live: 0, liveFrames: 0, questions: [], shots: [] };

const browser = await chromium.connect(asked.browser);
const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } });
page.on('request', (request) => {
  const host = new URL(request.url()).hostname;
  if (!['127.0.0.1', 'localhost', ''].includes(host)) report.outside.push(request.url());
});
page.on('console', (message) => { if (message.type() === 'error') report.console.push(message.text()); });
page.on('pageerror', (error) => report.console.push(String(error)));

const shoot = async (name) => {
  await page.screenshot({ path: `${asked.shots}/${name}.png` });
  report.shots.push(`${name}.png`);
};
const closeQuestions = async () => {         // Lab's offer of news; whatever else stands in front of the notebook
  report.questions.push(...await page.locator('.Toastify__toast, .jp-Dialog').allTextContents());
  for (const button of await page.locator('.Toastify__toast button.jp-toast-button').all()) {
    if (/^(no|dismiss)$/i.test((await button.textContent()).trim())) await button.click().catch(() => {});
  }
};
const state = () => page.evaluate(() => {
  const panel = window.jupyterapp.shell.currentWidget;
  const cells = [];
  for (const cell of panel.content.widgets) {
    if (cell.model.type !== 'code') continue;
    const outputs = cell.model.outputs.toJSON();
    cells.push({
      source: cell.model.sharedModel.getSource(),
      count: cell.model.executionCount,
      waits: cell.model.executionState === 'running' || cell.promptNode?.textContent?.includes('*') || false,
      kinds: outputs.map((output) => output.output_type + (output.data ? ' ' + Object.keys(output.data).join(' ') : '')),
      errors: outputs.filter((o) => o.output_type === 'error').map((o) => `${o.ename}: ${o.evalue}`),
      expected: cell.model.getMetadata('tags')?.includes('raises-exception') ?? false,   // the notebook goes on after it
    });
  }
  return { cells, busy: panel.sessionContext.session?.kernel?.status };
});
// What a live curve has drawn: canvases with a pixel that differs from their first one.
const drawn = () => page.evaluate(() => [...document.querySelectorAll('.jp-OutputArea canvas')].filter((canvas) => {
  if (!canvas.width || !canvas.height) return false;
  const words = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return words.some((word) => word !== words[0]);
}).map((canvas) => { canvas.scrollIntoView({ block: 'center' }); return canvas.toDataURL().length; }));
const pictures = () => page.evaluate(() => {
  const seen = [...document.querySelectorAll('.jp-OutputArea-output img')];
  return {
    good: seen.filter((image) => image.complete && image.naturalWidth > 0).length,
    broken: seen.filter((image) => image.complete && !image.naturalWidth).map((image) => image.src.slice(0, 80)),
    unnamed: seen.filter((image) => !image.alt && !image.src.startsWith('data:image/png')).length,
    names: seen.map((image) => image.alt),
    explorers: [...document.querySelectorAll('.jp-OutputArea .mfx')].filter((one) => one.querySelectorAll('svg text').length > 5).length,
    canvases: document.querySelectorAll('.jp-OutputArea canvas').length,
    lost: /Error displaying widget|Loading widget/.test(document.querySelector('.jp-Notebook')?.innerText ?? ''),
  };
});
const opened = async () => {
  await page.waitForSelector('.jp-NotebookPanel .jp-Cell', { timeout: 60_000 });
  await page.waitForFunction(() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle',
    null, { timeout: 90_000 });
  await closeQuestions();
};
// The whole notebook, one window after the other; returns when the last line was seen.
const walk = async (prefix) => {
  const scroller = page.locator('.jp-WindowedPanel-outer').first();
  await scroller.evaluate((node) => { node.scrollTop = 0; });
  for (let i = 0; i < 40; i++) {
    await page.waitForTimeout(300);
    await shoot(`${prefix}-${String(i).padStart(2, '0')}`);
    const more = await scroller.evaluate((node) => {
      const before = node.scrollTop;
      node.scrollTop += node.clientHeight * 0.9;
      return node.scrollTop > before + 1;
    });
    if (!more) break;
  }
};

try {
  const start = Date.now();
  await page.goto(`${asked.url}/${asked.place ?? 'lab/tree'}/${asked.notebook}?reset`, { waitUntil: 'domcontentloaded' });
  await opened();
  report.openSeconds = (Date.now() - start) / 1000;
  await shoot('opened');

  const run = Date.now();
  await page.locator('.lm-MenuBar-item', { hasText: /^Run$/ }).click();
  await page.locator('.lm-Menu-item', { hasText: /^Run All Cells/ }).first().click();
  let last = [];
  for (;;) {
    if (Date.now() > deadline) throw new Error('the notebook did not finish in time');
    const now = await state();
    report.cells = now.cells;
    report.errors = now.cells.flatMap((cell) => cell.errors);
    report.unexpected = now.cells.flatMap((cell) => (cell.expected ? [] : cell.errors));
    const waiting = now.cells.some((cell) => cell.source.trim() && (cell.count === null || cell.waits));
    const frames = await drawn();
    if (waiting && frames.length) {          // the kernel's own state says idle here: it also answers the widget
      report.live = Math.max(report.live, frames.length);
      if (frames.join() !== last.join()) {
        report.liveFrames += 1;                                   // it moves: this picture is not the one before
        if (report.liveFrames === 5) await shoot('live');
      }
      last = frames;
    }
    if (now.busy === 'idle' && (!waiting || report.unexpected.length)) break;
    await page.waitForTimeout(150);
  }
  report.runSeconds = (Date.now() - run) / 1000;
  await page.waitForTimeout(1000);
  await closeQuestions();
  await walk('done');
  report.atEnd = await pictures();

  // A saved notebook, opened again in a fresh page, still shows its pictures. The kernel is another one then.
  await page.evaluate(() => window.jupyterapp.commands.execute('docmanager:save'));
  await page.evaluate(() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown());
  await page.goto(`${asked.url}/${asked.place ?? 'lab/tree'}/${asked.notebook}?reset`, { waitUntil: 'domcontentloaded' });
  await page.waitForSelector('.jp-NotebookPanel .jp-Cell', { timeout: 60_000 });
  await page.waitForTimeout(4000);
  await walk('again');
  report.again = await pictures();
} catch (error) {
  report.failed = String(error);
  await shoot('failed').catch(() => {});
} finally {
  writeFileSync(`${asked.shots}/report.json`, JSON.stringify(report, null, 1));
  await browser.close();
}
console.log(JSON.stringify(report));

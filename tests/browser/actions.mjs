// Open a notebook in JupyterLab in a headless Chromium and do what is asked, one action after the other; report as JSON.
// node actions.mjs '{"url", "notebook", "browser", "playwright", "shots", "seconds", "actions": [[verb, ...], ...]}'
// Verbs: run (all cells, without waiting), idle, wait ms, until js, eval js (its value is reported), click css, hover css
// x y, double css (click), size width height (of the window), see css (scroll to it), focus css, press keys [css], shot name,
// reload, interrupt, theme name, save, restart (the kernel),
// reopen (untrusted, without a kernel), cell i (run it).
import { readFileSync, writeFileSync } from 'node:fs';

const asked = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const { chromium } = await import(asked.playwright);
const report = { values: [], outside: [], console: [], errors: [], dialogs: [] };
const browser = await chromium.connect(asked.browser);
const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } });
page.setDefaultTimeout(60_000);
page.on('request', (request) => {
  const host = new URL(request.url()).hostname;
  if (!['127.0.0.1', 'localhost', ''].includes(host)) report.outside.push(request.url());
});
page.on('console', (message) => { if (message.type() === 'error') report.console.push(message.text()); });
page.on('dialog', (dialog) => { report.dialogs.push(dialog.message()); (dialog.type() === 'beforeunload' ? dialog.accept() : dialog.dismiss()).catch(() => {}); });
page.on('pageerror', (error) => report.console.push(String(error)));

const command = (name, args) => page.evaluate(([name, args]) => { window.jupyterapp.commands.execute(name, args); }, [name, args ?? {}]);
const kernel = () => page.evaluate(() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status);
const opened = async (address = '?reset') => {
  await page.goto(`${asked.url}/${asked.place ?? 'lab/tree'}/${asked.notebook}${address}`, { waitUntil: 'domcontentloaded' });
  await page.waitForSelector('.jp-NotebookPanel .jp-Cell', { timeout: 60_000 });
};
const ready = async () => {
  await page.waitForFunction(() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle',
    null, { timeout: 90_000 });
  for (const button of await page.locator('.Toastify__toast button.jp-toast-button').all()) {
    if (/^(no|dismiss)$/i.test((await button.textContent()).trim())) await button.click().catch(() => {});
  }
};
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
  click: (css) => page.locator(css).first().click(),
  hover: (css, x, y) => page.locator(css).first().hover({ position: { x, y } }),
  see: (css) => page.locator(css).first().evaluate((node) => node.scrollIntoView({ block: 'center' })),
  focus: (css) => page.locator(css).first().focus(),
  press: (keys, css) => (css ? page.locator(css).first().press(keys) : page.keyboard.press(keys)),
  size: (width, height) => page.setViewportSize({ width, height }),
  double: (css) => page.locator(css).first().dblclick(),
  shot: (name) => page.screenshot({ path: `${asked.shots}/${name}.png` }),
  async reload() { await page.reload({ waitUntil: 'domcontentloaded' }); await page.waitForSelector('.jp-NotebookPanel .jp-Cell', { timeout: 60_000 }); },
  interrupt: () => command('notebook:interrupt-kernel'),
  theme: async (theme) => { await command('apputils:change-theme', { theme }); await page.waitForTimeout(1500); },
  async save() { await page.evaluate(() => window.jupyterapp.commands.execute('docmanager:save')); },
  restart: () => page.evaluate(() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()),
  async reopen() {
    await page.evaluate(() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown());
    await opened();
    await page.waitForTimeout(3000);
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
  await page.screenshot({ path: `${asked.shots}/failed.png` }).catch(() => {});
} finally {
  report.errors = await page.evaluate(() => window.jupyterapp.shell.currentWidget.content.widgets.flatMap((cell) =>
    (cell.model.type === 'code' ? cell.model.outputs.toJSON() : []).filter((o) => o.output_type === 'error').map((o) => `${o.ename}: ${o.evalue}`))).catch(() => []);
  await browser.close();
}
writeFileSync(`${asked.shots}/actions.json`, JSON.stringify(report, null, 1));
console.log(JSON.stringify(report));
